//! A client that sends no secrets and lets none come back.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use epitome_loop::{
    Block, Blocks, Document, Image, Message, ModelAnswer, ModelCall, ModelCallError, ModelClient, Opaque,
    RawJson, SharedText, Thinking, ToolResult, ToolUse,
};

use crate::redaction::redact_json;
use crate::{RedactionCounts, redact};

/// How deep results inside results are looked through. What is deeper is refused by everybody else.
const MOST_DEPTH: usize = epitome_loop::MAX_BLOCK_DEPTH;

/// What was replaced so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RedactionReport {
    /// In what went to the model, and in what it was shortened from.
    pub sent: RedactionCounts,
    /// In what came back.
    pub received: RedactionCounts,
}

/// Replaces secrets and counts them. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor(Arc<Mutex<RedactionReport>>);

impl Redactor {
    pub(crate) fn report(&self) -> RedactionReport {
        // A panic elsewhere cannot leave numbers half written.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clean_call(&self, call: ModelCall) -> ModelCall {
        let mut sent = RedactionCounts::default();
        let call = clean_call(call, &mut sent);
        self.note(|report| report.sent.add(&sent));
        call
    }

    pub(crate) fn clean_messages(&self, messages: &Arc<[Message]>) -> Arc<[Message]> {
        let mut sent = RedactionCounts::default();
        let messages = clean_messages(messages, &mut sent);
        self.note(|report| report.sent.add(&sent));
        messages
    }

    pub(crate) fn clean_answer(&self, answer: ModelAnswer) -> ModelAnswer {
        let mut received = RedactionCounts::default();
        let blocks = clean_blocks(&answer.blocks, 0, &mut received).unwrap_or(answer.blocks);
        self.note(|report| report.received.add(&received));
        ModelAnswer { blocks, ..answer }
    }

    fn note(&self, change: impl FnOnce(&mut RedactionReport)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A client around another one: every text of a request goes through [`redact`] first, and every text of an answer
/// after. [`NetworkModel`](crate::NetworkModel) does so by itself; this is for clients of one's own.
///
/// System prompt, messages, calls of tools with their arguments, and addresses of pictures are looked through;
/// ids, names of tools and the bytes of media are not. Reasoning that is changed loses its signature, which would not
/// fit any more. Clones share their counts.
#[derive(Clone)]
pub struct Redacting<C> {
    client: C,
    redactor: Redactor,
}

impl<C> Redacting<C> {
    /// A client around this one.
    #[must_use]
    pub fn new(client: C) -> Self {
        Self { client, redactor: Redactor::default() }
    }

    /// What was replaced since it was made.
    #[must_use]
    pub fn report(&self) -> RedactionReport {
        self.redactor.report()
    }

    /// The client inside.
    #[must_use]
    pub fn client(&self) -> &C {
        &self.client
    }
}

#[async_trait]
impl<C: ModelClient> ModelClient for Redacting<C> {
    async fn call(&self, call: ModelCall) -> Result<ModelAnswer, ModelCallError> {
        let answer = self.client.call(self.redactor.clean_call(call)).await?;
        Ok(self.redactor.clean_answer(answer))
    }

    fn as_sent(&self, messages: &Arc<[Message]>) -> Arc<[Message]> {
        self.client.as_sent(&self.redactor.clean_messages(messages))
    }
}

impl<C> fmt::Debug for Redacting<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redacting").field("report", &self.report()).finish_non_exhaustive()
    }
}

fn clean_call(call: ModelCall, counts: &mut RedactionCounts) -> ModelCall {
    let system = call.system.map(|system| clean_text(&system, counts).unwrap_or(system));
    let messages = clean_messages(&call.messages, counts);
    ModelCall { system, messages, ..call }
}

/// The messages without secrets; themselves when there are none.
fn clean_messages(messages: &Arc<[Message]>, counts: &mut RedactionCounts) -> Arc<[Message]> {
    let cleaned: Vec<Option<Message>> =
        messages.iter().map(|message| clean_message(message, counts)).collect();
    if cleaned.iter().all(Option::is_none) {
        return Arc::clone(messages);
    }
    let pairs = messages.iter().zip(cleaned);
    pairs.map(|(message, cleaned)| cleaned.unwrap_or_else(|| message.clone())).collect()
}

fn clean_text(text: &str, counts: &mut RedactionCounts) -> Option<SharedText> {
    let redacted = redact(text);
    counts.add(&redacted.counts);
    redacted.text.map(SharedText::from)
}

fn clean_message(message: &Message, counts: &mut RedactionCounts) -> Option<Message> {
    let blocks = clean_blocks(message.blocks(), 0, counts)?;
    Some(match message {
        Message::User { .. } => Message::User { blocks },
        Message::Assistant { usage, .. } => Message::Assistant { blocks, usage: *usage },
        Message::System { .. } => Message::System { blocks },
        Message::ToolResult { tool_use_id, is_error, .. } => {
            Message::ToolResult { blocks, tool_use_id: tool_use_id.clone(), is_error: *is_error }
        }
    })
}

/// The blocks without secrets; `None` when there are none, so that nothing is copied.
fn clean_blocks(blocks: &Blocks, depth: usize, counts: &mut RedactionCounts) -> Option<Blocks> {
    let cleaned: Vec<Option<Block>> = blocks.iter().map(|block| clean_block(block, depth, counts)).collect();
    if cleaned.iter().all(Option::is_none) {
        return None;
    }
    let pairs = blocks.iter().zip(cleaned);
    Some(pairs.map(|(block, cleaned)| cleaned.unwrap_or_else(|| block.clone())).collect())
}

fn clean_block(block: &Block, depth: usize, counts: &mut RedactionCounts) -> Option<Block> {
    match block {
        Block::Text { text } => Some(Block::Text { text: clean_text(text, counts)? }),
        Block::Refusal { text } => Some(Block::Refusal { text: clean_text(text, counts)? }),
        Block::Image(image) => {
            Some(Block::Image(Image { url: clean_text(&image.url, counts)?, ..image.clone() }))
        }
        Block::Document(document) => {
            let name = clean_text(&document.name, counts);
            let text = clean_text(&document.text, counts);
            if name.is_none() && text.is_none() {
                return None;
            }
            let document = document.clone();
            let (name, text) = (name.unwrap_or(document.name), text.unwrap_or(document.text));
            Some(Block::Document(Document { name, text, ..document }))
        }
        Block::Thinking(thinking) => {
            let words = clean_text(&thinking.thinking, counts)?;
            Some(Block::Thinking(Thinking::new(words, "", "", None)))
        }
        Block::ToolUse(call) => {
            let input = call.input.as_ref().and_then(|input| redact_json(input, counts))?;
            Some(Block::ToolUse(ToolUse { input: Some(input), ..call.clone() }))
        }
        Block::ToolResult(result) if depth < MOST_DEPTH => {
            let content = clean_blocks(&result.content, depth + 1, counts)?;
            Some(Block::ToolResult(ToolResult { content, ..result.clone() }))
        }
        Block::Opaque(item) => {
            let raw: RawJson = redact_json(&item.raw, counts)?;
            Some(Block::Opaque(Opaque { raw, ..item.clone() }))
        }
        // Sound, results that are too deep, and kinds of blocks that are not known yet.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use epitome_loop::Sampling;

    use super::*;
    use crate::SecretKind;

    const KEY: &str = "sk-ant-api03-canary0123456789";

    /// A client that repeats what it is told, and remembers it.
    struct Parrot(Mutex<String>);

    #[async_trait]
    impl ModelClient for Parrot {
        async fn call(&self, call: ModelCall) -> Result<ModelAnswer, ModelCallError> {
            let mut heard = self.0.lock().unwrap();
            heard.push_str(call.system.as_deref().unwrap_or_default());
            for block in call.messages.iter().flat_map(|message| message.blocks().iter()) {
                match block {
                    Block::Text { text } => heard.push_str(text),
                    Block::ToolUse(call) => heard.push_str(call.input.as_ref().unwrap().as_str()),
                    Block::Thinking(thinking) => {
                        heard.push_str(&thinking.thinking);
                        heard.push_str(&thinking.signature);
                    }
                    Block::ToolResult(result) => match &result.content[0] {
                        Block::Text { text } => heard.push_str(text),
                        other => panic!("{other:?}"),
                    },
                    other => panic!("{other:?}"),
                }
            }
            Ok(ModelAnswer::text(format!("your key is {KEY}")))
        }
    }

    #[tokio::test]
    async fn nothing_goes_out_and_nothing_comes_back() {
        let client = Redacting::new(Parrot(Mutex::default()));
        let blocks = vec![
            Block::text(format!("my key: {KEY}")),
            Block::Thinking(Thinking::new(format!("{KEY}?"), "signed", "anthropic", None)),
            Block::ToolUse(ToolUse::new(
                "i",
                "n",
                Some(
                    RawJson::parse(format!("{{ \"a\\n\":\"\\n{KEY}\", \"password\":\"a\\\"b!\"}}")).unwrap(),
                ),
                None,
            )),
            Block::ToolResult(ToolResult {
                tool_use_id: "i".into(),
                content: vec![Block::text(KEY)].into(),
                is_error: false,
            }),
            Block::text("untouched"),
        ];
        let call = ModelCall {
            model: "m".into(),
            system: Some(format!("system {KEY}").into()),
            messages: vec![Message::Assistant { blocks: blocks.into(), usage: None }].into(),
            max_output: None,
            sampling: Sampling::default(),
            answer_form: None,
        };
        let answer = client.call(call).await.unwrap();
        let heard = client.client().0.lock().unwrap().clone();
        let mark = SecretKind::ProviderKey.mark();
        let secret = SecretKind::AssignedSecret.mark();
        assert_eq!(
            heard,
            format!(
                "system {mark}my key: {mark}{mark}?{{ \"a\\n\":\"\\n{mark}\", \"password\":\"{secret}\"}}{mark}untouched"
            )
        );
        assert_eq!(*answer.blocks, [Block::text(format!("your key is {mark}"))]);
        let report = client.report();
        assert_eq!((report.sent.of(SecretKind::ProviderKey), report.sent.total()), (5, 6));
        assert_eq!(report.received.total(), 1);
        assert!(!format!("{client:?} {report:?}").contains("canary"));
    }

    #[tokio::test]
    async fn what_holds_no_secret_is_not_copied() {
        let messages: Arc<[Message]> = vec![Message::user("hello")].into();
        let same = Arc::clone(&messages);
        let client = Redacting::new(move |call: &ModelCall| {
            assert!(Arc::ptr_eq(&call.messages, &same));
            Ok(ModelAnswer::text("hello"))
        });
        let call = ModelCall {
            model: "m".into(),
            system: None,
            messages,
            max_output: None,
            sampling: Sampling::default(),
            answer_form: None,
        };
        assert_eq!(client.call(call).await.unwrap(), ModelAnswer::text("hello"));
        assert_eq!(client.report(), RedactionReport::default());
    }
}
