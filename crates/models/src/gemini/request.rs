//! Requests for `generateContent`.

use std::collections::BTreeMap;

use epitome_loop::{Block, Message, ModelCall, RawJson, Request, ToolUse};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::dialect::NoPlace;
use crate::request_parts::{
    as_it_stands, effort, json_schema, most_output, picture_bytes, stops, texts, to_json,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<Config<'a>>,
}

/// A count is asked for a whole request, as only that has room for instructions and tools.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CountBody<'a> {
    generate_content_request: Body<'a>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_sequences: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig<'a> {
    thinking_level: &'a str,
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Part<'a> {
    Text(&'a str),
    #[serde(rename_all = "camelCase")]
    InlineData {
        mime_type: &'a str,
        data: String,
    },
    #[serde(rename_all = "camelCase")]
    FileData {
        #[serde(skip_serializing_if = "str::is_empty")]
        mime_type: &'a str,
        file_uri: &'a str,
    },
    FunctionCall {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        args: Option<&'a RawValue>,
    },
    FunctionResponse {
        name: &'a str,
        response: Answered,
    },
}

/// What a tool answered, in the field that the interface's documents name.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Answered {
    Output(String),
    Error(String),
}

/// The request in JSON.
pub(super) fn write(call: &ModelCall, with_form: bool) -> Result<Vec<u8>, NoPlace> {
    let Contents { mut system, contents } = contents(&call.messages)?;
    if let Some(text) = call.system.as_deref().filter(|text| !text.is_empty()) {
        system.insert(0, Part::Text(text));
    }
    let schema = json_schema(call, with_form).map(|(_, schema)| schema);
    let config = Config {
        max_output_tokens: most_output(call),
        temperature: call.sampling.temperature,
        top_p: call.sampling.top_p,
        stop_sequences: stops(call),
        thinking_config: effort(call).map(|thinking_level| ThinkingConfig { thinking_level }),
        response_mime_type: schema.is_some().then_some("application/json"),
        response_json_schema: schema,
    };
    Ok(to_json(&Body {
        model: None,
        system_instruction: instruction(system),
        contents,
        tools: Vec::new(),
        generation_config: Some(config),
    }))
}

/// The request that asks for a count.
pub(super) fn write_count(request: &Request) -> Result<Vec<u8>, NoPlace> {
    let Contents { system, contents } = contents(&request.messages)?;
    let tools: Option<Vec<&RawValue>> = request.tools.iter().map(as_it_stands).collect();
    let name = request.model.model.as_str();
    let name = name.strip_prefix("models/").unwrap_or(name);
    Ok(to_json(&CountBody {
        generate_content_request: Body {
            model: Some(format!("models/{name}")),
            system_instruction: instruction(system),
            contents,
            tools: tools.ok_or(NoPlace { message: 0, kind: "tool definition" })?,
            generation_config: None,
        },
    }))
}

fn instruction(parts: Vec<Part<'_>>) -> Option<Instruction<'_>> {
    (!parts.is_empty()).then_some(Instruction { parts })
}

struct Contents<'a> {
    system: Vec<Part<'a>>,
    contents: Vec<Content<'a>>,
}

/// Messages as contents that alternate. System messages stand in front; one in the middle has no place.
fn contents(messages: &[Message]) -> Result<Contents<'_>, NoPlace> {
    let mut system = Vec::new();
    let mut contents: Vec<Content<'_>> = Vec::with_capacity(messages.len());
    // A result names its tool here, where other interfaces name the call.
    let mut names = BTreeMap::new();
    for (index, message) in messages.iter().enumerate() {
        let (role, parts) = match message {
            Message::System { .. } if !contents.is_empty() => {
                return Err(NoPlace { message: index, kind: "system" });
            }
            Message::System { blocks } => {
                system.extend(texts(blocks, index)?.into_iter().map(Part::Text));
                continue;
            }
            Message::User { blocks } => ("user", parts(blocks, index, &mut names)?),
            Message::Assistant { blocks, usage: _ } => ("model", parts(blocks, index, &mut names)?),
            Message::ToolResult { blocks, tool_use_id, is_error } => {
                ("user", vec![result(tool_use_id, blocks, *is_error, index, &names)?])
            }
        };
        match contents.last_mut() {
            Some(content) if content.role == role => content.parts.extend(parts),
            _ if parts.is_empty() => {}
            _ => contents.push(Content { role, parts }),
        }
    }
    Ok(Contents { system, contents })
}

/// Reasoning is left out: its signatures are legal only in their place and for their model.
fn parts<'a>(
    blocks: &'a [Block],
    index: usize,
    names: &mut BTreeMap<&'a str, &'a str>,
) -> Result<Vec<Part<'a>>, NoPlace> {
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        let no_place = NoPlace { message: index, kind: block.kind() };
        parts.push(match block {
            Block::Text { text } | Block::Refusal { text } if text.is_empty() => continue,
            Block::Text { text } | Block::Refusal { text } => Part::Text(text),
            Block::Thinking(_) => continue,
            Block::Image(image) => match picture_bytes(image) {
                Some((mime_type, data)) => Part::InlineData { mime_type, data },
                None if image.url.is_empty() => return Err(no_place),
                None => Part::FileData { mime_type: &image.media_type, file_uri: &image.url },
            },
            Block::ToolUse(ToolUse { id, name, input, .. }) => {
                names.insert(id.as_str(), name.as_str());
                let args = match input {
                    Some(input) => Some(arguments(input).ok_or(no_place)?),
                    None => None,
                };
                Part::FunctionCall { name, args }
            }
            Block::ToolResult(given) => {
                result(&given.tool_use_id, &given.content, given.is_error, index, names)?
            }
            _ => return Err(no_place),
        });
    }
    Ok(parts)
}

/// Arguments must be an object here.
fn arguments(input: &RawJson) -> Option<&RawValue> {
    as_it_stands(input).filter(|json| json.get().starts_with('{'))
}

fn result<'a>(
    id: &str,
    blocks: &[Block],
    is_error: bool,
    index: usize,
    names: &BTreeMap<&'a str, &'a str>,
) -> Result<Part<'a>, NoPlace> {
    let name = names.get(id).ok_or(NoPlace { message: index, kind: "tool_result" })?;
    let text = texts(blocks, index)?.join("\n");
    let response = if is_error { Answered::Error(text) } else { Answered::Output(text) };
    Ok(Part::FunctionResponse { name, response })
}
