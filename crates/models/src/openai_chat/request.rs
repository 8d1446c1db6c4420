//! Requests for chat completions.

use epitome_loop::{AnswerForm, Block, Message, ModelCall, ToolUse};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::ChatServer;
use crate::dialect::NoPlace;
use crate::request_parts::{effort, json_schema, most_output, picture_url, stops, texts, to_json};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grammar: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    json_schema: Schema<'a>,
}

#[derive(Serialize)]
struct Schema<'a> {
    name: &'a str,
    strict: bool,
    schema: &'a RawValue,
}

#[derive(Serialize, Default)]
struct Entry<'a> {
    role: &'static str,
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

/// Plain text where it can be, as some servers take nothing else.
enum Content<'a> {
    Text(String),
    Parts(Vec<Part<'a>>),
}

impl Serialize for Content<'_> {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => out.serialize_str(text),
            Self::Parts(parts) => parts.serialize(out),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// The request in JSON.
pub(super) fn write(
    call: &ModelCall,
    server: ChatServer,
    streamed: bool,
    with_form: bool,
) -> Result<Vec<u8>, NoPlace> {
    let most = most_output(call);
    let (max_tokens, max_completion_tokens) = match server {
        ChatServer::OpenAi => (None, most),
        ChatServer::LlamaCpp | ChatServer::Ollama | ChatServer::LmStudio | ChatServer::Compatible => {
            (most, None)
        }
    };
    let schema = json_schema(call, with_form);
    let grammar = match (&call.answer_form, server) {
        (Some(AnswerForm::Gbnf(grammar)), ChatServer::LlamaCpp) if with_form => Some(grammar.as_str()),
        _ => None,
    };
    let mut messages = Vec::with_capacity(call.messages.len() + 1);
    if let Some(system) = &call.system {
        messages.push(text_entry("system", system.as_str().to_owned()));
    }
    for (index, message) in call.messages.iter().enumerate() {
        push_message(&mut messages, message, index)?;
    }
    Ok(to_json(&Body {
        model: &call.model,
        messages,
        max_tokens,
        max_completion_tokens,
        temperature: call.sampling.temperature,
        top_p: call.sampling.top_p,
        stop: stops(call),
        reasoning_effort: effort(call),
        response_format: schema.map(|(name, schema)| Format {
            r#type: "json_schema",
            json_schema: Schema { name, strict: true, schema },
        }),
        grammar,
        stream: streamed.then_some(true),
        // Without it the events say nothing about usage.
        stream_options: streamed.then_some(StreamOptions { include_usage: true }),
    }))
}

fn text_entry<'a>(role: &'static str, text: String) -> Entry<'a> {
    Entry { role, content: Some(Content::Text(text)), ..Entry::default() }
}

fn tool_entry<'a>(id: &'a str, blocks: &'a [Block], index: usize) -> Result<Entry<'a>, NoPlace> {
    // A tool's answer is text here: it has no place for pictures.
    let text = texts(blocks, index)?.join("\n");
    Ok(Entry { tool_call_id: Some(id), ..text_entry("tool", text) })
}

fn push_message<'a>(entries: &mut Vec<Entry<'a>>, message: &'a Message, index: usize) -> Result<(), NoPlace> {
    match message {
        Message::System { blocks } => {
            entries.push(text_entry("system", texts(blocks, index)?.join("\n\n")));
        }
        Message::ToolResult { blocks, tool_use_id, is_error: _ } => {
            entries.push(tool_entry(tool_use_id, blocks, index)?);
        }
        Message::User { blocks } => push_user(entries, blocks, index)?,
        Message::Assistant { blocks, usage: _ } => entries.extend(assistant_entry(blocks, index)?),
    }
    Ok(())
}

fn push_user<'a>(entries: &mut Vec<Entry<'a>>, blocks: &'a [Block], index: usize) -> Result<(), NoPlace> {
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Text { text } if text.is_empty() => {}
            Block::Text { text } => parts.push(Part::Text { text }),
            Block::Image(image) => {
                let url = picture_url(image).ok_or(NoPlace { message: index, kind: block.kind() })?;
                parts.push(Part::ImageUrl { image_url: ImageUrl { url } });
            }
            // Answers of tools stand in messages of their own, in front of what the user adds.
            Block::ToolResult(result) => {
                entries.push(tool_entry(&result.tool_use_id, &result.content, index)?);
            }
            other => return Err(NoPlace { message: index, kind: other.kind() }),
        }
    }
    let content = match parts.as_slice() {
        [] => return Ok(()),
        [Part::Text { text }] => Content::Text((*text).to_owned()),
        _ => Content::Parts(parts),
    };
    entries.push(Entry { role: "user", content: Some(content), ..Entry::default() });
    Ok(())
}

/// Reasoning is left out: there is no place for it. A message of nothing else is none.
fn assistant_entry(blocks: &[Block], index: usize) -> Result<Option<Entry<'_>>, NoPlace> {
    let mut entry = Entry { role: "assistant", ..Entry::default() };
    let (mut said, mut refused) = (Vec::new(), Vec::new());
    for block in blocks {
        match block {
            Block::Text { text } => said.push(text.as_str()),
            Block::Refusal { text } => refused.push(text.as_str()),
            Block::ToolUse(ToolUse { id, name, input, .. }) => {
                let arguments = input.as_ref().map_or("{}", |input| input.as_str());
                entry.tool_calls.push(Call {
                    id,
                    r#type: "function",
                    function: Function { name, arguments },
                });
            }
            Block::Thinking(_) => {}
            other => return Err(NoPlace { message: index, kind: other.kind() }),
        }
    }
    let joined = |texts: Vec<&str>| Some(texts.concat()).filter(|text| !text.is_empty());
    entry.content = joined(said).map(Content::Text);
    entry.refusal = joined(refused);
    let is_empty = entry.content.is_none() && entry.refusal.is_none() && entry.tool_calls.is_empty();
    Ok((!is_empty).then_some(entry))
}
