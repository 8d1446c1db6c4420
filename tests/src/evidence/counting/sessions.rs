//! Figures along a session: each answer of the model came with what its request took.
//!
//! A log leaves out the system prompt and the tools. They are the same from step to step, so what one step added
//! can be compared although the whole cannot.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use epitome_counters::{ContentClass, ErrorBand, HeuristicEstimator, LocalCounter, model_info};
use epitome_loop::{Block, Message, ModelKey, TextEstimator as _, Usage};
use epitome_transcripts::{Format, ReadOptions, Session, read};
use serde_json::Value;

use super::records::name_of;
use super::requests::{LeftOut, family_of, request_of};
use super::row::{Row, Subject};
use crate::evidence::EvidenceError;

/// Steps are joined until our count of what they added is at least this: below, marks outweigh text.
const SMALLEST_GROWTH: u64 = 300;

/// A stretch with fewer tokens says little about sums.
const SMALLEST_STRETCH: u64 = 5_000;

const INTERRUPTED: &str = "a turn was interrupted; what was sent next is not in the file";
const SHRANK: &str = "the context shrank; it was rewritten in between";
const CHANGED: &str = "a setting changed in between, and with it what is sent beside the file";
const UNCACHED: &str =
    "nothing was found in the cache any more; what stands before the messages may have changed";
const UNANSWERED: &str = "a call has no result; what was sent in its place is not in the file";

/// The rows of every session log among the files.
pub(super) fn rows(files: &[PathBuf], left_out: &mut LeftOut) -> Result<Vec<Row>, EvidenceError> {
    let mut rows = Vec::new();
    for file in files {
        let bytes = fs::read(file)?;
        let mut log = Log::new(file, &bytes);
        // What an earlier compaction replaced can be seen in the file as it was before that compaction.
        for end in compactions(&bytes).into_iter().chain([bytes.len()]) {
            if let Some(session) = bytes.get(..end).and_then(read_log) {
                log.follow(&session, tokens_before(bytes.get(end..).unwrap_or_default()));
            }
        }
        rows.append(&mut log.rows);
        for (reason, places) in log.left_out {
            left_out.entry(reason).or_default().extend(places);
        }
    }
    Ok(rows)
}

/// A session whose answers carry figures, as it was before each of its native compactions, and as it is.
pub(in crate::evidence) fn states(bytes: &[u8]) -> Vec<Session> {
    let ends = compactions(bytes).into_iter().chain([bytes.len()]);
    ends.filter_map(|end| bytes.get(..end).and_then(read_log)).collect()
}

/// A session whose answers carry figures.
fn read_log(bytes: &[u8]) -> Option<Session> {
    let session = read(bytes, &ReadOptions::default(), &mut |_| {}).ok()?;
    let counted = session.messages().iter().filter(|message| input_of(message).is_some()).count();
    (counted >= 2).then_some(session)
}

/// Where the records of native compactions of pi begin.
fn compactions(bytes: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(COMPACTION.len()).enumerate();
    windows.filter(|&(_, window)| window == COMPACTION).map(|(at, _)| at).collect()
}

/// What a compaction record says that the context took before it.
fn tokens_before(record: &[u8]) -> Option<u64> {
    let record = serde_json::Deserializer::from_slice(record).into_iter::<Value>().next()?.ok()?;
    record["tokensBefore"].as_u64()
}

const COMPACTION: &[u8] = b"{\"type\":\"compaction\"";

/// What a model's answer says that its request took: new and cached input.
fn input_of(message: &Message) -> Option<u64> {
    let Message::Assistant { usage: Some(usage), .. } = message else { return None };
    let tokens = usage.context_tokens().ok()?.get();
    (tokens > 0).then_some(tokens)
}

/// The rows of one file.
struct Log {
    name: String,
    /// Answers that cannot be compared with the one before, by what the records between them say.
    gaps: HashMap<StepKey, &'static str>,
    /// Steps that are in the table already: a session shows steps that a compaction kept a second time.
    seen: HashSet<StepKey>,
    rows: Vec<Row>,
    left_out: BTreeMap<&'static str, Vec<String>>,
}

/// A step is known by its figures.
type StepKey = [u64; 4];

/// Whether a step left something in the cache that the next one would find.
fn is_cached([_, _, read, written]: StepKey) -> bool {
    read > 0 || written > 0
}

fn key_of(usage: &Usage) -> StepKey {
    [usage.input, usage.output, usage.cache_read, usage.cache_creation].map(|tokens| tokens.get())
}

impl Log {
    fn new(file: &Path, bytes: &[u8]) -> Self {
        Self {
            name: name_of(file),
            gaps: gaps_before(bytes),
            seen: HashSet::new(),
            rows: Vec::new(),
            left_out: BTreeMap::new(),
        }
    }

    /// Follows the steps of a session and compares what they added.
    fn follow(&mut self, session: &Session, tokens_before: Option<u64>) {
        let Some(named) = session.model() else { return };
        let info = model_info(&named.model);
        let counter = info.as_ref().and_then(|info| LocalCounter::new(info, true).ok());
        let counter = counter.unwrap_or_else(|| LocalCounter::for_unknown_model(family_of(session.format())));
        let model = info.map_or_else(|| named.clone(), |info| info.key);
        let steps = steps(session, &counter, &model);
        // Other programs put text of their own between the messages and leave it out of their files.
        let source = Source { model, is_whole: session.format() == Format::PiSession };
        let mut growth = Growth::default();
        let mut stretch = Growth::default();
        for pair in steps.windows(2) {
            let [before, step] = pair else { continue };
            let between = session.messages().get(before.at..step.at).unwrap_or_default();
            let is_new = self.seen.insert(step.key);
            let gap = self.gap(before, step, between);
            if is_new && gap.is_none() {
                growth.add(before, step, between);
                stretch.add(before, step, between);
                if growth.ours >= SMALLEST_GROWTH {
                    let subject = subject_of(&growth.messages);
                    self.take(std::mem::take(&mut growth), step, subject, &source);
                }
                continue;
            }
            if let Some(reason) = gap.filter(|_| is_new) {
                let place = self.place(step);
                self.left_out.entry(reason).or_default().push(place);
            }
            growth = Growth::default();
            self.close(std::mem::take(&mut stretch), before, &source);
        }
        let Some(last) = steps.last() else { return };
        self.close(stretch, last, &source);
        let whole = counter.range(&request_of(session, &source.model, session.messages().len()));
        if let (Some(theirs), Ok(whole)) = (tokens_before, whole) {
            // The program that wrote the file said so, not the provider.
            let ours = last.theirs + whole.tokens.get().saturating_sub(last.ours);
            let growth = Growth { ours, theirs, messages: Vec::new() };
            self.take(growth, last, Subject::Anchored, &source);
        }
    }

    fn close(&mut self, stretch: Growth, last: &Step, source: &Source) {
        if stretch.ours >= SMALLEST_STRETCH {
            self.take(stretch, last, Subject::Stretch, source);
        }
    }

    fn take(&mut self, growth: Growth, step: &Step, subject: Subject, source: &Source) {
        let model = &source.model;
        self.rows.push(Row {
            place: self.place(step),
            provider: model.provider.as_str().to_owned(),
            model: model.model.as_str().to_owned(),
            subject,
            ours: growth.ours,
            theirs: growth.theirs,
            band: step.band,
            is_judged: source.is_whole && subject != Subject::Anchored,
        });
    }

    fn place(&self, step: &Step) -> String {
        format!("{} at {} tokens", self.name, step.theirs)
    }

    /// Why what lies between two answers cannot be compared, if it cannot.
    fn gap(&self, before: &Step, step: &Step, between: &[Message]) -> Option<&'static str> {
        let (answer, others) = between.split_first()?;
        let interrupted = others.iter().any(|message| matches!(message, Message::Assistant { .. }));
        let is_answer = |message: &Message, id: &str| match message {
            Message::ToolResult { tool_use_id, .. } => tool_use_id == id,
            _ => false,
        };
        let answered = |id: &str| others.iter().any(|message| is_answer(message, id));
        if let Some(reason) = self.gaps.get(&step.key) {
            Some(reason)
        } else if interrupted {
            Some(INTERRUPTED)
        } else if !answer.tool_calls().all(|call| answered(&call.id)) {
            Some(UNANSWERED)
        } else if step.theirs <= before.theirs {
            Some(SHRANK)
        } else if is_cached(before.key) && step.key[2] == 0 {
            Some(UNCACHED)
        } else {
            None
        }
    }
}

/// Where the figures of a session come from.
struct Source {
    model: ModelKey,
    /// Whether the file holds all that was sent between two answers.
    is_whole: bool,
}

/// An answer of the model: what its request took, by both.
struct Step {
    /// Index of the answer.
    at: usize,
    ours: u64,
    theirs: u64,
    band: ErrorBand,
    key: StepKey,
}

fn steps(session: &Session, counter: &LocalCounter, model: &ModelKey) -> Vec<Step> {
    let step = |(at, message): (usize, &Message)| {
        let theirs = input_of(message)?;
        let Message::Assistant { usage: Some(usage), .. } = message else { return None };
        let range = counter.range(&request_of(session, model, at)).ok()?;
        Some(Step { at, ours: range.tokens.get(), theirs, band: range.band(), key: key_of(usage) })
    };
    session.messages().iter().enumerate().filter_map(step).collect()
}

/// What some steps in a row added.
#[derive(Default)]
struct Growth {
    ours: u64,
    theirs: u64,
    messages: Vec<Message>,
}

impl Growth {
    fn add(&mut self, before: &Step, step: &Step, between: &[Message]) {
        // Reasoning that is dropped when a turn ends can make a step add less than nothing.
        self.ours = (self.ours + step.ours).saturating_sub(before.ours);
        self.theirs = (self.theirs + step.theirs).saturating_sub(before.theirs);
        self.messages.extend_from_slice(between);
    }
}

/// What most of the text in some messages is.
fn subject_of(messages: &[Message]) -> Subject {
    let mut by_class: BTreeMap<ContentClass, u64> = BTreeMap::new();
    let mut has_image = false;
    for block in messages.iter().flat_map(|message| message.blocks().iter()) {
        let text = match block {
            Block::Text { text } => text.as_str(),
            Block::Thinking(thinking) => thinking.thinking.as_str(),
            Block::ToolUse(call) => call.input.as_ref().map_or("", |input| input.as_str()),
            Block::Image(_) => {
                has_image = true;
                continue;
            }
            _ => continue,
        };
        *by_class.entry(ContentClass::of(text)).or_default() += HeuristicEstimator.estimate(text).get();
    }
    let total: u64 = by_class.values().sum();
    let largest = by_class.into_iter().max_by_key(|&(_, tokens)| tokens);
    match largest.filter(|&(_, tokens)| tokens * 10 >= total * 7) {
        _ if has_image => Subject::Image,
        Some((ContentClass::Prose, _)) => Subject::Prose,
        Some((ContentClass::Code, _)) => Subject::Code,
        Some((ContentClass::Json, _)) => Subject::Json,
        Some((ContentClass::Log, _)) => Subject::Log,
        Some((ContentClass::Sealed, _)) => Subject::Sealed,
        Some((ContentClass::OtherLanguage, _)) => Subject::OtherLanguage,
        Some((ContentClass::Blank, _)) => Subject::Blank,
        None => Subject::Mixed,
    }
}

/// The answers of a pi session that cannot be compared with the one before: a setting was changed in between,
/// or a turn ended without an answer.
fn gaps_before(bytes: &[u8]) -> HashMap<StepKey, &'static str> {
    let mut gaps = HashMap::new();
    let mut gap = None;
    for line in bytes.split(|&byte| byte == b'\n') {
        let mut stream = serde_json::Deserializer::from_slice(line).into_iter::<Value>();
        while let Some(Ok(record)) = stream.next() {
            match record["type"].as_str() {
                Some("thinking_level_change" | "model_change") => gap = Some(CHANGED),
                Some("message") if record["message"]["usage"].is_object() => {
                    let usage = &record["message"]["usage"];
                    let tokens = |key: &str| usage[key].as_u64().unwrap_or(0);
                    let key = ["input", "output", "cacheRead", "cacheWrite"].map(tokens);
                    let ended_early =
                        ["aborted", "error"].iter().any(|end| record["message"]["stopReason"] == *end);
                    if key != [0; 4] {
                        gaps.extend(gap.take().map(|reason| (key, reason)));
                    }
                    if ended_early || key == [0; 4] {
                        gap = gap.or(Some(INTERRUPTED));
                    }
                }
                _ => {}
            }
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session in which each turn adds a text that takes as many tokens for both, and figures to match.
    fn log(lines: &[String]) -> (Vec<Row>, LeftOut) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log.jsonl");
        let head = r#"{"type":"session","id":"1","cwd":"/"}"#.to_owned();
        fs::write(&file, [&[head], lines].concat().join("\n")).unwrap();
        let mut left_out = LeftOut::new();
        (rows(&[file], &mut left_out).unwrap(), left_out)
    }

    fn user(words: usize) -> String {
        let text = "The committee agreed on the proposal. ".repeat(words);
        format!(r#"{{"type":"message","message":{{"role":"user","content":"{text}"}}}}"#)
    }

    fn answer(input: u64, cached: u64) -> String {
        format!(
            r#"{{"type":"message","message":{{"role":"assistant","api":"anthropic-messages","provider":"anthropic","model":"claude-opus-4-5","content":[{{"type":"text","text":"Noted."}}],"usage":{{"input":{input},"output":5,"cacheRead":{cached},"cacheWrite":0}}}}}}"#
        )
    }

    #[test]
    fn steps_are_compared_by_what_they_added_whatever_came_before() {
        let lines =
            [user(1), answer(4_000, 0), user(100), answer(4_700, 0), user(100), answer(700, 4_700), user(1)];
        let (rows, left_out) = log(&lines);
        assert_eq!(left_out, LeftOut::new());
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert_eq!(row.theirs, 700);
            assert!((600..900).contains(&row.ours), "{}", row.ours);
            assert_eq!(row.subject, Subject::Prose);
        }
    }

    #[test]
    fn what_is_not_in_the_file_is_not_compared() {
        let changed = r#"{"type":"thinking_level_change","thinkingLevel":"high"}"#.to_owned();
        let silent = r#"{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"I"}],"usage":{"input":0}}}"#.to_owned();
        for (between, reason) in [(changed, CHANGED), (silent, INTERRUPTED)] {
            let lines = [user(1), answer(4_000, 0), between, user(100), answer(9_000, 0)];
            let (rows, left_out) = log(&lines);
            assert_eq!(rows, []);
            assert_eq!(left_out.keys().copied().collect::<Vec<_>>(), [reason]);
        }
        let (rows, left_out) = log(&[user(100), answer(4_000, 0), user(1), answer(900, 0)]);
        assert_eq!((rows.len(), left_out.keys().copied().collect::<Vec<_>>()), (0, vec![SHRANK]));
    }

    #[test]
    fn steps_before_a_compaction_are_seen_once() {
        let compaction = r#"{"type":"compaction","summary":"s","firstKeptEntryIndex":3,"tokensBefore":9}"#;
        let lines = [
            user(1),
            answer(4_000, 0),
            user(100),
            answer(4_700, 0),
            compaction.to_owned(),
            user(1),
            answer(900, 0),
            user(100),
            answer(1_600, 0),
        ];
        let (rows, left_out) = log(&lines);
        assert_eq!(rows.iter().map(|row| row.theirs).collect::<Vec<_>>(), [700, 9, 700]);
        assert!(!rows[1].is_judged && rows[1].ours >= 4_700, "{}", rows[1].ours);
        // What was kept has no figure from before any more.
        assert_eq!(left_out, LeftOut::new());
    }
}
