//! Sessions that the tests write, and what is read from them, in short.

use epitome_loop::{Block, Message};
use epitome_transcripts::{Note, ReadOptions, Session, read};
use serde_json::{Value, json};

/// A session under way: every record gets a second of its own.
#[derive(Default)]
pub(crate) struct Log(pub(crate) Vec<Value>);

impl Log {
    pub(crate) fn record(&mut self, kind: &str, id: &str, parent: Option<&str>, more: Value) -> &mut Self {
        let second = self.0.len();
        let mut record = json!({"parentUuid": parent, "isSidechain": false, "sessionId": "s", "cwd": "/mill",
            "type": kind, "uuid": id, "timestamp": format!("2026-03-01T10:{:02}:{:02}.000Z", second / 60, second % 60)});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.0.push(record);
        self
    }

    pub(crate) fn user(&mut self, id: &str, parent: Option<&str>, text: &str) -> &mut Self {
        self.record("user", id, parent, json!({"message": {"role": "user", "content": text}}))
    }

    /// A piece of a message of the model; `message` is the id of the whole.
    pub(crate) fn piece(
        &mut self,
        id: &str,
        parent: &str,
        message: &str,
        block: Value,
        input: u64,
    ) -> &mut Self {
        let message = json!({"id": message, "type": "message", "role": "assistant", "model": "claude-x",
            "content": [block], "usage": {"input_tokens": input, "output_tokens": 1}});
        self.record("assistant", id, Some(parent), json!({"message": message}))
    }

    pub(crate) fn model(&mut self, id: &str, parent: &str, text: &str) -> &mut Self {
        self.piece(id, parent, &format!("msg_{id}"), json!({"type": "text", "text": text}), 100)
    }

    pub(crate) fn result(&mut self, id: &str, parent: &str, call: &str, text: &str) -> &mut Self {
        let block = json!({"type": "tool_result", "tool_use_id": call, "content": text});
        self.record(
            "user",
            id,
            Some(parent),
            json!({"message": {"role": "user", "content": [block]},
            "toolUseResult": {"stdout": text.repeat(50)}}),
        )
    }

    pub(crate) fn boundary(&mut self, id: &str, behind: &str, metadata: Value) -> &mut Self {
        self.record(
            "system",
            id,
            None,
            json!({"subtype": "compact_boundary", "logicalParentUuid": behind,
            "content": "Conversation compacted", "compactMetadata": metadata}),
        )
    }

    pub(crate) fn summary(&mut self, id: &str, parent: &str, text: &str) -> &mut Self {
        self.record(
            "user",
            id,
            Some(parent),
            json!({"message": {"role": "user", "content": text},
            "isCompactSummary": true, "isVisibleInTranscriptOnly": true}),
        )
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|record| (record.to_string() + "\n").into_bytes()).collect()
    }

    pub(crate) fn session(&self) -> Session {
        parse(&self.bytes())
    }
}

pub(crate) fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "f", "input": {}})
}

pub(crate) fn parse(source: &[u8]) -> Session {
    read(source, &ReadOptions::default(), &mut |_| {}).unwrap()
}

/// Each message by its first text, call or id of its call.
pub(crate) fn outline(session: &Session) -> Vec<String> {
    session.messages().iter().map(sketch).collect()
}

fn sketch(message: &Message) -> String {
    if let Message::ToolResult { tool_use_id, .. } = message {
        return format!("<{}", tool_use_id.as_str());
    }
    let blocks = message.blocks().iter().map(|block| match block {
        Block::Text { text } => text.as_str().to_owned(),
        Block::ToolUse(call) => format!(">{}", call.id.as_str()),
        other => other.kind().to_owned(),
    });
    blocks.collect::<Vec<_>>().join(" ")
}

pub(crate) fn has(session: &Session, note: Note) -> bool {
    session.notes().contains(&note)
}
