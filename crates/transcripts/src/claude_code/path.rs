//! Which records are sent: the way from the newest message back to the root, or to the newest compaction.
//!
//! Turned back by the user, a session forks, and so does one whose model calls several tools at once. The rules
//! are those by which Claude Code itself picks up a session: of the messages that nothing follows, the newest
//! one counts; messages that a compaction kept are hung behind its summary.

use std::collections::{HashMap, HashSet};

use super::compaction::Preserved;
use super::record::{Flavor, Record, RecordKind};
use crate::json::Source;

/// The records that are sent.
#[derive(Debug, Default)]
pub(super) struct Path {
    /// Them and what stands between them, oldest first, from the newest compaction on.
    pub(super) records: Vec<usize>,
    /// The parent of every record, before compactions moved any.
    pub(super) parents: Vec<Option<usize>>,
    /// Which records take part in the conversation, on the way or not.
    pub(super) live: Vec<bool>,
    /// The newest compaction that is in force.
    pub(super) boundary: Option<usize>,
    /// The place in the file from which on the context was what it is now; figures from before it are void.
    pub(super) since: usize,
    /// How many records on the way name a parent that is not there.
    pub(super) missing: u64,
    /// How many records were passed over because they stand in the file again.
    pub(super) repeated: u64,
}

pub(super) fn path(records: &[Record], source: &Source<'_>, flavor: Flavor) -> Path {
    let mut links = Links::of(records, source, flavor);
    let preserved = links.relink();
    let Some(start) = links.newest(&preserved) else {
        return Path {
            parents: links.parents,
            live: links.live,
            repeated: links.repeated,
            ..Path::default()
        };
    };
    let (way, missing) = links.way(start);
    let is_boundary = |at: &usize| records.get(*at).is_some_and(|record| record.kind == RecordKind::Boundary);
    let boundary = way.iter().rposition(is_boundary);
    let behind = boundary.map_or(0, |at| at + 1);
    let summaries: Vec<usize> = (behind..)
        .zip(way.iter().skip(behind))
        .filter(|(_, at)| records.get(**at).is_some_and(|record| record.is_summary))
        .map(|(place, _)| place)
        .collect();
    // Each compaction has one summary. A second one belongs to a compaction whose own record is lost, or to a
    // version that wrote none.
    let (from, boundary) = match (summaries.as_slice(), boundary) {
        ([.., _, last], _) | ([last], None) => (*last, None),
        (_, boundary) => (boundary.unwrap_or(0), boundary),
    };
    let compacted = from > 0 || boundary.is_some() || !summaries.is_empty();
    Path {
        since: way.get(from).copied().filter(|_| compacted).unwrap_or(0),
        boundary: boundary.and_then(|at| way.get(at).copied()),
        records: way.into_iter().skip(from).collect(),
        parents: links.parents,
        live: links.live,
        missing,
        repeated: links.repeated,
    }
}

/// How the records hang together.
struct Links<'a> {
    records: &'a [Record],
    source: &'a Source<'a>,
    by_uuid: HashMap<&'a [u8], usize>,
    live: Vec<bool>,
    parents: Vec<Option<usize>>,
    /// Records whose parent is not there.
    orphans: HashSet<usize>,
    /// Parents that compactions gave to the messages they kept.
    moved: HashMap<usize, usize>,
    /// What followed the key follows the value now: the last message that was kept behind it.
    followed: HashMap<usize, usize>,
    repeated: u64,
}

impl<'a> Links<'a> {
    fn of(records: &'a [Record], source: &'a Source<'a>, flavor: Flavor) -> Self {
        // The file of an agent holds nothing but its own records.
        let agent_alone = !records.iter().any(|record| record.kind.is_message() && !record.is_agent);
        let live = |record: &Record| record.kind.is_linked() && (agent_alone || !record.is_agent);
        let mut links = Self {
            records,
            source,
            by_uuid: HashMap::new(),
            live: records.iter().map(live).collect(),
            parents: Vec::new(),
            orphans: HashSet::new(),
            moved: HashMap::new(),
            followed: HashMap::new(),
            repeated: 0,
        };
        let linked = flavor == Flavor::Session && links.are_linked();
        links.pass_over_repeated(linked);
        links.pass_over_unfinished_compactions();
        links.find_parents(linked);
        links
    }

    fn text(&self, range: &std::ops::Range<usize>) -> &'a [u8] {
        self.source.bytes().get(range.clone()).unwrap_or_default()
    }

    fn live(&self) -> impl DoubleEndedIterator<Item = (usize, &'a Record)> {
        let live = self.live.iter().zip(self.records).enumerate();
        live.filter(|(_, (live, _))| **live).map(|(at, (_, record))| (at, record))
    }

    /// Whether any record names another one as its parent. In files where none does, each record simply
    /// follows the one before it.
    fn are_linked(&self) -> bool {
        let ids: HashSet<&[u8]> = self
            .live()
            .filter(|(_, record)| !record.uuid.is_empty())
            .map(|(_, r)| self.text(&r.uuid))
            .collect();
        self.live().any(|(_, record)| {
            let parent = self.text(&record.parent);
            parent != self.text(&record.uuid) && ids.contains(parent)
        })
    }

    /// Of records that stand in the file several times, the first counts where they are alike, else the last.
    fn pass_over_repeated(&mut self, linked: bool) {
        let live: Vec<usize> = self.live().map(|(at, _)| at).collect();
        for at in live {
            let Some(record) = self.records.get(at).filter(|record| !record.uuid.is_empty()) else {
                continue;
            };
            let Some(earlier) = self.by_uuid.insert(self.text(&record.uuid), at) else { continue };
            let alike = self
                .records
                .get(earlier)
                .is_some_and(|earlier| self.text(&earlier.range) == self.text(&record.range));
            let passed_over = if alike {
                self.by_uuid.insert(self.text(&record.uuid), earlier);
                at
            } else {
                earlier
            };
            // Without links there is no telling that the later one stands for the earlier one.
            if (alike || linked)
                && let Some(live) = self.live.get_mut(passed_over)
            {
                *live = false;
                self.repeated += 1;
            }
        }
    }

    /// A compaction with nothing behind it and nothing kept is being written just now; what it is about to
    /// replace is still there.
    fn pass_over_unfinished_compactions(&mut self) {
        let last: Vec<usize> = self
            .live()
            .rev()
            .take_while(|(_, record)| !record.kind.is_message())
            .filter(|(_, record)| record.kind == RecordKind::Boundary)
            .filter(|(_, record)| Preserved::of(record, self.source, &self.by_uuid).is_nothing())
            .map(|(at, _)| at)
            .collect();
        for at in last {
            if let Some(live) = self.live.get_mut(at) {
                *live = false;
            }
        }
    }

    fn find_parents(&mut self, linked: bool) {
        let mut parents = vec![None; self.records.len()];
        let mut orphans = HashSet::new();
        let mut before = None;
        for (at, record) in self.live() {
            let parent = match self.text(&record.parent) {
                _ if record.kind == RecordKind::Boundary => None,
                _ if !linked => before,
                b"null" => None,
                id => match self.by_uuid.get(id) {
                    Some(&parent) if parent != at => Some(parent),
                    Some(_) => None,
                    None => {
                        orphans.insert(at);
                        before
                    }
                },
            };
            if let Some(slot) = parents.get_mut(at) {
                *slot = parent;
            }
            before = Some(at);
        }
        self.parents = parents;
        self.orphans = orphans;
    }

    /// The parent of a record as things stand after the compactions.
    fn parent(&self, at: usize) -> Option<usize> {
        if let Some(parent) = self.moved.get(&at) {
            return Some(*parent);
        }
        let parent = self.parents.get(at).copied()??;
        Some(self.followed.get(&parent).copied().filter(|last| *last != at).unwrap_or(parent))
    }

    /// Hangs what compactions kept behind them. The messages that the last one kept are returned.
    fn relink(&mut self) -> HashSet<usize> {
        let boundaries: Vec<usize> =
            self.live().filter(|(_, record)| record.kind == RecordKind::Boundary).map(|(at, _)| at).collect();
        let summaries = self.summaries();
        let mut kept = HashSet::new();
        for &boundary in &boundaries {
            let Some(record) = self.records.get(boundary) else { continue };
            let preserved = Preserved::of(record, self.source, &self.by_uuid);
            let summary = || summaries.get(&boundary).copied();
            let anchor = preserved.anchor.or_else(summary).unwrap_or(boundary);
            let is_last = Some(&boundary) == boundaries.last();
            let messages = match (preserved.listed.as_slice(), preserved.ends) {
                ([], None) => continue,
                // That those in between hang together matters for the newest one alone.
                ([], Some((head, tail))) if !is_last => {
                    self.moved.insert(head, anchor);
                    self.followed.insert(anchor, tail);
                    continue;
                }
                ([], Some((head, tail))) => self.segment(head, tail),
                (listed, _) => listed.to_vec(),
            };
            let mut before = anchor;
            for &message in messages.iter().filter(|message| **message != anchor) {
                self.moved.insert(message, before);
                before = message;
            }
            if before != anchor {
                self.followed.insert(anchor, before);
            }
            if is_last {
                kept.extend(messages);
            }
        }
        kept
    }

    /// The summary that stands behind each compaction.
    fn summaries(&self) -> HashMap<usize, usize> {
        let mut summaries = HashMap::new();
        let mut next = None;
        for (at, record) in self.live().rev() {
            if record.is_summary {
                next = Some(at);
            } else if record.kind == RecordKind::Boundary {
                summaries.extend(next.take().map(|summary| (at, summary)));
            }
        }
        summaries
    }

    /// The records from `head` to `tail`; none when the way from one to the other is broken.
    fn segment(&self, head: usize, tail: usize) -> Vec<usize> {
        let mut seen = HashSet::new();
        let mut segment = Vec::new();
        let mut next = Some(tail);
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            segment.push(at);
            if at == head {
                segment.reverse();
                return segment;
            }
            next = self.parent(at);
        }
        Vec::new()
    }

    /// Where the way begins: at the newest message that nothing follows, or at what hangs behind it.
    fn newest(&self, kept: &HashSet<usize>) -> Option<usize> {
        let last = self.live().rev().find(|(_, record)| record.kind == RecordKind::Boundary);
        let last = last.map_or(0, |(at, _)| at);
        let has_child: HashSet<usize> = self.live().filter_map(|(at, _)| self.parent(at)).collect();
        let mut times = Vec::with_capacity(self.records.len());
        for record in self.records {
            times.push(record.time.or_else(|| times.last().copied().flatten()));
        }
        let mut seen = HashSet::new();
        let (mut newest, mut newest_in_force) = (None, None);
        for (end, _) in self.live().filter(|(at, _)| !has_child.contains(at)) {
            // What is no message stands for the message it follows.
            let mut next = Some(end);
            while let Some(at) = next.filter(|at| seen.insert(*at)) {
                if self.records.get(at).is_some_and(|record| record.kind.is_message()) {
                    let candidate = Some(((times.get(at).copied().flatten(), at), end));
                    newest = newest.max(candidate);
                    if at >= last || kept.contains(&at) {
                        newest_in_force = newest_in_force.max(candidate);
                    }
                    break;
                }
                next = self.parent(at);
            }
        }
        // What a compaction says of the messages it kept may be broken; then it is better to send more.
        newest_in_force.or(newest).map(|(_, end)| end)
    }

    /// The records from the root to `start`, and how many of them have lost their parents.
    fn way(&self, start: usize) -> (Vec<usize>, u64) {
        let mut seen = HashSet::new();
        let mut way = Vec::new();
        let mut missing = 0;
        let mut next = Some(start);
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            way.push(at);
            next = self.parent(at);
            missing +=
                u64::from(next.is_some() && self.orphans.contains(&at) && !self.moved.contains_key(&at));
        }
        way.reverse();
        (way, missing)
    }
}
