//! What a compaction kept of the messages before it.
//!
//! Messages that are kept stay where they are in the file, with the parents they had. The record of the
//! compaction lists them, or names the first and the last, and says behind which record they belong now.

use std::collections::HashMap;

use crate::json::{Source, Value};

use super::record::Record;

/// The messages that a compaction kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Preserved {
    /// The record they follow now; `None` where it is not named or not in the file.
    pub(super) anchor: Option<usize>,
    /// All of them, oldest first, where they are listed.
    pub(super) listed: Vec<usize>,
    /// The first and the last, where these are named.
    pub(super) ends: Option<(usize, usize)>,
}

impl Preserved {
    /// Whether it names no message.
    pub(super) fn is_nothing(&self) -> bool {
        self.listed.is_empty() && self.ends.is_none()
    }

    /// What the record of a compaction says.
    pub(super) fn of(record: &Record, source: &Source<'_>, by_uuid: &HashMap<&[u8], usize>) -> Self {
        if record.metadata.is_empty() {
            return Self::default();
        }
        let metadata = source.value(record.metadata.clone());
        let ([list, list_too, segment, segment_too], _) = metadata.pick([
            "preservedMessages",
            "preserved_messages",
            "preservedSegment",
            "preserved_segment",
        ]);
        let (list, segment) = (list.or(list_too), segment.or(segment_too));
        let find = |id: Option<Value<'_>>| by_uuid.get(id?.bytes()).copied();
        let either = |value: Option<Value<'_>>, names: [&str; 2]| {
            let ([one, other], _) = value?.pick(names);
            find(one.or(other))
        };
        let anchor = ["anchorUuid", "anchor_uuid"];
        let uuids = list.and_then(|list| list.get("uuids")).into_iter().flat_map(Value::elements);
        let head = either(segment, ["headUuid", "head_uuid"]);
        let tail = either(segment, ["tailUuid", "tail_uuid"]);
        Self {
            anchor: either(list, anchor).or_else(|| either(segment, anchor)),
            listed: uuids.filter_map(|id| find(Some(id))).collect(),
            ends: head.zip(tail),
        }
    }
}
