//! A case as it stands in its file, and its messages in our words.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use epitome_loop::{
    Block, Blocks, Image, Message, Opaque, RawJson, SharedText, Thinking, ToolResult, ToolUse,
};
use serde_json::{Map, Value};

/// A case file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The file or folder cannot be read.
    #[error("the case cannot be read")]
    Read,
    /// The file is not JSON.
    #[error("the case is not JSON")]
    Json,
    /// A macro is not one of the two forms.
    #[error("the case holds a macro that is not understood")]
    Macro,
    /// A part is missing or has another form.
    #[error("the case's {0} is not understood")]
    Part(&'static str),
    /// An expectation that no check exists for.
    #[error("the case expects `{0}`, for which there is no check")]
    Expectation(String),
    /// The runtime for the asynchronous ports cannot be started.
    #[error("there is no runtime to run on")]
    Runtime,
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// The kind of fault.
    pub kind: String,
    pub(super) policy: Value,
    pub(super) messages: Vec<CaseMessage>,
    pub(super) raw_lines: Vec<String>,
    /// What the model answers, when the case scripts it.
    pub(super) answer: Option<String>,
    pub(super) events: Vec<Value>,
    pub(super) expect: Map<String, Value>,
}

/// A message of a case.
#[derive(Clone, Debug)]
pub(super) struct CaseMessage {
    pub(super) id: String,
    pub(super) role: String,
    pub(super) blocks: Vec<Value>,
}

/// A message of ours and the name that the case gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) id: String,
    pub(super) message: Message,
}

impl Case {
    pub(super) fn from_json(value: Value) -> Result<Self, CaseError> {
        let strings = |list: &Value| -> Option<Vec<String>> {
            list.as_array()?.iter().map(|line| line.as_str().map(str::to_owned)).collect()
        };
        let messages = list(&value["messages"]).iter().map(CaseMessage::from_json);
        Ok(Self {
            id: string(&value, "id").ok_or(CaseError::Part("id"))?,
            kind: string(&value, "kind").ok_or(CaseError::Part("kind"))?,
            policy: value["policy"].clone(),
            messages: messages.collect::<Result<_, _>>()?,
            raw_lines: match &value["raw_lines"] {
                Value::Null => Vec::new(),
                lines => strings(lines).ok_or(CaseError::Part("raw_lines"))?,
            },
            answer: string(&value["summary"], "text"),
            events: list(&value["events"]).to_vec(),
            expect: value["expect"].as_object().cloned().unwrap_or_default(),
        })
    }

    /// Sizes before and after successive compactions, where the case gives only these.
    pub(super) fn passes(&self) -> Vec<(u64, u64)> {
        let passes = self.events.iter().filter(|event| event["op"] == "pass");
        passes.filter_map(|pass| Some((pass["before"].as_u64()?, pass["after"].as_u64()?))).collect()
    }

    /// Index of the first message whose role nobody knows.
    pub(super) fn unknown_role(&self) -> Option<usize> {
        let known = ["user", "assistant", "system", "developer", "tool"];
        self.messages.iter().position(|message| !known.contains(&message.role.as_str()))
    }

    /// The messages in our words. A message with several tool results becomes several of ours, with one name.
    pub(super) fn session(&self) -> Result<Vec<Named>, CaseError> {
        let mut session = Vec::new();
        for message in &self.messages {
            let parts = message.parts()?;
            session.extend(parts.into_iter().map(|part| Named { id: message.id.clone(), message: part }));
        }
        Ok(session)
    }
}

impl CaseMessage {
    fn from_json(value: &Value) -> Result<Self, CaseError> {
        Ok(Self {
            id: string(value, "id").ok_or(CaseError::Part("message id"))?,
            role: string(value, "role").ok_or(CaseError::Part("message role"))?,
            blocks: list(&value["blocks"]).to_vec(),
        })
    }

    fn parts(&self) -> Result<Vec<Message>, CaseError> {
        let is_result = |block: &Value| block["type"] == "tool_result";
        let mut parts = Vec::new();
        for run in self.blocks.chunk_by(|left, right| !is_result(left) && !is_result(right)) {
            match run {
                [result] if is_result(result) => parts.push(Message::ToolResult {
                    blocks: blocks(&result["content"])?,
                    tool_use_id: text(result, "tool_use_id"),
                    is_error: result["is_error"] == true,
                }),
                run => parts.push(self.spoken(run.iter().map(block).collect::<Result<_, _>>()?)?),
            }
        }
        if parts.is_empty() {
            parts.push(self.spoken(Blocks::default())?);
        }
        Ok(parts)
    }

    fn spoken(&self, blocks: Blocks) -> Result<Message, CaseError> {
        match self.role.as_str() {
            "user" => Ok(Message::User { blocks }),
            "assistant" => Ok(Message::Assistant { blocks, usage: None }),
            "system" | "developer" => Ok(Message::System { blocks }),
            _ => Err(CaseError::Part("message role")),
        }
    }
}

fn blocks(value: &Value) -> Result<Blocks, CaseError> {
    match value {
        Value::String(text) => Ok([Block::text(text.as_str())].into()),
        value => list(value).iter().map(block).collect(),
    }
}

fn block(value: &Value) -> Result<Block, CaseError> {
    let kind = value["type"].as_str().ok_or(CaseError::Part("block type"))?;
    Ok(match kind {
        "text" => Block::Text { text: text(value, "text") },
        "refusal" => Block::Refusal { text: text(value, "text") },
        "json" => Block::text(value["value"].to_string()),
        "image" => {
            let data = STANDARD.decode(text(value, "data").as_bytes());
            Block::Image(Image {
                media_type: text(value, "media_type"),
                url: text(value, "url"),
                data: Some(data.map_err(|_| CaseError::Part("image data"))?.into()),
            })
        }
        "thinking" => {
            let thinking = if value["thinking"].is_null() { "text" } else { "thinking" };
            Block::Thinking(Thinking::new(
                text(value, thinking),
                text(value, "signature"),
                SharedText::from("case"),
                None,
            ))
        }
        "tool_use" => {
            let input = RawJson::parse(value["input"].to_string()).map_err(|_| CaseError::Part("tool input"))?;
            Block::ToolUse(ToolUse::new(text(value, "id"), text(value, "name"), Some(input), None))
        }
        "tool_result" => Block::ToolResult(ToolResult {
            tool_use_id: text(value, "tool_use_id"),
            content: blocks(&value["content"])?,
            is_error: value["is_error"] == true,
        }),
        provider => Block::Opaque(Opaque {
            kind: SharedText::from(provider),
            raw: RawJson::parse(value.to_string()).map_err(|_| CaseError::Part("block"))?,
        }),
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

fn text(value: &Value, key: &str) -> SharedText {
    SharedText::from(value[key].as_str().unwrap_or_default())
}
