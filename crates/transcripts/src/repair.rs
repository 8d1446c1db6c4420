//! Makes the order of messages one that providers accept, and tells of every step.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use epitome_loop::{Block, Blocks, Message, Role, ToolUse};

use crate::Session;
use crate::session::Origin;

/// The text of the result that closes a call whose result was never recorded.
pub const NO_RESULT: &str = "no result recorded";

/// The text of the user message that is put before a conversation that does not begin with the user.
pub const ANCHOR: &str = "[the conversation starts here]";

/// One step of [`repair`]. Indexes are those of the messages before the repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Repair {
    /// A result whose call is not in the conversation was dropped.
    DroppedResult {
        /// Index of the result.
        message: usize,
    },
    /// A result was dropped because another one answers the same call.
    DroppedSecondResult {
        /// Index of the dropped result.
        message: usize,
    },
    /// Of several calls with one id in one message, the best answered one stays.
    MergedCalls {
        /// Index of the message with the calls.
        message: usize,
    },
    /// A result was moved directly behind the message with its call.
    MovedResult {
        /// Index of the result.
        message: usize,
    },
    /// A message with calls was moved down to their results, because the model went on before they came: they
    /// waited, for a person perhaps, and the answer is news. Moved up to its call, it would be stale.
    MovedCall {
        /// Index of the message with the calls.
        message: usize,
    },
    /// An abandoned call was closed by an error result that says [`NO_RESULT`].
    ClosedCall {
        /// Index of the message with the call.
        message: usize,
    },
    /// A message without content was dropped.
    DroppedEmpty {
        /// Index of the message.
        message: usize,
    },
    /// A user message that says [`ANCHOR`] was put before a conversation that began with the model.
    Anchored {
        /// Index of the message it was put before.
        message: usize,
    },
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DroppedResult { message } => write!(f, "message {message}: result without a call dropped"),
            Self::DroppedSecondResult { message } => {
                write!(f, "message {message}: second result of one call dropped")
            }
            Self::MergedCalls { message } => write!(f, "message {message}: calls with one id merged"),
            Self::MovedResult { message } => write!(f, "message {message}: result moved behind its call"),
            Self::MovedCall { message } => write!(f, "message {message}: call moved down to its late result"),
            Self::ClosedCall { message } => write!(f, "message {message}: abandoned call closed"),
            Self::DroppedEmpty { message } => write!(f, "message {message}: empty message dropped"),
            Self::Anchored { message } => write!(f, "message {message}: user message put before it"),
        }
    }
}

/// Repairs the order of calls and results, drops empty messages, and lets the conversation begin with the
/// user.
///
/// Afterwards every call is answered exactly once right behind its message, or is open at the very end, where
/// it is an obligation of the newest turn. Results move up to their calls; calls that waited while the model went
/// on move down to their results. Calls that a provider runs itself are opaque and stay as they are.
/// A call and its result are paired by occurrence: a result answers a call of the nearest message before it
/// that uses its id, since ids repeat. Repaired messages count as changed; all others stay byte for
/// byte as they were.
#[must_use]
pub fn repair(session: &Session) -> (Session, Vec<Repair>) {
    let pairing = Pairing::of(&session.messages);
    let mut plan = Plan { session, pairing, entries: Vec::new(), repairs: Vec::new() };
    plan.run();
    let Plan { entries, mut repairs, .. } = plan;
    if repairs.is_empty() {
        return (session.clone(), repairs);
    }
    repairs.sort_by_key(Repair::message);
    (rebuilt(session, entries), repairs)
}

impl Repair {
    fn message(&self) -> usize {
        match *self {
            Self::DroppedResult { message }
            | Self::DroppedSecondResult { message }
            | Self::MergedCalls { message }
            | Self::MovedResult { message }
            | Self::MovedCall { message }
            | Self::ClosedCall { message }
            | Self::DroppedEmpty { message }
            | Self::Anchored { message } => message,
        }
    }
}

/// A message after the repair.
struct Entry {
    message: Message,
    origin: Origin,
    /// Its index before the repair; `None` when it is new.
    index: Option<usize>,
}

/// A call: index of its message, and its number among the calls of that message.
type Call = (usize, usize);

/// Which result answers which call.
#[derive(Default)]
struct Pairing {
    answers: HashMap<Call, usize>,
    /// The other way around; results that are dropped have none.
    calls: HashMap<usize, Call>,
    without_call: Vec<usize>,
    seconds: Vec<usize>,
}

impl Pairing {
    fn of(messages: &[Message]) -> Self {
        let mut pairing = Self::default();
        let mut open: HashMap<&str, Vec<Call>> = HashMap::new();
        let mut answered: HashMap<&str, Call> = HashMap::new();
        for (index, message) in messages.iter().enumerate() {
            if let Message::ToolResult { tool_use_id, .. } = message {
                let id = tool_use_id.as_str();
                if let Some(call) = open.get_mut(id).and_then(Vec::pop) {
                    answered.insert(id, call);
                    pairing.answers.insert(call, index);
                } else if let Some(call) = answered.get(id) {
                    pairing.second(*call, index, messages);
                } else {
                    pairing.without_call.push(index);
                }
            }
            // Once an id is used again, calls of older messages with it are abandoned. The first of several
            // calls with one id in one message is answered first.
            let calls: Vec<&ToolUse> = message.tool_calls().collect();
            for call in &calls {
                open.remove(call.id.as_str());
                answered.remove(call.id.as_str());
            }
            for (number, call) in calls.iter().enumerate().rev() {
                open.entry(call.id.as_str()).or_default().push((index, number));
            }
        }
        pairing.calls = pairing.answers.iter().map(|(call, result)| (*result, *call)).collect();
        pairing
    }

    /// The messages whose calls were all answered only after the user had spoken and the model had answered
    /// that, by the first of their results.
    fn late(&self, messages: &[Message]) -> HashMap<usize, usize> {
        let mut late = HashMap::new();
        let (mut next_of_model, mut next_turn) = (usize::MAX, usize::MAX);
        for (index, message) in messages.iter().enumerate().rev() {
            match message.role() {
                _ if message.blocks().is_empty() => continue,
                Role::User => next_turn = next_of_model,
                Role::Assistant => next_of_model = index,
                _ => {}
            }
            let results: Option<Vec<usize>> = (0..message.tool_calls().count())
                .map(|number| self.answers.get(&(index, number)).copied())
                .collect();
            let first = results.and_then(|results| results.into_iter().min());
            if let Some(first) = first.filter(|first| *first > next_turn) {
                late.insert(first, index);
            }
        }
        late
    }

    /// The later of two results counts, unless it is an error and the earlier is not.
    fn second(&mut self, call: Call, index: usize, messages: &[Message]) {
        let Some(first) = self.answers.get_mut(&call) else { return };
        if is_error(messages, index) && !is_error(messages, *first) {
            self.seconds.push(index);
        } else {
            self.seconds.push(std::mem::replace(first, index));
        }
    }
}

fn is_error(messages: &[Message], index: usize) -> bool {
    matches!(messages.get(index), Some(Message::ToolResult { is_error: true, .. }))
}

struct Plan<'a> {
    session: &'a Session,
    pairing: Pairing,
    entries: Vec<Entry>,
    repairs: Vec<Repair>,
}

impl Plan<'_> {
    fn run(&mut self) {
        let messages = self.session.messages.clone();
        let mut late = self.pairing.late(&messages);
        let without_call = std::mem::take(&mut self.pairing.without_call);
        self.repairs.extend(without_call.into_iter().map(|message| Repair::DroppedResult { message }));
        let stays = |message: &Message| message.role() != Role::Tool && !message.blocks().is_empty();
        let last = messages.iter().rposition(stays);
        // A call that is still open must end the conversation, so nothing moves behind it.
        let calls = last.and_then(|last| messages.get(last)).map_or(0, |last| last.tool_calls().count());
        if let Some(last) = last
            && (0..calls).any(|number| !self.pairing.answers.contains_key(&(last, number)))
        {
            late.retain(|&result, _| result < last);
        }
        let moved: HashSet<usize> = late.values().copied().collect();
        let mut begun = false;
        for (index, message) in messages.iter().enumerate() {
            if message.role() == Role::Tool {
                if let Some(&call) = late.get(&index)
                    && let Some(message) = messages.get(call)
                {
                    self.repairs.push(Repair::MovedCall { message: call });
                    self.exchange(call, message, false, index);
                }
                continue;
            }
            if moved.contains(&index) {
                continue;
            }
            if message.blocks().is_empty() {
                self.repairs.push(Repair::DroppedEmpty { message: index });
                continue;
            }
            if message.role() != Role::System && !std::mem::replace(&mut begun, true) {
                self.anchor(index, message);
            }
            self.exchange(index, message, Some(index) == last, index + 1);
        }
        let seconds = std::mem::take(&mut self.pairing.seconds);
        self.repairs.extend(seconds.into_iter().map(|message| Repair::DroppedSecondResult { message }));
    }

    fn anchor(&mut self, index: usize, message: &Message) {
        if message.role() != Role::User {
            self.repairs.push(Repair::Anchored { message: index });
            self.entries.push(Entry { message: Message::user(ANCHOR), origin: Origin::OURS, index: None });
        }
    }

    /// A message with the results of its calls, which are in their place from `behind` on.
    fn exchange(&mut self, index: usize, message: &Message, is_last: bool, behind: usize) {
        let calls: Vec<&ToolUse> = message.tool_calls().collect();
        let best = self.best_calls(index, &calls);
        let mut origin = self.origin(index);
        let mut message = message.clone();
        if best.len() < calls.len() {
            self.repairs.push(Repair::MergedCalls { message: index });
            origin.changed = true;
            message = with_calls(&message, &calls, &best);
        }
        self.entries.push(Entry { message, origin, index: Some(index) });

        let mut results: Vec<usize> =
            best.iter().filter_map(|number| self.pairing.answers.get(&(index, *number)).copied()).collect();
        results.sort_unstable();
        let behind = self.results_in_place(index, behind);
        for result in &results {
            if !behind.contains(result) {
                self.repairs.push(Repair::MovedResult { message: *result });
            }
            if let Some(message) = self.session.messages.get(*result) {
                let origin = self.origin(*result);
                self.entries.push(Entry { message: message.clone(), origin, index: Some(*result) });
            }
        }
        if is_last {
            return;
        }
        for number in best {
            if self.pairing.answers.contains_key(&(index, number)) {
                continue;
            }
            if let Some(call) = calls.get(number) {
                self.repairs.push(Repair::ClosedCall { message: index });
                let message = Message::tool_result(call.id.clone(), NO_RESULT, true);
                self.entries.push(Entry { message, origin: Origin::OURS, index: None });
            }
        }
    }

    /// The calls of a message that stay: of those with one id the best answered one, in the place of the
    /// first. Results of the others are seconds.
    fn best_calls(&mut self, index: usize, calls: &[&ToolUse]) -> Vec<usize> {
        let mut best: Vec<usize> = Vec::new();
        let mut place: HashMap<&str, usize> = HashMap::new();
        for (number, call) in calls.iter().enumerate() {
            let Some(&at) = place.get(call.id.as_str()) else {
                place.insert(call.id.as_str(), best.len());
                best.push(number);
                continue;
            };
            let Some(held) = best.get_mut(at) else { continue };
            let worth = |number: usize| match self.pairing.answers.get(&(index, number)) {
                Some(&result) if !is_error(&self.session.messages, result) => 2,
                Some(_) => 1,
                None => 0,
            };
            let loser = if worth(number) > worth(*held) { std::mem::replace(held, number) } else { number };
            self.pairing.seconds.extend(self.pairing.answers.get(&(index, loser)));
        }
        best
    }

    /// The indexes from `start` on that hold results of a message, or results that are dropped.
    fn results_in_place(&self, index: usize, start: usize) -> Range<usize> {
        let behind = self.session.messages.iter().enumerate().skip(start);
        let count = behind
            .take_while(|(at, message)| {
                message.role() == Role::Tool && self.pairing.calls.get(at).is_none_or(|call| call.0 == index)
            })
            .count();
        start..start + count
    }

    fn origin(&self, index: usize) -> Origin {
        self.session.origins.get(index).copied().unwrap_or(Origin::OURS)
    }
}

fn is_spoken(entry: &Entry) -> bool {
    entry.message.role() != Role::System
}

/// An assistant message with some of its calls, each in the place of the first one with its id.
fn with_calls(message: &Message, calls: &[&ToolUse], best: &[usize]) -> Message {
    let (blocks, usage) = match message {
        Message::Assistant { blocks, usage } => (blocks, *usage),
        other => return other.clone(),
    };
    let mut seen = HashSet::new();
    let mut kept = best.iter().filter_map(|number| calls.get(*number));
    let blocks: Vec<Block> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse(call) if !seen.insert(call.id.clone()) => None,
            Block::ToolUse(_) => kept.next().map(|call| Block::ToolUse((*call).clone())),
            other => Some(other.clone()),
        })
        .collect();
    Message::Assistant { blocks: Blocks::from(blocks), usage }
}

fn rebuilt(session: &Session, entries: Vec<Entry>) -> Session {
    let new_index = |old: usize| entries.iter().position(|entry| entry.index == Some(old));
    let reported_usage = session
        .reported_usage
        .and_then(|usage| new_index(usage.message).map(|message| crate::ReportedUsage { message, ..usage }));
    let leading_system = entries.iter().take_while(|entry| !is_spoken(entry)).count();
    let derived = session.leading_system..session.leading_system + session.derived_prefix;
    let last_derived =
        entries.iter().rposition(|entry| entry.index.is_some_and(|index| derived.contains(&index)));
    let derived_prefix = last_derived.map_or(0, |last| (last + 1).saturating_sub(leading_system));
    let summary = new_index(session.leading_system + session.before_summary);
    let before_summary = summary.map_or(0, |summary| summary.saturating_sub(leading_system));
    let (messages, origins): (Vec<_>, Vec<_>) =
        entries.into_iter().map(|entry| (entry.message, entry.origin)).unzip();
    Session {
        messages: messages.into(),
        origins: origins.into(),
        leading_system,
        derived_prefix,
        before_summary,
        reported_usage,
        is_pristine: false,
        ..session.clone()
    }
}
