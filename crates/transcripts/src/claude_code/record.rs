//! One record of a file.

use std::ops::Range;

use crate::Format;
use crate::faults::Faults;
use crate::json::{Kind, Value};
use crate::timestamp::millis;

/// Which form the records have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// A session file, whose records name their parents.
    Session,
    /// A printed stream, whose records follow each other.
    Stream,
}

impl Flavor {
    /// The format that has it.
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Session => Format::ClaudeCode,
            Self::Stream => Format::ClaudeStreamJson,
        }
    }

    /// The form of a format, where it is one of the two.
    pub(crate) fn of(format: Format) -> Option<Self> {
        [Self::Session, Self::Stream].into_iter().find(|flavor| flavor.format() == format)
    }
}

/// What a session is written again from.
#[derive(Clone, Debug)]
pub(crate) struct ClaudeFile {
    /// Which form the records have.
    pub(crate) flavor: Flavor,
    /// Every record of the file.
    pub(crate) records: Vec<Record>,
    /// The records of each original, by index.
    pub(crate) originals: Vec<Vec<usize>>,
    /// Attachments that are sent, each with the original that it follows.
    pub(crate) attachments: Vec<(usize, usize)>,
}

/// A record. Ranges are empty where there is no such value.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Its bytes.
    pub(crate) range: Range<usize>,
    /// What it is for us.
    pub(crate) kind: RecordKind,
    /// Its id with quotes.
    pub(crate) uuid: Range<usize>,
    /// The value of its `uuid`, which may be no id.
    pub(crate) uuid_field: Range<usize>,
    /// The value of its `parentUuid`.
    pub(crate) parent: Range<usize>,
    /// Its message.
    pub(crate) message: Range<usize>,
    /// The id of its message with quotes; one message of the model may stand in several records.
    pub(crate) message_id: Range<usize>,
    /// The id of the request that the message answers.
    pub(crate) request: Range<usize>,
    /// What a compaction says of itself.
    pub(crate) metadata: Range<usize>,
    /// Its time, as JSON.
    pub(crate) timestamp: Range<usize>,
    /// Its time in milliseconds since 1970.
    pub(crate) time: Option<u64>,
    /// Whether it belongs to an agent that the conversation started.
    pub(crate) is_agent: bool,
    /// Whether the program and not the user wrote it.
    pub(crate) is_meta: bool,
    /// Whether a stream marks it as written by the program.
    pub(crate) is_injected: bool,
    /// Whether it is the summary of a compaction.
    pub(crate) is_summary: bool,
    /// Whether the program wrote it in the model's name.
    pub(crate) is_synthetic: bool,
    /// Its number among all values of the file.
    pub(crate) number: usize,
}

/// What a record is for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// A message of the user, or with results of tools.
    User,
    /// A message of the model, or a part of one.
    Assistant,
    /// A message of a role that is not known.
    OtherRole,
    /// Where a compaction cut.
    Boundary,
    /// What the program turns into text of its own when it sends it.
    Attachment,
    /// A notice for the screen.
    Notice,
    /// The progress of a tool; older versions hang messages below it.
    Progress,
    /// Which files a message found; it names that message.
    Snapshot,
    /// A title.
    Title,
    /// What a stream opens with.
    Opening,
    /// What a run of a stream ends with.
    Result,
    /// News of a moment: an event of a stream or of the queue, or where the user was last.
    Event,
    /// A message record without a message.
    Broken,
    /// Settings and anything else that is not sent.
    Side,
}

impl RecordKind {
    /// Whether it holds a message.
    pub(crate) fn is_message(self) -> bool {
        matches!(self, Self::User | Self::Assistant | Self::OtherRole)
    }

    /// Whether records of this kind are linked to each other.
    pub(crate) fn is_linked(self) -> bool {
        self.is_message() || matches!(self, Self::Boundary | Self::Attachment | Self::Notice | Self::Progress)
    }
}

impl Record {
    fn new(value: Value<'_>, flavor: Flavor, number: usize) -> Self {
        let (found, _) = value.find([
            "type",
            "subtype",
            "uuid",
            "isSidechain",
            "agentId",
            "isMeta",
            "isCompactSummary",
            "isApiErrorMessage",
            "is_api_error_message",
            "timestamp",
            "message",
            "requestId",
            "request_id",
            "compactMetadata",
            "compact_metadata",
            "parent_tool_use_id",
            "isSynthetic",
            "parentUuid",
        ]);
        let [_, _, uuid_field, .., parent] = found;
        let found = found.map(|value| value.filter(|value| value.kind() != Kind::Null));
        let [kind, subtype, uuid, sidechain, agent, meta, summary, error, error_too, ..] = found;
        let [.., timestamp, message, request, request_too, metadata, metadata_too, caller, injected, _] =
            found;
        let is_true = |value: Option<Value<'_>>| value.is_some_and(Value::is_true);
        let message = message.filter(|message| message.is_object());
        let ([role, message_id, model], _) =
            message.map_or(([None; 3], false), |message| message.pick(["role", "id", "model"]));
        let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
        let kind = match message {
            _ if !(is("user") || is("assistant")) => other_kind(kind, subtype, flavor),
            None => RecordKind::Broken,
            Some(_) => match role.or(kind) {
                Some(role) if role.is_text("user") => RecordKind::User,
                Some(role) if role.is_text("assistant") => RecordKind::Assistant,
                _ => RecordKind::OtherRole,
            },
        };
        let is_agent = match flavor {
            Flavor::Session => is_true(sidechain) || agent.is_some(),
            Flavor::Stream => caller.is_some(),
        };
        Self {
            range: value.range(),
            kind,
            uuid: id(uuid),
            uuid_field: range(uuid_field),
            parent: range(parent),
            message: range(message),
            message_id: id(message_id),
            request: id(request.or(request_too)),
            metadata: range(metadata.or(metadata_too).filter(|metadata| metadata.is_object())),
            timestamp: id(timestamp),
            time: timestamp.and_then(|time| millis(time.inner())),
            is_agent,
            is_meta: is_true(meta),
            is_injected: is_true(injected),
            is_summary: is_true(summary) && kind == RecordKind::User,
            is_synthetic: kind == RecordKind::Assistant
                && (is_true(error) || is_true(error_too) || is_synthetic(model)),
            number,
        }
    }
}

/// The records of a source with these values.
pub(super) fn records(values: &[Value<'_>], flavor: Flavor) -> Vec<Record> {
    let objects = values.iter().enumerate().filter(|(_, value)| value.is_object());
    let mut records: Vec<Record> =
        objects.map(|(number, value)| Record::new(*value, flavor, number)).collect();
    // A stream has no mark of its own for a summary; it is what the program writes right behind the cut.
    let mut behind_cut = false;
    for record in records.iter_mut().filter(|record| flavor == Flavor::Stream && !record.is_agent) {
        record.is_summary |= behind_cut && record.is_injected && record.kind == RecordKind::User;
        if record.kind.is_linked() {
            behind_cut = record.kind == RecordKind::Boundary;
        }
    }
    records
}

/// The kind of a record that holds no message.
fn other_kind(kind: Option<Value<'_>>, subtype: Option<Value<'_>>, flavor: Flavor) -> RecordKind {
    let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
    let subtype_is = |name: &str| subtype.is_some_and(|subtype| subtype.is_text(name));
    if is("system") && subtype_is("compact_boundary") {
        RecordKind::Boundary
    } else if is("system") && flavor == Flavor::Session {
        RecordKind::Notice
    } else if is("system") && subtype_is("init") {
        RecordKind::Opening
    } else if is("attachment") {
        RecordKind::Attachment
    } else if is("progress") {
        RecordKind::Progress
    } else if is("file-history-snapshot") {
        RecordKind::Snapshot
    } else if TITLES.iter().any(|title| is(title.kind)) {
        RecordKind::Title
    } else if is("result") {
        RecordKind::Result
    } else if is("queue-operation") || is("last-prompt") || flavor == Flavor::Stream {
        RecordKind::Event
    } else {
        RecordKind::Side
    }
}

/// A kind of record that holds a title, and the fields it may stand in.
pub(super) struct Title {
    pub(super) kind: &'static str,
    pub(super) fields: [&'static str; 2],
}

/// The user's own title counts most.
pub(super) const TITLES: [Title; 3] = [
    Title { kind: "custom-title", fields: ["customTitle", "title"] },
    Title { kind: "ai-title", fields: ["aiTitle", "title"] },
    Title { kind: "summary", fields: ["summary", "title"] },
];

/// Whether a message is said to come from no model.
fn is_synthetic(model: Option<Value<'_>>) -> bool {
    model.is_some() && Faults::default().string(model) == "<synthetic>"
}

fn range(value: Option<Value<'_>>) -> Range<usize> {
    value.map_or(0..0, Value::range)
}

/// The range of a string that is not empty.
fn id(value: Option<Value<'_>>) -> Range<usize> {
    range(value.filter(|value| value.bytes().first() == Some(&b'"') && !value.inner().is_empty()))
}

/// Which of the two forms a record has, if one of them.
pub(super) fn flavor(value: Value<'_>) -> Option<Flavor> {
    /// Records that name no session in older versions.
    const NAMELESS: [&str; 2] = ["summary", "file-history-snapshot"];
    /// Records of a session that have nothing else in common.
    const LOOSE: [&str; 8] = [
        "queue-operation",
        "permission-mode",
        "mode",
        "last-prompt",
        "ai-title",
        "custom-title",
        "agent-name",
        "pr-link",
    ];
    /// Records of a stream.
    const STREAM: [&str; 6] = ["system", "user", "assistant", "result", "stream_event", "rate_limit_event"];
    let ([kind, subtype, session, uuid, message, leaf, file, stream, parent], _) = value.find([
        "type",
        "subtype",
        "sessionId",
        "uuid",
        "message",
        "leafUuid",
        "messageId",
        "session_id",
        "parentUuid",
    ]);
    let kind = kind?;
    let is_one_of = |names: &[&str]| names.iter().any(|name| kind.is_text(name));
    let message = message.filter(|message| message.is_object());
    let is_named = session.is_some() && (uuid.or(message).is_some() || is_one_of(&LOOSE))
        || uuid.is_some() && parent.is_some();
    let is_nameless = is_one_of(&NAMELESS) && leaf.or(file).is_some();
    if is_named || is_nameless {
        return Some(Flavor::Session);
    }
    let opens = kind.is_text("system") && subtype.is_some_and(|subtype| subtype.is_text("init"));
    (opens || stream.is_some() && is_one_of(&STREAM)).then_some(Flavor::Stream)
}
