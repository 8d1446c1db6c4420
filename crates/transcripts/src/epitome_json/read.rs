//! Epitome JSON into messages.

use epitome_loop::{
    Audio, Block, Document, Image, MAX_BLOCK_DEPTH, Message, ModelKey, Opaque, RawJson, SharedBytes,
    SharedText, Thinking, TokenCount, ToolResult, ToolUse, Usage,
};

use super::VERSION;
use crate::assembly::{Assembly, as_it_stands};
use crate::conversation::Conversation;
use crate::faults::Faults;
use crate::json::{Kind, Value, raw_json};
use crate::{Format, ReadError, media};

/// Reads a document into the assembly.
pub(crate) fn read(conversation: &Conversation<'_>, into: &mut Assembly) -> Result<(), ReadError> {
    // Without a list of messages it may look like a message, but it is no document.
    let Some(object) = conversation.object else {
        return Err(ReadError::NotThisFormat { format: Format::EpitomeJson });
    };
    let [version, model, tools] = into.faults.pick(object, ["epitome", "model", "tools"]);
    let version = version.and_then(Value::number).unwrap_or(0);
    if version != VERSION {
        return Err(ReadError::UnknownVersion { version });
    }
    if let Some(model) = model {
        let [provider, name] = into.faults.pick(model, ["provider", "model"]);
        let key = ModelKey::new(into.faults.string(provider), into.faults.string(name));
        into.model = key.validate().is_ok().then_some(key);
    }
    for tool in tools.into_iter().flat_map(Value::elements) {
        let tool = raw_json(tool.bytes(), &mut into.faults.text);
        into.tools.push(tool);
    }
    // Faults beside the messages make none of them differ.
    into.faults = Faults::default();
    let mut prefix_goes_on = true;
    for (index, element) in conversation.messages.iter().enumerate() {
        let summary = element.get("summary").is_some_and(Value::is_true);
        let message = message(*element, index, &mut into.faults)?;
        if summary && prefix_goes_on {
            into.derived_prefix += 1;
        } else if !matches!(message, Message::System { .. }) {
            prefix_goes_on = false;
        }
        if let Message::Assistant { usage: Some(usage), .. } = &message {
            into.reported = Some((index, *usage));
        }
        into.close(as_it_stands(element.range()), vec![message]);
    }
    // Messages kept behind a summary carry reports from before it, and nothing tells them from newer ones.
    if into.derived_prefix > 0 {
        into.reported = None;
        into.void_reports(0..into.len());
    }
    Ok(())
}

fn message(element: Value<'_>, index: usize, faults: &mut Faults) -> Result<Message, ReadError> {
    if !element.is_object() {
        return Err(ReadError::NotAMessage { message: index });
    }
    let [role, content, id, is_error, usage] =
        faults.pick(element, ["role", "content", "tool_use_id", "is_error", "usage"]);
    let role = role.ok_or(ReadError::NotAMessage { message: index })?;
    let blocks = Mapping { message: index, faults }.content(content, MAX_BLOCK_DEPTH)?.into();
    if role.is_text("user") {
        Ok(Message::User { blocks })
    } else if role.is_text("assistant") {
        Ok(Message::Assistant { blocks, usage: usage.map(self::usage) })
    } else if role.is_text("system") {
        Ok(Message::System { blocks })
    } else if role.is_text("tool") {
        let tool_use_id = faults.string(id).into();
        Ok(Message::ToolResult { blocks, tool_use_id, is_error: is_error.is_some_and(Value::is_true) })
    } else {
        Err(ReadError::UnknownRole { message: index })
    }
}

fn usage(usage: Value<'_>) -> Usage {
    let (found, _) = usage.pick(["input", "output", "cache_read", "cache_creation", "reasoning"]);
    let [input, output, cache_read, cache_creation, reasoning] =
        found.map(|value| TokenCount(value.and_then(Value::number).unwrap_or(0)));
    Usage { input, output, cache_read, cache_creation, reasoning }
}

struct Mapping<'a> {
    message: usize,
    faults: &'a mut Faults,
}

impl Mapping<'_> {
    /// `levels` counts the nested results that are still allowed, so recursion is bounded by it.
    fn content(&mut self, content: Option<Value<'_>>, levels: usize) -> Result<Vec<Block>, ReadError> {
        let Some(content) = content else { return Ok(Vec::new()) };
        if content.kind() == Kind::String {
            let text = self.faults.string(Some(content));
            return Ok(if text.is_empty() { Vec::new() } else { vec![Block::text(text)] });
        }
        // Empty text is no block, as in the other formats: providers refuse it.
        let says_nothing = |block: &Result<Block, ReadError>| matches!(block, Ok(Block::Text { text } | Block::Refusal { text }) if text.is_empty());
        let blocks = content.elements().map(|block| self.block(block, levels));
        blocks.filter(|block| !says_nothing(block)).collect()
    }

    fn block(&mut self, block: Value<'_>, levels: usize) -> Result<Block, ReadError> {
        let kind = block.get("type").ok_or(ReadError::NotAMessage { message: self.message })?;
        let is = |name: &str| kind.is_text(name);
        Ok(if is("text") {
            Block::Text { text: self.text(block, "text") }
        } else if is("refusal") {
            Block::Refusal { text: self.text(block, "text") }
        } else if is("image") {
            let (media_type, data) = self.media(block)?;
            Block::Image(Image { media_type, url: self.text(block, "url"), data })
        } else if is("audio") {
            let (media_type, data) = self.media(block)?;
            Block::Audio(Audio { media_type, data })
        } else if is("document") {
            let (media_type, data) = self.media(block)?;
            let (name, text) = (self.text(block, "name"), self.text(block, "text"));
            Block::Document(Document { media_type, name, data, text })
        } else if is("thinking") {
            let state = self.state(block);
            let [thinking, signature, format] =
                ["thinking", "signature", "signature_format"].map(|key| self.text(block, key));
            Block::Thinking(Thinking::new(thinking, signature, format, state))
        } else if is("tool_use") {
            let state = self.state(block);
            let input = self.raw(block, "input");
            Block::ToolUse(ToolUse::new(self.text(block, "id"), self.text(block, "name"), input, state))
        } else if is("tool_result") {
            let [id, content, is_error] = self.faults.pick(block, ["tool_use_id", "content", "is_error"]);
            let levels = levels.checked_sub(1).ok_or(ReadError::TooDeep { message: self.message })?;
            let content = self.content(content, levels)?.into();
            let is_error = is_error.is_some_and(Value::is_true);
            Block::ToolResult(ToolResult { tool_use_id: self.faults.string(id).into(), content, is_error })
        } else if is("opaque") {
            let raw = self.raw(block, "raw").ok_or(ReadError::NotAMessage { message: self.message })?;
            Block::Opaque(Opaque { kind: self.text(block, "kind"), raw })
        } else {
            return Err(ReadError::NotAMessage { message: self.message });
        })
    }

    fn text(&mut self, block: Value<'_>, key: &str) -> SharedText {
        let [value] = self.faults.pick(block, [key]);
        self.faults.string(value).into()
    }

    fn raw(&mut self, block: Value<'_>, key: &str) -> Option<RawJson> {
        let value = block.fields().filter(|(name, _)| *name == key.as_bytes()).last()?.1;
        Some(raw_json(value.bytes(), &mut self.faults.text))
    }

    fn state(&mut self, block: Value<'_>) -> Option<(RawJson, SharedText)> {
        Some((self.raw(block, "provider_state")?, self.text(block, "provider_state_format")))
    }

    fn media(&mut self, block: Value<'_>) -> Result<(SharedText, Option<SharedBytes>), ReadError> {
        let data = match block.get("data") {
            Some(data) => Some(media::base64(data).ok_or(ReadError::NotAMessage { message: self.message })?),
            None => None,
        };
        Ok((self.text(block, "media_type"), data))
    }
}
