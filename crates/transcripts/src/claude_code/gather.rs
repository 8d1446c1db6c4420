//! Brings together what belongs together: the records of one message of the model, and the results of its calls.
//!
//! The model's message is written piece by piece while its tools already run, so results stand between its
//! records, or even before the record of their own call; and what hangs off an earlier piece is not on the way
//! back from the newest record.

use std::collections::{HashMap, HashSet, VecDeque};

use super::path::Path;
use super::record::{Record, RecordKind};
use crate::json::{Kind, Source, Value};

/// What is sent, in order.
#[derive(Debug)]
pub(super) enum Unit {
    /// A message of the model.
    Model {
        /// Its records.
        lines: Vec<usize>,
        /// The records with the results of its calls, in the order of the calls.
        answers: Vec<Answer>,
    },
    /// A record of the user, or with results whose call is not there.
    User(usize),
}

/// A record with results of a message's calls.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The record.
    pub(super) record: usize,
    /// The call that each of its results answers; of calls of other messages, and of those that have a result,
    /// none.
    pub(super) calls: Vec<Option<Call>>,
}

/// A call: the record it stands in, and its number there.
pub(super) type Call = (usize, usize);

/// The units of a way.
pub(super) fn gather(path: &Path, records: &[Record], source: &Source<'_>) -> Vec<Unit> {
    let mut gather = Gather::of(source, records);
    let sent = gather.with_pieces_beside(path);
    for &at in &sent {
        match records.get(at) {
            Some(record) if record.is_synthetic => {}
            Some(record) if record.kind == RecordKind::Assistant => gather.model(at, record),
            Some(record) if record.kind.is_message() => gather.user(at, record),
            _ => {}
        }
    }
    gather.results_beside(path, &sent);
    gather.units()
}

/// The calls of a message in a record, by id as it stands.
fn calls<'a>(message: Value<'a>) -> impl Iterator<Item = &'a [u8]> {
    blocks(message, b"tool_use", "id")
}

/// The calls that the results in a record answer, by id as it stands.
fn results<'a>(message: Value<'a>) -> impl Iterator<Item = &'a [u8]> {
    blocks(message, b"tool_result", "tool_use_id")
}

fn blocks<'a>(message: Value<'a>, kind: &'static [u8], id: &'static str) -> impl Iterator<Item = &'a [u8]> {
    // Most messages hold none, and looking for the word is much faster than walking the blocks.
    let holds = memchr::memmem::find(message.bytes(), kind).is_some();
    let content = message.get("content").filter(|_| holds);
    content.into_iter().flat_map(Value::elements).filter_map(move |block| {
        let ([found, id], _) = block.pick(["type", id]);
        found.filter(|found| found.inner() == kind)?;
        Some(id.map_or(&b""[..], Value::bytes))
    })
}

struct Gather<'a> {
    source: &'a Source<'a>,
    records: &'a [Record],
    units: Vec<Option<Unit>>,
    /// The message of the model that is under way: its unit, its id and the request it answers.
    under_way: Option<(usize, &'a [u8], &'a [u8])>,
    /// Calls of the message under way that wait for their results.
    open: HashMap<&'a [u8], VecDeque<Call>>,
    /// Results that came before the record of their call: their units.
    early: HashMap<&'a [u8], VecDeque<usize>>,
    /// Every call, with its unit, and those that have a result.
    calls: HashMap<&'a [u8], VecDeque<(usize, Call)>>,
    answered: HashSet<Call>,
}

impl<'a> Gather<'a> {
    fn of(source: &'a Source<'a>, records: &'a [Record]) -> Self {
        Self {
            source,
            records,
            units: Vec::new(),
            under_way: None,
            open: HashMap::new(),
            early: HashMap::new(),
            calls: HashMap::new(),
            answered: HashSet::new(),
        }
    }

    fn text(&self, range: &std::ops::Range<usize>) -> &'a [u8] {
        self.source.bytes().get(range.clone()).unwrap_or_default()
    }

    fn message(&self, record: &Record) -> Value<'a> {
        self.source.value(record.message.clone())
    }

    /// The records of the way with the other pieces of their messages, each behind the last piece on the way.
    fn with_pieces_beside(&self, path: &Path) -> Vec<usize> {
        let pieces = |at: &&usize| {
            self.records
                .get(**at)
                .is_some_and(|r| r.kind == RecordKind::Assistant && !r.message_id.is_empty())
        };
        let mut last: HashMap<&[u8], usize> = HashMap::new();
        for &at in path.records.iter().filter(pieces) {
            if let Some(record) = self.records.get(at) {
                last.insert(self.text(&record.message_id), at);
            }
        }
        let mut sent: HashSet<usize> = path.records.iter().copied().collect();
        let mut beside: HashMap<usize, Vec<usize>> = HashMap::new();
        let parents = message_parents(path, self.records);
        for (at, record) in self.records.iter().enumerate() {
            let is_live = path.live.get(at).is_some_and(|live| *live);
            if !is_live || record.kind != RecordKind::Assistant || sent.contains(&at) {
                continue;
            }
            let Some(&piece) = last.get(self.text(&record.message_id)) else { continue };
            // A piece of a message that was left behind hangs off what was left behind.
            let hangs = parents.get(at).copied().flatten().is_some_and(|parent| sent.contains(&parent));
            let same = self.records.get(piece).is_some_and(|piece| self.is_same_request(piece, record));
            if hangs && same {
                beside.entry(piece).or_default().push(at);
                sent.insert(at);
            }
        }
        let with_beside = |at: &usize| {
            std::iter::once(*at).chain(beside.get(at).into_iter().flatten().copied()).collect::<Vec<_>>()
        };
        path.records.iter().flat_map(with_beside).collect()
    }

    fn is_same_request(&self, one: &Record, other: &Record) -> bool {
        let (one, other) = (self.text(&one.request), self.text(&other.request));
        one.is_empty() || other.is_empty() || one == other
    }

    fn model(&mut self, at: usize, record: &Record) {
        let (id, request) = (self.text(&record.message_id), self.text(&record.request));
        let continued = self.under_way.filter(|(_, under_way, under_request)| {
            !id.is_empty()
                && id == *under_way
                && (request.is_empty() || under_request.is_empty() || request == *under_request)
        });
        let unit = match continued {
            Some((unit, ..)) => unit,
            None => {
                self.close();
                self.units.push(Some(Unit::Model { lines: Vec::new(), answers: Vec::new() }));
                self.units.len() - 1
            }
        };
        self.under_way = Some((unit, id, request));
        if let Some(Some(Unit::Model { lines, .. })) = self.units.get_mut(unit) {
            lines.push(at);
        }
        for (number, id) in calls(self.message(record)).enumerate() {
            let call = (at, number);
            let early = self.early.get_mut(id).and_then(VecDeque::pop_front);
            let early = early.and_then(|early| self.units.get_mut(early)?.take());
            match early {
                Some(Unit::User(result)) => {
                    self.answered.insert(call);
                    let mut call = Some(call);
                    let answered = self.results_of(result);
                    let calls =
                        answered.into_iter().map(|answered| call.take_if(|_| answered == id)).collect();
                    self.answer(unit, Answer { record: result, calls });
                }
                _ => {
                    self.open.entry(id).or_default().push_back(call);
                    self.calls.entry(id).or_default().push_back((unit, call));
                }
            }
        }
    }

    fn user(&mut self, at: usize, record: &Record) {
        if record.kind == RecordKind::OtherRole {
            // Whatever it holds answers nothing.
            return self.units.push(Some(Unit::User(at)));
        }
        let ids = self.results_of(at);
        let calls: Vec<Option<Call>> =
            ids.iter().map(|id| self.open.get_mut(id).and_then(VecDeque::pop_front)).collect();
        self.answered.extend(calls.iter().flatten());
        match self.under_way {
            Some((unit, ..)) if calls.iter().any(Option::is_some) => {
                self.answer(unit, Answer { record: at, calls });
            }
            _ => {
                for id in ids {
                    self.early.entry(id).or_default().push_back(self.units.len());
                }
                self.units.push(Some(Unit::User(at)));
            }
        }
        if !record.is_meta && has_words(self.message(record)) {
            self.close();
        }
    }

    /// Ends the message under way. The user has spoken or the model goes on, so its calls are answered or
    /// never will be.
    fn close(&mut self) {
        self.under_way = None;
        self.open.clear();
        self.early.clear();
    }

    fn answer(&mut self, unit: usize, answer: Answer) {
        if let Some(Some(Unit::Model { answers, .. })) = self.units.get_mut(unit) {
            answers.push(answer);
        }
    }

    /// Adds the results that are not on the way.
    fn results_beside(&mut self, path: &Path, sent: &[usize]) {
        let mut sent: HashSet<usize> = sent.iter().copied().collect();
        let parents = message_parents(path, self.records);
        for (at, record) in self.records.iter().enumerate() {
            let is_live = path.live.get(at).is_some_and(|live| *live);
            let hangs = parents.get(at).copied().flatten().is_some_and(|parent| sent.contains(&parent));
            if !is_live || !hangs || record.kind != RecordKind::User || sent.contains(&at) {
                continue;
            }
            let mut answers = None;
            let mut calls = Vec::new();
            for id in self.results_of(at) {
                let found = self.next_unanswered(id);
                answers = answers.or(found.map(|(unit, _)| unit));
                calls.push(found.map(|(_, call)| call));
            }
            if let Some(unit) = answers {
                self.answer(unit, Answer { record: at, calls });
                sent.insert(at);
            }
        }
    }

    /// The oldest call of an id that has no result; it has one from now on.
    fn next_unanswered(&mut self, id: &[u8]) -> Option<(usize, Call)> {
        let calls = self.calls.get_mut(id)?;
        while let Some(found) = calls.pop_front() {
            if self.answered.insert(found.1) {
                return Some(found);
            }
        }
        None
    }

    fn results_of(&self, at: usize) -> Vec<&'a [u8]> {
        self.records.get(at).map_or_else(Vec::new, |record| results(self.message(record)).collect())
    }

    fn units(self) -> Vec<Unit> {
        let mut units: Vec<Unit> = self.units.into_iter().flatten().collect();
        for unit in &mut units {
            if let Unit::Model { lines, answers } = unit {
                lines.sort_unstable();
                answers.sort_by_key(|answer| answer.calls.iter().flatten().next().copied());
            }
        }
        units
    }
}

/// The message that each record follows, whatever stands between.
fn message_parents(path: &Path, records: &[Record]) -> Vec<Option<usize>> {
    let mut found: Vec<Option<usize>> = Vec::with_capacity(records.len());
    for parent in &path.parents {
        let is_message = |at: &usize| records.get(*at).is_some_and(|record| record.kind.is_message());
        let parent = match parent {
            Some(at) if is_message(at) => Some(*at),
            // Parents stand before their children, apart from files that were put together by hand.
            Some(at) => found.get(*at).copied().flatten(),
            None => None,
        };
        found.push(parent);
    }
    found
}

/// Whether a message of the user holds more than results.
fn has_words(message: Value<'_>) -> bool {
    let is_result = |block: Value<'_>| block.get("type").is_some_and(|kind| kind.is_text("tool_result"));
    match message.get("content") {
        None => false,
        Some(content) if content.kind() == Kind::String => !content.inner().is_empty(),
        Some(content) => content.elements().any(|block| !is_result(block)),
    }
}
