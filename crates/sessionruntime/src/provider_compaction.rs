//! Compactions of a provider: an item that stands for everything before it, and that nobody else can read.

use epitome_loop::{Block, Message, Opaque};

/// What providers call such items.
const KINDS: [&str; 3] = ["compaction", "compaction_summary", "context_compaction"];

/// Under which keys of an item its content stands.
const CONTENT_KEYS: [&str; 3] = ["\"content\"", "\"encrypted_content\"", "\"encrypted\""];

/// Whether a message holds a compaction of the provider. It stands for everything before it, which therefore need not
/// be sent any more.
///
/// Only what the model said counts, and what a reader of transcripts put in the system's name: neither a user nor a
/// tool can forge one. An item without content is a compaction that failed, and stands for nothing.
#[must_use]
pub fn is_provider_compaction(message: &Message) -> bool {
    let is_said_by_model = matches!(message, Message::Assistant { .. } | Message::System { .. });
    let is_item =
        |block: &Block| matches!(block, Block::Opaque(opaque) if is_kind(opaque) && has_content(opaque));
    is_said_by_model && message.blocks().iter().any(is_item)
}

fn is_kind(opaque: &Opaque) -> bool {
    KINDS.contains(&opaque.kind.as_str())
}

/// Looks for the keys in the text of the item: inside a string its quotes would be escaped.
fn has_content(opaque: &Opaque) -> bool {
    let is_value = |rest: &str| {
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
        value.is_some_and(|value| ["null", "\"\"", "[]"].iter().all(|empty| !value.starts_with(empty)))
    };
    let raw = opaque.raw.as_str();
    CONTENT_KEYS.iter().any(|key| raw.split(key).skip(1).any(is_value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::RawJson;

    fn item(kind: &str, raw: &str) -> Block {
        Block::Opaque(Opaque { kind: kind.into(), raw: RawJson::parse(raw.to_owned()).unwrap() })
    }

    fn said(blocks: impl Into<epitome_loop::Blocks>) -> Message {
        Message::Assistant { blocks: blocks.into(), usage: None }
    }

    #[test]
    fn only_an_item_with_content_that_the_model_said_is_one() {
        let sealed = r#"{"type":"compaction","encrypted_content": "gAAA"}"#;
        for is in [
            said([item("compaction", sealed)]),
            said([
                Block::text("before"),
                item("compaction", r#"{"content":"a summary","type":"compaction"}"#),
            ]),
            said([item("context_compaction", sealed)]),
            Message::System { blocks: [item("compaction_summary", r#"{"encrypted":"x"}"#)].into() },
        ] {
            assert!(is_provider_compaction(&is), "{is:?}");
        }
        for is_not in [
            said([item("compaction", r#"{"type":"compaction","content":null}"#)]),
            said([item("compaction", r#"{"type":"compaction","content": ""}"#)]),
            said([item("compaction", r#"{"type":"content","note":"\"content\":1"}"#)]),
            said([item("compaction_trigger", sealed)]),
            said([Block::text(sealed)]),
            Message::User { blocks: [item("compaction", sealed)].into() },
            Message::ToolResult {
                blocks: [item("compaction", sealed)].into(),
                tool_use_id: "t".into(),
                is_error: false,
            },
        ] {
            assert!(!is_provider_compaction(&is_not), "{is_not:?}");
        }
    }
}
