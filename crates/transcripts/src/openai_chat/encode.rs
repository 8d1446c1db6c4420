//! Neutral messages into chat messages.

use std::borrow::Cow;

use epitome_loop::{Block, Message, RawJson, Role, ToolUse};

use super::CUSTOM_CALL;
use crate::call_id;
use crate::faults::Faults;
use crate::gemini;
use crate::json::{Array, Kind, Object, Source, object};
use crate::loss::{LEFT_OUT, LossKind, Losses};
use crate::media;
use crate::write::Item;

/// The elements of the list of messages. `same` says whether the session was read from this format, so that
/// its own extensions may go back.
pub(crate) fn encode(items: &[Item], same: bool, losses: &mut Losses) -> Vec<Vec<u8>> {
    let mut encoder = Encoder { same, losses };
    items.iter().filter_map(|item| encoder.message(&item.message)).collect()
}

/// Tool definitions. Those of Anthropic and of the Responses API become functions; others that are no functions
/// are left out.
pub(crate) fn encode_tools(tools: &[RawJson], losses: &mut Losses) -> Vec<Vec<u8>> {
    let encoded = tools.iter().map(|tool| {
        let source = Source::small(tool.as_str().as_bytes());
        let value = source.whole();
        let ([function, name, description, schema, parameters, kind], _) =
            value.pick(["function", "name", "description", "input_schema", "parameters", "type"]);
        if function.is_some() {
            return Some(source.bytes().to_vec());
        }
        if let Some(declared) = gemini::declaration(value) {
            return Some(object(|out| {
                out.text("type", "function");
                out.object("function", |out| {
                    out.raw("name", declared.name);
                    if let Some(description) = declared.description {
                        out.raw("description", description);
                    }
                    out.raw("parameters", &declared.schema);
                });
            }));
        }
        let parameters = parameters.filter(|_| kind.is_some_and(|kind| kind.is_text("function")));
        let (Some(name), Some(schema)) = (name, schema.or(parameters)) else {
            losses.add(LossKind::Tool);
            return None;
        };
        Some(object(|out| {
            out.text("type", "function");
            out.object("function", |out| {
                out.raw("name", name.bytes());
                if let Some(description) = description {
                    out.raw("description", description.bytes());
                }
                out.raw("parameters", schema.bytes());
            });
        }))
    });
    encoded.collect::<Vec<_>>().into_iter().flatten().collect()
}

struct Encoder<'a> {
    same: bool,
    losses: &'a mut Losses,
}

impl Encoder<'_> {
    /// One message; nothing when nothing of the model's words or of instructions can be held.
    fn message(&mut self, message: &Message) -> Option<Vec<u8>> {
        let (role, carries) = match message {
            Message::Assistant { blocks, .. } => return self.assistant(blocks),
            Message::System { .. } => ("system", self.carries_of_its_own()),
            Message::User { .. } => ("user", Carries::Media),
            Message::ToolResult { .. } => ("tool", self.carries_of_its_own()),
        };
        let mut parts = self.parts(message.blocks().iter(), carries);
        if parts.is_empty() && !message.blocks().is_empty() && message.role() == Role::System {
            return None;
        }
        if parts.is_empty() && !message.blocks().is_empty() && message.role() == Role::User {
            parts.push(Part::Text(LEFT_OUT));
        }
        Some(object(|out| {
            out.text("role", role);
            if let Message::ToolResult { tool_use_id, is_error, .. } = message {
                out.text("tool_call_id", &self.id(tool_use_id));
                if *is_error {
                    self.losses.add(LossKind::ErrorFlag);
                }
            }
            content(out, &parts);
        }))
    }

    fn assistant(&mut self, blocks: &[Block]) -> Option<Vec<u8>> {
        let is_spoken =
            |block: &&Block| !matches!(block, Block::Refusal { .. } | Block::ToolUse(_) | Block::Thinking(_));
        let parts = self.parts(blocks.iter().filter(is_spoken), self.carries_of_its_own());
        let has_calls = blocks.iter().any(|block| matches!(block, Block::ToolUse(_)));
        let refusals: Vec<&str> = blocks.iter().filter_map(refusal).collect();
        let says_more = has_calls || !refusals.is_empty();
        let encoded = object(|out| {
            out.text("role", "assistant");
            self.thinking(out, blocks);
            if parts.is_empty() && says_more {
                out.raw("content", b"null");
            } else {
                content(out, &parts);
            }
            if !refusals.is_empty() {
                out.text("refusal", &refusals.join("\n"));
            }
            if has_calls {
                out.array("tool_calls", |list| {
                    for block in blocks {
                        if let Block::ToolUse(call) = block {
                            list.object(|out| self.call(out, call));
                        }
                    }
                });
            }
        });
        let thinks = |block: &Block| matches!(block, Block::Thinking(thinking) if !(thinking.thinking.is_empty() && thinking.signature.is_empty()));
        (says_more || !parts.is_empty() || self.same && blocks.iter().any(thinks)).then_some(encoded)
    }

    /// What a message that is not the user's may hold: text, and in a log of this format what that log had.
    fn carries_of_its_own(&self) -> Carries {
        if self.same { Carries::Media } else { Carries::Text }
    }

    /// Reasoning goes back only into a log that had it.
    fn thinking(&mut self, out: &mut Object<'_>, blocks: &[Block]) {
        let thoughts = blocks.iter().filter_map(|block| match block {
            Block::Thinking(thinking) => Some(thinking),
            _ => None,
        });
        let (signed, plain): (Vec<_>, Vec<_>) = thoughts.partition(|thinking| !thinking.signature.is_empty());
        if !self.same {
            signed.iter().chain(&plain).for_each(|_| self.losses.add(LossKind::Thinking));
            return;
        }
        if !signed.is_empty() {
            out.array("thinking_blocks", |list| {
                for thinking in &signed {
                    list.object(|out| {
                        out.text("type", "thinking");
                        out.text("thinking", &thinking.thinking);
                        out.text("signature", &thinking.signature);
                    });
                }
            });
        }
        if !plain.is_empty() {
            let text: Vec<&str> = plain.iter().map(|thinking| thinking.thinking.as_str()).collect();
            out.text("reasoning_content", &text.join("\n"));
        }
    }

    fn call(&mut self, out: &mut Object<'_>, call: &ToolUse) {
        out.text("id", &self.id(&call.id));
        if call.provider_state_format == CUSTOM_CALL {
            out.text("type", "custom");
            out.object("custom", |out| {
                out.text("name", &call.name);
                out.raw("input", call.input.as_ref().map_or(b"\"\"", |input| input.as_str().as_bytes()));
            });
            return;
        }
        if call.provider_state.is_some() {
            self.losses.add(LossKind::CallState);
        }
        out.text("type", "function");
        out.object("function", |out| {
            out.text("name", &call.name);
            out.text("arguments", &arguments_text(call.input.as_ref()));
        });
    }

    fn parts<'b>(&mut self, blocks: impl Iterator<Item = &'b Block>, carries: Carries) -> Vec<Part<'b>> {
        blocks.filter_map(|block| self.part(block, carries)).collect()
    }

    fn id<'b>(&self, id: &'b str) -> Cow<'b, str> {
        if self.same { Cow::Borrowed(id) } else { call_id::portable(id) }
    }

    fn part<'b>(&mut self, block: &'b Block, carries: Carries) -> Option<Part<'b>> {
        let loss = match block {
            Block::Text { text } => return Part::text(text),
            Block::Refusal { text } => {
                self.losses.add(LossKind::Refusal);
                return Part::text(text);
            }
            Block::Document(document) if document.data.is_none() => return Part::text(&document.text),
            // Without bytes and address there is nothing to send.
            Block::Image(image) if image.data.is_none() && image.url.is_empty() => LossKind::Image,
            Block::Image(image) if carries == Carries::Media => {
                let address = match &image.data {
                    Some(data) => media::to_data_address(&image.media_type, data),
                    None => image.url.as_str().to_owned(),
                };
                return Some(Part::Image(address));
            }
            Block::Audio(audio) if carries == Carries::Media => match &audio.data {
                Some(data) => {
                    let format = audio.media_type.rsplit('/').next().unwrap_or_default();
                    return Some(Part::Audio(data, format));
                }
                None => LossKind::Audio,
            },
            Block::Document(document) if carries == Carries::Media => match &document.data {
                Some(data) => {
                    let address = media::to_data_address(&document.media_type, data);
                    return Some(Part::File(&document.name, address));
                }
                None => LossKind::Document,
            },
            Block::Opaque(opaque) if self.same => return Some(Part::Raw(opaque.raw.as_str())),
            Block::Image(_) => LossKind::Image,
            Block::Audio(_) => LossKind::Audio,
            Block::Document(_) => LossKind::Document,
            Block::Thinking(_) => LossKind::Thinking,
            Block::ToolResult(_) => LossKind::NestedResult,
            _ => LossKind::Opaque,
        };
        self.losses.add(loss);
        None
    }
}

/// What a content may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carries {
    Text,
    Media,
}

enum Part<'a> {
    Text(&'a str),
    Image(String),
    Audio(&'a [u8], &'a str),
    File(&'a str, String),
    Raw(&'a str),
}

impl<'a> Part<'a> {
    /// A text; nothing for an empty one, which providers refuse.
    fn text(text: &'a str) -> Option<Self> {
        (!text.is_empty()).then_some(Self::Text(text))
    }

    fn write(&self, list: &mut Array<'_>) {
        match self {
            Self::Raw(json) => list.raw(json.as_bytes()),
            Self::Text(text) => list.object(|out| {
                out.text("type", "text");
                out.text("text", text);
            }),
            Self::Image(address) => list.object(|out| {
                out.text("type", "image_url");
                out.object("image_url", |out| out.text("url", address));
            }),
            Self::Audio(data, format) => list.object(|out| {
                out.text("type", "input_audio");
                out.object("input_audio", |out| {
                    out.base64("data", data);
                    out.text("format", format);
                });
            }),
            Self::File(name, address) => list.object(|out| {
                out.text("type", "file");
                out.object("file", |out| {
                    out.text_if_any("filename", name);
                    out.text("file_data", address);
                });
            }),
        }
    }
}

fn content(out: &mut Object<'_>, parts: &[Part<'_>]) {
    match parts {
        [] => out.text("content", ""),
        [Part::Text(text)] => out.text("content", text),
        parts => out.array("content", |list| parts.iter().for_each(|part| part.write(list))),
    }
}

fn refusal(block: &Block) -> Option<&str> {
    match block {
        Block::Refusal { text } => Some(text),
        _ => None,
    }
}

/// The string that the arguments were read from: the text of a JSON string, anything else as it stands.
pub(crate) fn arguments_text(input: Option<&RawJson>) -> String {
    let Some(input) = input else { return "{}".to_owned() };
    let source = Source::small(input.as_str().as_bytes());
    let value = source.whole();
    match value.kind() {
        Kind::String => Faults::default().string(Some(value)),
        _ => input.as_str().to_owned(),
    }
}
