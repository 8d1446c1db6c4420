//! Which call each result answers, in conversations whose pairing may be damaged.

use std::collections::{BTreeMap, HashMap};

use epitome_loop::Message;

use crate::history::HistoryError;

/// The pairs of a conversation, and the messages that no pairing makes legal. Nothing is refused here.
///
/// A result belongs to the nearest call before it that is still open. A call that is never answered was abandoned,
/// and so was one whose id another call takes; neither counts as open, so what follows does not interrupt it.
pub(crate) struct Pairing {
    /// For each result, the message that holds its call.
    answered: Vec<Option<usize>>,
    /// For each place between messages, the end of the last pair whose call lies before it.
    reach: Vec<usize>,
    faults: BTreeMap<usize, HistoryError>,
}

impl Pairing {
    /// Pairs the calls and results of a conversation from which some messages are left out. Linear.
    pub(crate) fn of(messages: &[Message], is_left_out: impl Fn(usize) -> bool) -> Self {
        let mut faults = BTreeMap::new();
        let answered = pair(messages, &mut faults);
        let mut last_result = vec![0; messages.len()];
        for (at, call) in answered.iter().enumerate() {
            if let Some(last) = call.and_then(|call| last_result.get_mut(call)) {
                *last = at;
            }
        }
        let mut reach = Vec::with_capacity(messages.len() + 1);
        let mut end = 0;
        for (at, (message, last)) in messages.iter().zip(last_result).enumerate() {
            reach.push(end);
            let speaks = matches!(message, Message::Assistant { .. } | Message::System { .. });
            if speaks && end > at && !is_left_out(at) {
                faults.entry(at).or_insert(HistoryError::Interrupted { message: at });
            }
            end = end.max(if last > at { last + 1 } else { 0 });
        }
        reach.push(end);
        Self { answered, reach, faults }
    }

    /// The message with the call that this result answers.
    pub(crate) fn call_of(&self, result: usize) -> Option<usize> {
        self.answered.get(result).copied().flatten()
    }

    /// Why this message cannot be legal.
    pub(crate) fn fault(&self, at: usize) -> Option<HistoryError> {
        self.faults.get(&at).copied()
    }

    /// Whether a cut in front of this message parts a call from its result.
    pub(crate) fn parts(&self, at: usize) -> bool {
        self.reach.get(at).is_some_and(|&end| end > at)
    }

    /// Where the part begins, at `least` or behind it, that holds no damage and no half of a pair. `None` when it
    /// begins at `least` itself.
    pub(crate) fn legal_from(&self, least: usize) -> Option<usize> {
        let damaged = self.faults.range(least..).next_back().map(|(&last, _)| last + 1);
        let mut from = damaged.unwrap_or(least);
        while let Some(&end) = self.reach.get(from).filter(|&&end| end > from) {
            from = end;
        }
        (from > least).then_some(from)
    }

    pub(crate) fn into_answered(self) -> Vec<Option<usize>> {
        self.answered
    }
}

fn pair(messages: &[Message], faults: &mut BTreeMap<usize, HistoryError>) -> Vec<Option<usize>> {
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut answered = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        if let Message::ToolResult { tool_use_id, .. } = message {
            let call = open.remove(tool_use_id.as_str());
            if call.is_none() {
                faults.insert(at, HistoryError::ToolResult { message: at });
            }
            answered.push(call);
            continue;
        }
        for call in message.tool_calls() {
            if call.id.is_empty() {
                faults.insert(at, HistoryError::ToolCall { message: at });
                continue;
            }
            match open.insert(&call.id, at) {
                Some(earlier) if earlier == at => {
                    faults.insert(at, HistoryError::ToolCall { message: at });
                }
                Some(earlier) => {
                    faults.entry(earlier).or_insert(HistoryError::OrphanToolCall { message: earlier });
                }
                None => {}
            }
        }
        answered.push(None);
    }
    for at in open.into_values() {
        faults.entry(at).or_insert(HistoryError::OrphanToolCall { message: at });
    }
    answered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_retained_history;
    use epitome_loop::{Block, ToolUse};
    use proptest::prelude::*;

    fn calls(ids: &[&str]) -> Message {
        let calls = ids.iter().map(|id| Block::ToolUse(ToolUse::new(*id, "tool", None, None)));
        Message::Assistant { blocks: calls.collect(), usage: None }
    }

    fn result(id: &str) -> Message {
        Message::tool_result(id, "r", false)
    }

    fn legal_from(messages: &[Message]) -> Option<usize> {
        Pairing::of(messages, |_| false).legal_from(0)
    }

    #[test]
    fn the_legal_part_begins_behind_the_last_damage() {
        let user = || Message::user("u");
        let text = || Message::assistant("a");
        for (messages, expected) in [
            (vec![user(), calls(&["a"]), result("a"), text()], None),
            (vec![user(), calls(&["a"]), user(), result("a")], None),
            (vec![user(), calls(&["a"]), user(), text()], Some(2)),
            (vec![user(), result("a"), user()], Some(2)),
            // The pair goes with the message that has a call too many.
            (vec![user(), calls(&["a", "b"]), result("a"), user()], Some(3)),
            (vec![user(), calls(&["a"]), calls(&["a"]), result("a"), user()], Some(2)),
            (vec![user(), calls(&["a"]), calls(&["a"]), result("a"), result("a"), user()], Some(5)),
            (vec![user(), calls(&["a", "a"]), result("a"), user()], Some(3)),
            (vec![user(), calls(&[""]), user()], Some(2)),
            // The model, or the system, speaks before the result comes.
            (vec![user(), calls(&["a"]), text(), result("a"), user()], Some(4)),
            (vec![user(), calls(&["a"]), Message::system("s"), result("a")], Some(4)),
            // A pair that begins before the damage and ends behind it, and another one across its end.
            (vec![calls(&["a"]), result("x"), user(), calls(&["b"]), result("a"), result("b")], Some(6)),
            (vec![user(), calls(&["a"])], Some(2)),
        ] {
            assert_eq!(legal_from(&messages), expected, "{messages:?}");
        }
    }

    #[test]
    fn a_system_message_that_is_left_out_interrupts_nothing() {
        let messages = [Message::user("u"), calls(&["a"]), Message::system("s"), result("a")];
        assert_eq!(Pairing::of(&messages, |at| at == 2).legal_from(0), None);
    }

    fn any_message() -> impl Strategy<Value = Message> {
        let id = || prop_oneof![Just("a"), Just("b"), Just("c")];
        prop_oneof![
            3 => Just(Message::user("u")),
            2 => Just(Message::assistant("t")),
            1 => Just(Message::system("s")),
            4 => proptest::collection::vec(id(), 1..3).prop_map(|ids| calls(&ids)),
            5 => id().prop_map(result),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        /// The legal part is legal, and nothing longer is.
        #[test]
        fn the_legal_part_is_the_longest_one(messages in proptest::collection::vec(any_message(), 0..16)) {
            let is_legal = |from: usize| {
                let behind_summary = [Message::user("summary")].into_iter().chain(messages[from..].iter().cloned());
                check_retained_history(&behind_summary.collect::<Vec<_>>()).is_ok()
            };
            let from = legal_from(&messages).unwrap_or(0);
            prop_assert!(is_legal(from));
            prop_assert_eq!((0..=messages.len()).find(|&from| is_legal(from)), Some(from));
        }
    }
}
