//! Reads the conversation once and keeps what may be worth telling.

use std::borrow::Cow;

use epitome_loop::{Block, MAX_BLOCK_DEPTH, Message, Section, SummarySections};

use super::calls::{Call, arguments};
use super::cues::Cues;
use super::goal::NO_GOAL;
use super::identifiers::{Identifiers, Source};
use super::ledger::is_ledger_line;
use super::phrases::{cues_in, find_reports};
use super::pool::Pool;
use super::recognize::Content;
use super::scoring::Conversation;
use super::standing::{after_openings, first_word_of};
use super::statement::{ASSISTANT_MARK, Origin, Place, Statement};
use super::statements::{each_statement, is_code_like, is_put_there, is_tool_output, split_label};
use super::values::{Value, ValueKind, ValueKinds};
use super::words::{Key, KeyMap, KeySet, key};

/// Of a tool's answer, this much of the beginning and of the end is looked at.
const TOOL_TEXT_ENDS: usize = 4096;
/// Of a tool's answer, at most this many lines that report an error are kept, the last ones.
const TOOL_ERROR_LINES: usize = 6;
/// A tool's answer of at most this many bytes is a statement as a whole.
const SHORT_TOOL_ANSWER: usize = 160;
/// A tool's answer of at most this many bytes that holds an error is a failure, and nothing but one.
const SHORT_FAILURE: usize = 400;
/// So many of the user's first statements may become the goal.
const OPENING_STATEMENTS: usize = 12;
/// Text that is said this often without any value in it is boilerplate.
const BOILERPLATE: u32 = 3;

/// Items of a previous summary that say nothing.
pub(crate) const EMPTY_ITEM: &str = "none";

/// What was read.
pub(crate) struct Reading<'t> {
    /// The statements worth considering, in order.
    pub(crate) statements: Vec<Statement<'t>>,
    /// How many statements were worth selecting but are not even considered, by section.
    pub(crate) overflow: [u64; 5],
    /// In how many statements each content word stands.
    pub(crate) frequency: KeyMap<u32>,
    /// How many statements there are in all.
    pub(crate) statement_count: usize,
    /// Names, paths and numbers that were mentioned.
    pub(crate) identifiers: Identifiers<'t>,
    /// The tool calls, in order.
    pub(crate) calls: Vec<Call<'t>>,
    /// Messages, by index, in which a tool failed that succeeded later.
    pub(crate) overcome: KeySet,
    /// Whether tools were used at all.
    pub(crate) uses_tools: bool,
    /// The conversation's size and last user message.
    pub(crate) conversation: Conversation,
}

/// Reads a conversation and the summary that stands before it.
pub(crate) fn read<'t>(
    messages: &'t [Message],
    previous: Option<&'t SummarySections>,
    instructions: Option<&str>,
) -> Reading<'t> {
    let mut reader = Reader::new(messages, instructions);
    if let Some(previous) = previous {
        reader.read_previous(previous);
    }
    for (index, message) in messages.iter().enumerate() {
        let origin = match message {
            Message::User { .. } => Origin::User,
            Message::System { .. } => Origin::System,
            Message::Assistant { .. } => Origin::Assistant,
            Message::ToolResult { .. } => Origin::Tool,
        };
        reader.message = index;
        reader.line = 0;
        if let Message::ToolResult { tool_use_id, is_error, .. } = message {
            reader.open_answer(tool_use_id, *is_error);
        }
        reader.read_blocks(message.blocks(), origin, MAX_BLOCK_DEPTH);
    }
    reader.finish()
}

struct Reader<'t> {
    conversation: Conversation,
    pool: Pool<'t>,
    openings: usize,
    frequency: KeyMap<u32>,
    statement_count: usize,
    repeats: KeyMap<u32>,
    identifiers: Identifiers<'t>,
    calls: Vec<Call<'t>>,
    /// The latest call with each id.
    call_of_id: KeyMap<usize>,
    answers: Answers,
    uses_tools: bool,
    message: usize,
    line: usize,
    content: Content,
    lower: Vec<u8>,
    /// Where a part of an answer may report an error or an outcome.
    reports: Vec<usize>,
}

/// What the tools answered, for telling failures that were overcome from those that were not.
#[derive(Default)]
struct Answers {
    /// The tool whose answer is read, and the call it answers.
    tool: Key,
    call: Option<usize>,
    is_error: bool,
    /// The tool that each answer came from.
    tool_of_message: KeyMap<Key>,
    /// The message of each tool's last success.
    last_success: KeyMap<usize>,
}

impl<'t> Reader<'t> {
    fn new(messages: &[Message], instructions: Option<&str>) -> Self {
        let says_something = |block: &Block| matches!(block, Block::Text { text } if !text.trim().is_empty());
        let last_user = messages.iter().rposition(
            |message| matches!(message, Message::User { blocks } if blocks.iter().any(says_something)),
        );
        let mut content = Content::default();
        let emphasis = instructions.map_or_else(Vec::new, |text| {
            content.read(text, &text.as_bytes().to_ascii_lowercase());
            content.words.iter().copied().filter(|&word| !super::words::is_light(word)).collect()
        });
        Self {
            conversation: Conversation { messages: messages.len(), last_user, emphasis },
            pool: Pool::default(),
            openings: 0,
            frequency: KeyMap::default(),
            statement_count: 0,
            repeats: KeyMap::default(),
            identifiers: Identifiers::default(),
            calls: Vec::new(),
            call_of_id: KeyMap::default(),
            answers: Answers::default(),
            uses_tools: false,
            message: 0,
            line: 0,
            content,
            lower: Vec::new(),
            reports: Vec::new(),
        }
    }

    fn read_previous(&mut self, previous: &'t SummarySections) {
        let items = Section::ALL
            .into_iter()
            .flat_map(|section| previous.items(section).iter().map(move |item| (section, item)));
        for (line, (section, item)) in items.enumerate() {
            let text = item.trim();
            if [EMPTY_ITEM, NO_GOAL, "-"].contains(&text) || text.is_empty() {
                continue;
            }
            // A rule of the assistant does not gain authority by having been summarized.
            let (origin, text) = match text.strip_prefix(ASSISTANT_MARK) {
                Some(rule) if section == Section::Constraints => (Origin::Assistant, rule),
                _ => (Origin::Previous(section), text),
            };
            let text: Cow<'t, str> = if text.contains(['\n', '\r', '\t']) {
                Cow::Owned(text.split_whitespace().collect::<Vec<_>>().join(" "))
            } else {
                Cow::Borrowed(text)
            };
            let statement = self.statement(text, origin, Place::in_previous(line));
            if section == Section::State && is_ledger_line(&statement.text) {
                self.identifiers.note_all(&statement, Source::Previous, 0, |_| true);
            } else {
                self.take(statement);
            }
        }
    }

    /// Recursion is bounded by `levels`; what nests deeper is not read.
    fn read_blocks(&mut self, blocks: &'t [Block], origin: Origin, levels: usize) {
        for block in blocks {
            match block {
                Block::Text { text } | Block::Refusal { text } if origin == Origin::Tool => {
                    self.read_answer(text)
                }
                Block::Text { text } | Block::Refusal { text } => self.read_speech(text, origin),
                // A file is data, whoever attached it.
                Block::Document(document) => self.read_answer(&document.text),
                Block::ToolUse(call) => self.read_call(call),
                Block::ToolResult(result) => {
                    if let Some(levels) = levels.checked_sub(1) {
                        self.open_answer(&result.tool_use_id, result.is_error);
                        self.read_blocks(&result.content, Origin::Tool, levels);
                    }
                }
                _ => {}
            }
        }
    }

    fn read_speech(&mut self, text: &'t str, origin: Origin) {
        if origin == Origin::User && is_tool_output(text) {
            self.read_answer(text);
            return;
        }
        let origin = if origin == Origin::User && is_put_there(text) { Origin::System } else { origin };
        each_statement(text, |statement, is_quotation| {
            let place = Place::in_message(self.message, self.line);
            self.line += 1;
            // Whoever quotes does not thereby say it.
            let origin = if is_quotation { Origin::Pasted } else { origin };
            let statement = self.statement(statement, origin, place);
            self.take(statement);
        });
    }

    fn read_call(&mut self, call: &'t epitome_loop::ToolUse) {
        self.uses_tools = true;
        let arguments = call.input.as_ref().map_or_else(Vec::new, |input| arguments(input.as_str()));
        for argument in &arguments {
            self.identifiers.note_argument(argument, self.message, &mut self.content);
        }
        self.call_of_id.insert(key(call.id.as_bytes()), self.calls.len());
        self.calls.push(Call { message: self.message, name: &call.name, arguments, has_failed: false });
    }

    /// Notes whose answer comes now.
    fn open_answer(&mut self, tool_use_id: &str, is_error: bool) {
        self.uses_tools = true;
        let call = self.call_of_id.get(&key(tool_use_id.as_bytes())).copied();
        let call = call.or_else(|| self.calls.len().checked_sub(1));
        let tool = call.and_then(|call| self.calls.get(call)).map_or(0, |call| key(call.name.as_bytes()));
        self.answers.call = call;
        self.answers.tool = tool;
        self.answers.is_error = is_error;
        self.answers.tool_of_message.insert(self.message as Key, tool);
    }

    /// Reads what a tool returned or what stands in a file.
    fn read_answer(&mut self, text: &'t str) {
        const IDENTIFYING: ValueKinds = ValueKinds::of(&[
            ValueKind::Path,
            ValueKind::Url,
            ValueKind::Email,
            ValueKind::Code,
            ValueKind::Hash,
            ValueKind::Date,
            ValueKind::Identifier,
            ValueKind::GitRef,
            ValueKind::Money,
            ValueKind::Quoted,
        ]);
        self.note_outcome(text);
        let (head, tail) = both_ends(text, TOOL_TEXT_ENDS);
        let mut telling: Vec<&'t str> = Vec::new();
        for part in [head, tail] {
            self.lower_of(part);
            find_reports(&self.lower, &mut self.reports);
            let mut reports = self.reports.iter().copied().peekable();
            let mut start = 0;
            for line in part.split('\n') {
                let at = start + (line.len() - line.trim_start().len());
                start += line.len() + 1;
                let mut may_report = false;
                while reports.next_if(|report| *report < start).is_some() {
                    may_report = true;
                }
                let line = line.trim();
                if line.is_empty() {
                    continue;
                }
                let lower = self.lower.get(at..at + line.len()).unwrap_or_default();
                self.content.read_values(line, lower);
                for value in &mut self.content.values {
                    if value.kind == ValueKind::Identifier && is_quoted(line, value) {
                        value.kind = ValueKind::Quoted;
                    }
                }
                self.identifiers.note_values(
                    line,
                    &self.content.values,
                    Source::Tool,
                    self.message,
                    |kind| IDENTIFYING.has(kind),
                );
                if may_report && line.len() < 400 && cues_in(lower).any(Cues::ERROR.with(Cues::OUTCOME)) {
                    telling.push(line);
                }
            }
        }
        if telling.is_empty() && text.len() <= SHORT_TOOL_ANSWER && !text.trim().is_empty() {
            telling.push(text.trim());
        }
        let first = telling.len().saturating_sub(TOOL_ERROR_LINES);
        for line in telling.iter().skip(first) {
            let line = super::statements::cut_at_word(line, super::statements::LONG_LINE);
            let line = Cow::Owned(line.split_whitespace().collect::<Vec<_>>().join(" "));
            let place = Place::in_message(self.message, self.line);
            self.line += 1;
            let statement = self.statement(line, Origin::Tool, place);
            self.take(statement);
        }
    }

    /// Remembers whether the tool failed or succeeded.
    fn note_outcome(&mut self, text: &str) {
        let head = text.get(..text.floor_char_boundary(SHORT_FAILURE)).unwrap_or_default();
        self.lower_of(head);
        find_reports(&self.lower, &mut self.reports);
        let mut lines = self.reports.iter().map(|&report| line_around(&self.lower, report));
        let reports_error = self.answers.is_error || lines.any(|line| cues_in(line).any(Cues::ERROR));
        if !reports_error {
            self.answers.last_success.insert(self.answers.tool, self.message);
        } else if (text.len() < SHORT_FAILURE || self.answers.is_error)
            && let Some(call) = self.answers.call.and_then(|call| self.calls.get_mut(call))
        {
            call.has_failed = true;
        }
    }

    /// Reads a statement's words and values and counts them.
    fn statement(&mut self, text: Cow<'t, str>, origin: Origin, place: Place) -> Statement<'t> {
        let may_be_pasted = matches!(origin, Origin::User | Origin::System | Origin::Assistant);
        let origin = if may_be_pasted && is_code_like(&text) { Origin::Pasted } else { origin };
        let (label, text) = match origin {
            Origin::Tool | Origin::Pasted | Origin::Previous(_) => (None, text),
            Origin::User | Origin::System | Origin::Assistant => without_label(text),
        };
        self.lower_of(&text);
        let cues = cues_in(&self.lower);
        self.content.read(&text, &self.lower);
        self.statement_count += 1;
        for word in &self.content.words {
            *self.frequency.entry(*word).or_default() += 1;
        }
        let said = after_openings(&text);
        if origin.has_authority() && said.len() < text.len() {
            self.content.first_word = first_word_of(said);
        }
        Statement::new(text, origin, place, cues, label, &self.content)
    }

    /// Judges a statement and keeps it if it is worth it.
    fn take(&mut self, mut statement: Statement<'t>) {
        const TRANSIENT: ValueKinds = ValueKinds::of(&[
            ValueKind::Number,
            ValueKind::Style,
            ValueKind::Language,
            ValueKind::Weekday,
            ValueKind::Ratio,
            ValueKind::Proper,
        ]);
        self.conversation.judge(&mut statement);
        if statement.origin != Origin::Tool {
            let source = match statement.origin {
                Origin::User | Origin::System => Source::User,
                Origin::Previous(_) => Source::Previous,
                Origin::Assistant => Source::Assistant,
                Origin::Tool | Origin::Pasted => Source::Tool,
            };
            self.identifiers.note_all(&statement, source, self.message, |kind| !TRANSIENT.has(kind));
            if self.is_boilerplate(&statement) {
                statement.score = 0;
            }
        }
        let may_open = statement.origin == Origin::User
            && self.openings < OPENING_STATEMENTS
            && !statement.is_acknowledgement()
            && !statement.has(Cues::TANGENT);
        if may_open {
            statement.is_opening = true;
            self.openings += 1;
        }
        self.pool.offer(statement);
    }

    /// Whether the same side has said the same before so often that it means nothing any more.
    fn is_boilerplate(&mut self, statement: &Statement<'_>) -> bool {
        if !statement.values.is_empty() || statement.label.is_some() || statement.prohibits() {
            return false;
        }
        self.lower_of(&statement.text);
        let side = Key::from(statement.origin == Origin::User);
        let times = self.repeats.entry(key(&self.lower) ^ side).or_default();
        *times += 1;
        *times >= BOILERPLATE
    }

    fn lower_of(&mut self, text: &str) {
        self.lower.clear();
        self.lower.extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
    }

    fn finish(self) -> Reading<'t> {
        let (mut statements, overflow) = self.pool.finish();
        let mut overcome = KeySet::default();
        for statement in &mut statements {
            // A failure that the same tool overcame later is history.
            let message = statement.place.message.wrapping_sub(1);
            let tool = self.answers.tool_of_message.get(&Key::from(message));
            let success = tool.and_then(|tool| self.answers.last_success.get(tool));
            if statement.origin == Origin::Tool
                && statement.has(Cues::ERROR)
                && success.is_some_and(|&success| success > message as usize)
            {
                statement.is_retired = true;
                overcome.insert(Key::from(message));
            }
        }
        Reading {
            statements,
            overflow,
            frequency: self.frequency,
            statement_count: self.statement_count.max(1),
            identifiers: self.identifiers,
            calls: self.calls,
            overcome,
            uses_tools: self.uses_tools,
            conversation: self.conversation,
        }
    }
}

/// The line in which an offset lies.
fn line_around(text: &[u8], at: usize) -> &[u8] {
    let (before, after) = text.split_at_checked(at).unwrap_or((text, b""));
    let start = memchr::memrchr(b'\n', before).map_or(0, |found| found + 1);
    let end = memchr::memchr(b'\n', after).map_or(text.len(), |found| at + found);
    text.get(start..end).unwrap_or_default()
}

/// Whether a value stands between quotation marks.
fn is_quoted(line: &str, value: &Value) -> bool {
    let before = line.get(..value.start as usize).unwrap_or_default();
    let after = line.get(value.end as usize..).unwrap_or_default();
    before.ends_with(['"', '\'']) && after.starts_with(['"', '\''])
}

/// Takes a label off a statement, borrowed text staying borrowed.
fn without_label(text: Cow<'_, str>) -> (Option<super::statements::Label>, Cow<'_, str>) {
    match text {
        Cow::Borrowed(text) => match split_label(text) {
            Some((label, body)) => (Some(label), Cow::Borrowed(body)),
            None => (None, Cow::Borrowed(text)),
        },
        Cow::Owned(text) => match split_label(&text) {
            Some((label, body)) => (Some(label), Cow::Owned(body.to_owned())),
            None => (None, Cow::Owned(text)),
        },
    }
}

/// The first and the last `bytes` bytes of a text, on character bounds; the whole text first if it is not
/// longer than both.
fn both_ends(text: &str, bytes: usize) -> (&str, &str) {
    if text.len() <= 2 * bytes {
        return (text, "");
    }
    let head = text.get(..text.floor_char_boundary(bytes)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - bytes)..).unwrap_or_default();
    (head, tail)
}
