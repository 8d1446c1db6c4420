//! Which records of a session file lead to the newest one.

use std::collections::HashMap;
use std::ops::Range;

use crate::json::Value;

/// What a pi session is written again from.
#[derive(Clone, Debug)]
pub(crate) struct PiFile {
    /// The record that opens the file; `None` when it is damaged.
    pub(crate) header: Option<Range<usize>>,
    /// Whether records name their parents.
    pub(crate) is_tree: bool,
    /// The records that lead to the newest one, oldest first, the header not included.
    pub(crate) records: Vec<Record>,
}

/// A record on the way to the newest one.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Its bytes.
    pub(crate) range: Range<usize>,
    /// What it is for us.
    pub(crate) kind: RecordKind,
    /// The value of its `id`, with quotes where it is one; empty where there is none.
    pub(crate) id: Range<usize>,
    /// The value of its `parentId`; empty where there is none.
    pub(crate) parent: Range<usize>,
    /// Its message; empty where there is none.
    pub(crate) message: Range<usize>,
    /// Its number among all values of the file, the header being 0 even when it is damaged.
    pub(crate) number: usize,
}

/// What a record is for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// It is sent, or was.
    Message,
    /// A compaction.
    Compaction,
    /// A name for another record.
    Label,
    /// Settings and anything else that is not sent.
    Side,
}

impl Record {
    fn new(value: Value<'_>, number: usize) -> Self {
        let ([kind, id, parent, message], _) = value.find(["type", "id", "parentId", "message"]);
        let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
        let range = |value: Option<Value<'_>>| value.map_or(0..0, Value::range);
        let kind = if is("message") || is("custom_message") || is("branch_summary") {
            RecordKind::Message
        } else if is("compaction") {
            RecordKind::Compaction
        } else if is("label") {
            RecordKind::Label
        } else {
            RecordKind::Side
        };
        Self {
            range: value.range(),
            kind,
            id: range(id),
            parent: range(parent),
            message: range(message.filter(|message| message.is_object())),
            number,
        }
    }
}

/// Whether JSON is an id that other records may name.
pub(crate) fn is_id(json: &[u8]) -> bool {
    json.starts_with(b"\"")
}

/// The records that lead to the newest one, and how many were left on other branches.
///
/// A record whose parent is not in the file continues the record before it when the file is damaged, since
/// then the parent was on the damaged line; otherwise the way begins there.
pub(crate) fn path(behind_header: &[Value<'_>], source: &[u8], damaged: bool) -> (bool, Vec<Record>, u64) {
    let records: Vec<Record> = behind_header
        .iter()
        .zip(1..)
        .filter(|(value, _)| value.is_object())
        .map(|(value, number)| Record::new(*value, number))
        .collect();
    let text = |range: &Range<usize>| source.get(range.clone()).unwrap_or_default();
    if !records.iter().any(|record| is_id(text(&record.id)) && !record.parent.is_empty()) {
        return (false, records, 0);
    }
    let by_id: HashMap<&[u8], usize> = records
        .iter()
        .enumerate()
        .filter(|(_, record)| is_id(text(&record.id)))
        .map(|(at, record)| (text(&record.id), at))
        .collect();
    let mut on_path = vec![false; records.len()];
    let mut next = records.len().checked_sub(1);
    while let Some(at) = next {
        let Some(record) = records.get(at) else { break };
        // A circle of parents would never end.
        match on_path.get_mut(at) {
            Some(seen) if !*seen => *seen = true,
            _ => break,
        }
        next = match by_id.get(text(&record.parent)) {
            Some(&parent) => Some(parent),
            None if text(&record.parent) != b"null" && damaged => at.checked_sub(1),
            None => None,
        };
    }
    let total = records.len();
    let mut flags = on_path.into_iter();
    let path: Vec<Record> = records.into_iter().filter(|_| flags.next().unwrap_or(false)).collect();
    let left = (total - path.len()) as u64;
    (true, path, left)
}
