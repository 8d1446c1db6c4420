//! How the records that we add are written in each of the two forms.

use epitome_loop::{SharedText, TokenCount};

use super::record::{ClaudeFile, Flavor};
use crate::Session;
use crate::json::{Object, Source, Value, object};
use crate::source_id::id_of;

/// What every record of a session repeats.
const REPEATED: [&str; 8] =
    ["userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "slug", "agentId"];

/// The form of the records of one source.
pub(super) struct Form {
    flavor: Flavor,
    /// What every record repeats, as JSON.
    repeated: Vec<(&'static str, Vec<u8>)>,
    /// Whether the source is the session of an agent that another session started.
    is_agent: bool,
    /// The call that started the agent, as JSON.
    caller: Vec<u8>,
}

/// A record with a message.
pub(super) struct NewMessage<'a> {
    /// `user` or `assistant`.
    pub(super) kind: &'a str,
    /// The message, as JSON.
    pub(super) message: &'a [u8],
    /// Whether it is the summary of a compaction.
    pub(super) is_summary: bool,
    /// Ids of the record before it and its own, and its time, as JSON.
    pub(super) parent: &'a [u8],
    pub(super) id: &'a [u8],
    pub(super) time: &'a [u8],
}

/// The record of a compaction.
pub(super) struct NewBoundary<'a> {
    /// The context before it.
    pub(super) before: TokenCount,
    /// Ids as JSON: of the messages that stay, which stand before it, of its summary, and its own.
    pub(super) kept: &'a [Vec<u8>],
    pub(super) summary: &'a [u8],
    pub(super) id: &'a [u8],
    pub(super) time: &'a [u8],
}

impl Form {
    /// The form of the newest message of a source.
    pub(super) fn of(session: &Session, file: &ClaudeFile) -> Self {
        let source = Source::small(&session.source);
        let messages = || file.records.iter().rev().filter(|record| record.kind.is_message());
        let is_agent = messages().next().is_some() && messages().all(|record| record.is_agent);
        let newest = || {
            let own = messages().filter(|record| record.is_agent == is_agent);
            own.map(|record| source.value(record.range.clone()))
        };
        let own = || format!("\"{}\"", id_of(&session.source)).into_bytes();
        let (repeated, caller) = match file.flavor {
            Flavor::Session => match newest().find(|value| value.get("sessionId").is_some()) {
                Some(newest) => (repeated(newest, REPEATED), None),
                None => {
                    let cwd = session.cwd().map_or(".", SharedText::as_str);
                    let cwd = serde_json::to_vec(cwd).unwrap_or_else(|_| b"\".\"".to_vec());
                    let external = b"\"external\"".to_vec();
                    (vec![("userType", external), ("cwd", cwd), ("sessionId", own())], None)
                }
            },
            Flavor::Stream => {
                let named = newest().find(|value| value.get("session_id").is_some());
                let repeated = named
                    .map_or_else(|| vec![("session_id", own())], |newest| repeated(newest, ["session_id"]));
                (repeated, newest().next().and_then(|newest| newest.get("parent_tool_use_id")))
            }
        };
        Self {
            flavor: file.flavor,
            repeated,
            is_agent,
            caller: caller.map_or(&b"null"[..], Value::bytes).to_vec(),
        }
    }

    /// A setting of a session that changes nothing.
    pub(super) fn setting(&self) -> Vec<u8> {
        object(|out| {
            out.text("type", "mode");
            out.text("mode", "normal");
            let session = self.repeated.iter().filter(|(key, _)| *key == "sessionId");
            session.for_each(|(key, id)| out.raw(key, id));
        })
    }

    /// What a stream opens with.
    pub(super) fn opening(&self, model: &str, cwd: &str, id: &[u8]) -> Vec<u8> {
        object(|out| {
            out.text("type", "system");
            out.text("subtype", "init");
            out.text("cwd", cwd);
            self.repeat(out);
            out.raw("tools", b"[]");
            out.text("model", model);
            out.raw("uuid", id);
        })
    }

    pub(super) fn message(&self, new: &NewMessage<'_>) -> Vec<u8> {
        let message = one_line(new.message);
        match self.flavor {
            Flavor::Session => object(|out| {
                out.raw("parentUuid", new.parent);
                out.boolean("isSidechain", self.is_agent);
                self.repeat(out);
                out.text("type", new.kind);
                out.raw("message", &message);
                if new.is_summary {
                    out.boolean("isCompactSummary", true);
                    out.boolean("isVisibleInTranscriptOnly", true);
                }
                out.raw("uuid", new.id);
                out.raw("timestamp", new.time);
            }),
            Flavor::Stream => object(|out| {
                out.text("type", new.kind);
                out.raw("message", &message);
                out.raw("parent_tool_use_id", &self.caller);
                self.repeat(out);
                out.raw("uuid", new.id);
                if new.is_summary {
                    out.boolean("isSynthetic", true);
                }
            }),
        }
    }

    pub(super) fn boundary(&self, new: &NewBoundary<'_>) -> Vec<u8> {
        match self.flavor {
            Flavor::Session => object(|out| {
                out.raw("parentUuid", b"null");
                out.raw("logicalParentUuid", new.kept.last().map_or(b"null", Vec::as_slice));
                out.boolean("isSidechain", self.is_agent);
                self.repeat(out);
                out.text("type", "system");
                out.text("subtype", "compact_boundary");
                out.text("content", "Conversation compacted");
                out.text("level", "info");
                out.boolean("isMeta", false);
                out.object("compactMetadata", |out| new.metadata(out, &SESSION_KEYS));
                out.raw("uuid", new.id);
                out.raw("timestamp", new.time);
            }),
            Flavor::Stream => object(|out| {
                out.text("type", "system");
                out.text("subtype", "compact_boundary");
                self.repeat(out);
                out.object("compact_metadata", |out| new.metadata(out, &STREAM_KEYS));
                out.raw("uuid", new.id);
            }),
        }
    }

    fn repeat(&self, out: &mut Object<'_>) {
        self.repeated.iter().for_each(|(key, value)| out.raw(key, value));
    }
}

impl NewBoundary<'_> {
    fn metadata(&self, out: &mut Object<'_>, keys: &Keys) {
        out.text("trigger", "manual");
        out.number(keys.before, self.before.get());
        if let (Some(first), Some(last)) = (self.kept.first(), self.kept.last()) {
            out.object(keys.segment, |out| {
                out.raw(keys.head, first);
                out.raw(keys.anchor, self.summary);
                out.raw(keys.tail, last);
            });
            out.object(keys.messages, |out| {
                out.raw(keys.anchor, self.summary);
                for key in ["uuids", keys.all] {
                    out.array(key, |list| self.kept.iter().for_each(|id| list.raw(id)));
                }
            });
        }
    }
}

/// How the fields of a compaction are called.
struct Keys {
    before: &'static str,
    segment: &'static str,
    messages: &'static str,
    head: &'static str,
    anchor: &'static str,
    tail: &'static str,
    all: &'static str,
}

const SESSION_KEYS: Keys = Keys {
    before: "preTokens",
    segment: "preservedSegment",
    messages: "preservedMessages",
    head: "headUuid",
    anchor: "anchorUuid",
    tail: "tailUuid",
    all: "allUuids",
};

const STREAM_KEYS: Keys = Keys {
    before: "pre_tokens",
    segment: "preserved_segment",
    messages: "preserved_messages",
    head: "head_uuid",
    anchor: "anchor_uuid",
    tail: "tail_uuid",
    all: "all_uuids",
};

fn repeated<const N: usize>(newest: Value<'_>, keys: [&'static str; N]) -> Vec<(&'static str, Vec<u8>)> {
    let (found, _) = newest.pick(keys);
    keys.into_iter().zip(found).filter_map(|(key, value)| Some((key, one_line(value?.bytes())))).collect()
}

/// JSON without line breaks, which would end a record.
fn one_line(json: &[u8]) -> Vec<u8> {
    // Outside of strings a line break is white space, and inside of them there is none.
    json.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}
