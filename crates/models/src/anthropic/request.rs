//! Requests for Messages.

use epitome_loop::{Block, Image, Message, ModelCall, Request, Thinking, ToolUse};
use serde::Serialize;
use serde_json::value::RawValue;

use super::SIGNATURE;
use crate::dialect::NoPlace;
use crate::request_parts::{
    as_it_stands, effort, json_schema, most_output, picture_bytes, stops, texts, to_json,
};

/// The largest answer where the call names none, which this interface does not allow.
const MOST_OUTPUT: u64 = 4096;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Part<'a>>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_sequences: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

#[derive(Serialize)]
struct CountBody<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Part<'a>>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<&'a RawValue>,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    schema: &'a RawValue,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Input<'a>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: String },
    Url { url: &'a str },
}

/// The arguments of a call, which must be an object here.
enum Input<'a> {
    Given(&'a RawValue),
    Empty,
}

impl Serialize for Input<'_> {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Given(json) => json.serialize(out),
            Self::Empty => serde::ser::SerializeMap::end(out.serialize_map(Some(0))?),
        }
    }
}

/// The request in JSON.
pub(super) fn write(call: &ModelCall, streamed: bool, with_form: bool) -> Result<Vec<u8>, NoPlace> {
    let Turns { mut system, turns } = turns(&call.messages, Reasoning::LeftOut)?;
    if let Some(text) = call.system.as_deref().filter(|text| !text.trim().is_empty()) {
        system.insert(0, Part::Text { text });
    }
    let schema = json_schema(call, with_form);
    let format = schema.map(|(_, schema)| Format { r#type: "json_schema", schema });
    let output_config = OutputConfig { format, effort: effort(call) };
    let is_said = output_config.format.is_some() || output_config.effort.is_some();
    Ok(to_json(&Body {
        model: &call.model,
        max_tokens: most_output(call).unwrap_or(MOST_OUTPUT),
        system,
        messages: turns,
        temperature: call.sampling.temperature,
        top_p: call.sampling.top_p,
        stop_sequences: stops(call),
        output_config: is_said.then_some(output_config),
        stream: streamed.then_some(true),
    }))
}

/// The request that asks for a count. Signed reasoning stays in it, as the model's own request has it too.
pub(super) fn write_count(request: &Request) -> Result<Vec<u8>, NoPlace> {
    let Turns { system, turns } = turns(&request.messages, Reasoning::WhereSigned)?;
    let tools: Option<Vec<&RawValue>> = request.tools.iter().map(as_it_stands).collect();
    Ok(to_json(&CountBody {
        model: &request.model.model,
        system,
        messages: turns,
        tools: tools.ok_or(NoPlace { message: 0, kind: "tool definition" })?,
    }))
}

#[derive(Clone, Copy, PartialEq)]
enum Reasoning {
    LeftOut,
    WhereSigned,
}

struct Turns<'a> {
    system: Vec<Part<'a>>,
    turns: Vec<Turn<'a>>,
}

/// Messages as turns that alternate. System messages stand in front; one in the middle has no place.
fn turns(messages: &[Message], reasoning: Reasoning) -> Result<Turns<'_>, NoPlace> {
    let mut system = Vec::new();
    let mut turns: Vec<Turn<'_>> = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        let (role, content) = match message {
            Message::System { .. } if !turns.is_empty() => {
                return Err(NoPlace { message: index, kind: "system" });
            }
            Message::System { blocks } => {
                let texts = texts(blocks, index)?.into_iter().filter(|text| !text.trim().is_empty());
                system.extend(texts.map(|text| Part::Text { text }));
                continue;
            }
            Message::User { blocks } => ("user", parts(blocks, index, Reasoning::LeftOut)?),
            Message::Assistant { blocks, usage: _ } => ("assistant", parts(blocks, index, reasoning)?),
            Message::ToolResult { blocks, tool_use_id, is_error } => {
                ("user", vec![result(tool_use_id, blocks, *is_error, index)?])
            }
        };
        match turns.last_mut() {
            // Results of calls that were made together must stand in one turn.
            Some(turn) if turn.role == role => turn.content.extend(content),
            _ if content.is_empty() => {}
            _ => turns.push(Turn { role, content }),
        }
    }
    Ok(Turns { system, turns })
}

fn parts(blocks: &[Block], index: usize, reasoning: Reasoning) -> Result<Vec<Part<'_>>, NoPlace> {
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        parts.extend(part(block, index, reasoning)?);
    }
    Ok(parts)
}

/// One block; nothing for what is left out: blank text, which is refused here, and reasoning that would not be
/// legal.
fn part(block: &Block, index: usize, reasoning: Reasoning) -> Result<Option<Part<'_>>, NoPlace> {
    let no_place = NoPlace { message: index, kind: block.kind() };
    let part = match block {
        Block::Text { text } | Block::Refusal { text } if text.trim().is_empty() => return Ok(None),
        Block::Text { text } | Block::Refusal { text } => Part::Text { text },
        Block::Image(image) => Part::Image { source: source(image).ok_or(no_place)? },
        Block::Thinking(Thinking { thinking, signature, signature_format, .. }) => {
            let signed = !signature.is_empty() && signature_format == SIGNATURE;
            if !signed || reasoning == Reasoning::LeftOut {
                return Ok(None);
            }
            Part::Thinking { thinking, signature }
        }
        Block::ToolUse(ToolUse { id, name, input, .. }) => {
            let input = match input {
                Some(input) if input.as_str().trim_start().starts_with('{') => {
                    Input::Given(as_it_stands(input).ok_or(no_place)?)
                }
                Some(_) => return Err(no_place),
                None => Input::Empty,
            };
            Part::ToolUse { id, name, input }
        }
        Block::ToolResult(given) => result(&given.tool_use_id, &given.content, given.is_error, index)?,
        _ => return Err(no_place),
    };
    Ok(Some(part))
}

fn source(image: &Image) -> Option<Source<'_>> {
    match picture_bytes(image) {
        Some((media_type, data)) => Some(Source::Base64 { media_type, data }),
        None if image.url.is_empty() => None,
        None => Some(Source::Url { url: &image.url }),
    }
}

/// A tool's answer holds text and pictures, no answers of other tools.
fn result<'a>(id: &'a str, blocks: &'a [Block], is_error: bool, index: usize) -> Result<Part<'a>, NoPlace> {
    let mut content = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Text { .. } | Block::Refusal { .. } | Block::Image(_) => {
                content.extend(part(block, index, Reasoning::LeftOut)?);
            }
            other => return Err(NoPlace { message: index, kind: other.kind() }),
        }
    }
    Ok(Part::ToolResult { tool_use_id: id, content, is_error: is_error.then_some(true) })
}
