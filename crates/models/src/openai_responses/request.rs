//! Requests for Responses.

use epitome_loop::{Block, Message, ModelCall, RawJson, Request, ToolUse};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::dialect::NoPlace;
use crate::request_parts::{as_it_stands, effort, json_schema, most_output, picture_url, texts, to_json};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    /// The provider is not to keep the conversation.
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

#[derive(Serialize)]
struct CountBody<'a> {
    model: &'a str,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<&'a RawValue>,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    name: &'a str,
    strict: bool,
    schema: &'a RawValue,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message { role: &'static str, content: Vec<Part<'a>> },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: &'a str },
    FunctionCallOutput { call_id: &'a str, output: Vec<Part<'a>> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText { text: &'a str },
    InputImage { image_url: String },
    OutputText { text: &'a str },
    Refusal { refusal: &'a str },
}

/// The request in JSON.
///
/// Texts that end an answer have no place here and are not sent.
pub(super) fn write(call: &ModelCall, streamed: bool, with_form: bool) -> Result<Vec<u8>, NoPlace> {
    let format = json_schema(call, with_form).map(|(name, schema)| Format {
        r#type: "json_schema",
        name,
        strict: true,
        schema,
    });
    Ok(to_json(&Body {
        model: &call.model,
        instructions: call.system.as_ref().map(|system| system.as_str()),
        input: items(&call.messages)?,
        max_output_tokens: most_output(call),
        temperature: call.sampling.temperature,
        top_p: call.sampling.top_p,
        reasoning: effort(call).map(|effort| Reasoning { effort }),
        text: format.map(|format| Text { format }),
        store: false,
        stream: streamed.then_some(true),
    }))
}

/// The request that asks for a count.
pub(super) fn write_count(request: &Request) -> Result<Vec<u8>, NoPlace> {
    let tools: Option<Vec<&RawValue>> = request.tools.iter().map(as_it_stands).collect();
    Ok(to_json(&CountBody {
        model: &request.model.model,
        input: items(&request.messages)?,
        tools: tools.ok_or(NoPlace { message: 0, kind: "tool definition" })?,
    }))
}

fn items(messages: &[Message]) -> Result<Vec<Item<'_>>, NoPlace> {
    let mut items = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        push_message(&mut items, message, index)?;
    }
    Ok(items)
}

fn push_message<'a>(items: &mut Vec<Item<'a>>, message: &'a Message, index: usize) -> Result<(), NoPlace> {
    match message {
        Message::System { blocks } => {
            let content = texts(blocks, index)?.into_iter().map(|text| Part::InputText { text }).collect();
            push_said(items, "system", content);
        }
        Message::ToolResult { blocks, tool_use_id, is_error: _ } => {
            items.push(Item::FunctionCallOutput { call_id: tool_use_id, output: seen(blocks, index)? });
        }
        Message::User { blocks } => {
            let mut rest = Vec::with_capacity(blocks.len());
            for block in blocks.iter() {
                match block {
                    Block::ToolResult(result) => items.push(Item::FunctionCallOutput {
                        call_id: &result.tool_use_id,
                        output: seen(&result.content, index)?,
                    }),
                    other => rest.extend(seen_block(other, index)?),
                }
            }
            push_said(items, "user", rest);
        }
        Message::Assistant { blocks, usage: _ } => push_assistant(items, blocks, index)?,
    }
    Ok(())
}

fn push_said<'a>(items: &mut Vec<Item<'a>>, role: &'static str, content: Vec<Part<'a>>) {
    if !content.is_empty() {
        items.push(Item::Message { role, content });
    }
}

/// What a model is given to see.
fn seen(blocks: &[Block], index: usize) -> Result<Vec<Part<'_>>, NoPlace> {
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        parts.extend(seen_block(block, index)?);
    }
    Ok(parts)
}

fn seen_block(block: &Block, index: usize) -> Result<Option<Part<'_>>, NoPlace> {
    let no_place = NoPlace { message: index, kind: block.kind() };
    match block {
        Block::Text { text } if text.is_empty() => Ok(None),
        Block::Text { text } => Ok(Some(Part::InputText { text })),
        Block::Image(image) => Ok(Some(Part::InputImage { image_url: picture_url(image).ok_or(no_place)? })),
        _ => Err(no_place),
    }
}

/// Reasoning is left out: only items of the same model with their ids would be legal.
fn push_assistant<'a>(items: &mut Vec<Item<'a>>, blocks: &'a [Block], index: usize) -> Result<(), NoPlace> {
    let mut said = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text } if text.is_empty() => {}
            Block::Text { text } => said.push(Part::OutputText { text }),
            Block::Refusal { text } => said.push(Part::Refusal { refusal: text }),
            Block::Thinking(_) => {}
            Block::ToolUse(ToolUse { id, name, input, .. }) => {
                // What was said before a call stays before it.
                push_said(items, "assistant", std::mem::take(&mut said));
                let arguments = input.as_ref().map_or("{}", RawJson::as_str);
                items.push(Item::FunctionCall { call_id: id, name, arguments });
            }
            other => return Err(NoPlace { message: index, kind: other.kind() }),
        }
    }
    push_said(items, "assistant", said);
    Ok(())
}
