//! Which result answers which call, and where a history may be cut.

use std::collections::HashMap;

use epitome_loop::{Block, Message, SharedText, ToolUse};

use super::notes::{ResultNote, ResultNotes, ResultPlace};

/// The pairs of calls and results of a history.
///
/// A result answers the most recent open call with its id. Made in one walk.
#[derive(Clone, Debug)]
pub struct Pairing {
    /// By message: the message of each call's result.
    answers: Vec<Vec<Option<usize>>>,
    /// By message: each result.
    results: Vec<Vec<PairedResult>>,
    /// By position, one more than messages: the cut that parts no pair.
    slid: Vec<usize>,
}

/// Per id, the calls that are open: message, place among its calls, block.
type Open<'m> = HashMap<&'m SharedText, Vec<(usize, usize, usize)>>;

/// One result.
#[derive(Clone, Debug)]
struct PairedResult {
    block: usize,
    /// Message and block of its call.
    call: Option<(usize, usize)>,
}

impl Pairing {
    /// Pairs the calls and results at the top level of the messages.
    #[must_use]
    pub fn of(messages: &[Message]) -> Self {
        let mut answers: Vec<Vec<Option<usize>>> = Vec::with_capacity(messages.len());
        let mut results: Vec<Vec<PairedResult>> = Vec::with_capacity(messages.len());
        let mut open: Open<'_> = HashMap::new();
        for (at, message) in messages.iter().enumerate() {
            answers.push(Vec::new());
            let mut found = Vec::new();
            let mut answer = |id, block, open: &mut Open<'_>, answers: &mut Vec<Vec<Option<usize>>>| {
                let call = open.get_mut(id).and_then(Vec::pop);
                if let Some((message, place, _)) = call
                    && let Some(slot) = answers.get_mut(message).and_then(|calls| calls.get_mut(place))
                {
                    *slot = Some(at);
                }
                found.push(PairedResult { block, call: call.map(|(message, _, block)| (message, block)) });
            };
            if let Message::ToolResult { tool_use_id, .. } = message {
                answer(tool_use_id, 0, &mut open, &mut answers);
            }
            for (block, content) in message.blocks().iter().enumerate() {
                match content {
                    Block::ToolUse(call) => {
                        if let Some(calls) = answers.last_mut() {
                            open.entry(&call.id).or_default().push((at, calls.len(), block));
                            calls.push(None);
                        }
                    }
                    Block::ToolResult(result) => answer(&result.tool_use_id, block, &mut open, &mut answers),
                    _ => {}
                }
            }
            results.push(found);
        }
        let slid = slid_cuts(&results);
        Self { answers, results, slid }
    }

    /// The nearest cut at or before `at` that parts no call from its result.
    #[must_use]
    pub fn slide(&self, at: usize) -> usize {
        self.slid.get(at).copied().unwrap_or(at)
    }

    /// The messages that hold the results of a message's calls, and the calls of its results.
    pub(super) fn partners(&self, message: usize) -> impl Iterator<Item = usize> {
        let results = self.answers.get(message).into_iter().flatten().filter_map(|answer| *answer);
        let calls = self.results.get(message).into_iter().flatten();
        results.chain(calls.filter_map(|result| result.call.map(|(message, _)| message)))
    }

    /// Whether every call of a message has its result and every result its call.
    pub(super) fn is_complete(&self, message: usize) -> bool {
        self.answers.get(message).is_none_or(|answers| answers.iter().all(Option::is_some))
            && self
                .results
                .get(message)
                .is_none_or(|results| results.iter().all(|result| result.call.is_some()))
    }

    /// Whether a message is nothing but results without calls: no provider would take it.
    pub(super) fn is_lone_result(&self, at: usize, message: &Message) -> bool {
        let Some(results) = self.results.get(at).filter(|results| !results.is_empty()) else { return false };
        let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
        let holds_nothing_else =
            matches!(message, Message::ToolResult { .. }) || message.blocks().iter().all(is_result);
        holds_nothing_else && results.iter().all(|result| result.call.is_none())
    }

    /// What is known about each result of a message: the block that it is, and the note.
    pub(crate) fn notes<'m>(
        &'m self,
        at: usize,
        messages: &'m [Message],
        notes: &'m dyn ResultNotes,
    ) -> impl Iterator<Item = (usize, ResultNote)> + 'm {
        self.results.get(at).into_iter().flatten().filter_map(move |result| {
            let tool_use_id = result_id(messages.get(at)?, result.block)?;
            let call = result.call.and_then(|(message, block)| call_at(messages.get(message)?, block));
            let mut note = notes.note(ResultPlace { message: at, block: result.block, tool_use_id, call });
            if note.tool.is_none() {
                note.tool = call.map(|call| call.name.clone());
            }
            Some((result.block, note))
        })
    }
}

fn result_id(message: &Message, block: usize) -> Option<&SharedText> {
    if let Some(Block::ToolResult(result)) = message.blocks().get(block) {
        return Some(&result.tool_use_id);
    }
    match message {
        Message::ToolResult { tool_use_id, .. } => Some(tool_use_id),
        _ => None,
    }
}

fn call_at(message: &Message, block: usize) -> Option<&ToolUse> {
    match message.blocks().get(block) {
        Some(Block::ToolUse(call)) => Some(call),
        _ => None,
    }
}

/// For each position, the cut at or before it that no pair crosses.
///
/// A cut slides to the earliest call whose result stands behind it, as often as that moves it. The earliest call for a
/// position is the least over all results behind it, and where a slide ends depends on smaller positions alone: two
/// walks.
fn slid_cuts(results: &[Vec<PairedResult>]) -> Vec<usize> {
    let mut earliest = vec![usize::MAX; results.len() + 1];
    let mut least = usize::MAX;
    for (slot, results) in earliest.iter_mut().zip(results).rev() {
        let calls = results.iter().filter_map(|result| result.call.map(|(message, _)| message));
        least = calls.fold(least, usize::min);
        *slot = least;
    }
    // Behind the last message there is nothing; the zip above went over the first positions alone.
    let mut slid: Vec<usize> = Vec::with_capacity(earliest.len());
    for (at, least) in earliest.into_iter().enumerate() {
        let cut = if least < at { slid.get(least).copied().unwrap_or(least) } else { at };
        slid.push(cut);
    }
    slid
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn call(ids: &[&str]) -> Message {
        let blocks: Vec<_> =
            ids.iter().map(|&id| Block::ToolUse(ToolUse::new(id, "run", None, None))).collect();
        Message::Assistant { blocks: Arc::from(blocks), usage: None }
    }

    fn result(id: &str) -> Message {
        Message::tool_result(id, "r", false)
    }

    #[test]
    fn a_cut_slides_until_no_pair_crosses_it() {
        // The pairs cross each other: pulling back for one admits another.
        let messages = [
            call(&["p"]),
            Message::user("x"),
            call(&["q"]),
            result("p"),
            Message::user("y"),
            result("q"),
            Message::user("z"),
        ];
        let pairing = Pairing::of(&messages);
        assert_eq!(pairing.slide(5), 0);
        assert_eq!(pairing.slide(4), 0);
        assert_eq!(pairing.slide(6), 6);
        assert_eq!(pairing.slide(0), 0);
    }

    #[test]
    fn an_id_that_repeats_is_paired_with_the_nearest_open_call() {
        let messages = [call(&["a"]), result("a"), call(&["a"]), result("a"), result("a")];
        let pairing = Pairing::of(&messages);
        assert_eq!([1, 2, 3, 4].map(|at| pairing.slide(at)), [0, 2, 2, 4]);
        assert!(pairing.is_lone_result(4, &messages[4]) && !pairing.is_lone_result(3, &messages[3]));
        assert!(pairing.is_complete(2) && !pairing.is_complete(4));
    }
}
