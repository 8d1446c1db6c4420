//! Messages that cannot stand without each other.

use std::collections::BTreeSet;

use epitome_loop::Message;

use crate::history::HistoryError;
use crate::outline::continues_previous;
use crate::pairing::Pairing;

/// The wanted messages with all that they need to stand in a legal history: a result needs its call, a call all
/// the results of its message, and what goes on with a provider's own call needs the message before it.
///
/// Indices that are out of range are passed over. What is damaged elsewhere in the conversation does not matter.
///
/// # Errors
/// [`HistoryError`] with the first fault of the messages themselves: a result that answers no call, a call that has no
/// id of its own. A call without a result is not looked for: it may be an open one.
pub fn whole_exchanges(
    messages: &[Message],
    wanted: &BTreeSet<usize>,
) -> Result<BTreeSet<usize>, HistoryError> {
    let pairing = Pairing::of(messages, |_| false);
    // Which exchange a message belongs to, by the index of the message that opens it.
    let mut opened_by: Vec<usize> = Vec::with_capacity(messages.len());
    let mut last_of_model = None;
    for (at, message) in messages.iter().enumerate() {
        let previous = last_of_model.filter(|_| continues_previous(message));
        let belongs_to = pairing.call_of(at).or(previous);
        let belongs_to = belongs_to.and_then(|earlier: usize| opened_by.get(earlier).copied());
        opened_by.push(belongs_to.unwrap_or(at));
        if matches!(message, Message::Assistant { .. }) {
            last_of_model = Some(at);
        }
    }
    let exchanges: BTreeSet<usize> = wanted.iter().filter_map(|&at| opened_by.get(at).copied()).collect();
    let whole = opened_by.iter().enumerate().filter(|(_, exchange)| exchanges.contains(exchange));
    let whole: BTreeSet<usize> = whole.map(|(at, _)| at).collect();
    let damaged = whole
        .iter()
        .filter_map(|&at| pairing.fault(at))
        .find(|fault| matches!(fault, HistoryError::ToolCall { .. } | HistoryError::ToolResult { .. }));
    damaged.map_or(Ok(whole), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::{Block, Opaque, RawJson, ToolUse};

    fn calls(ids: &[&str]) -> Message {
        let calls = ids.iter().map(|id| Block::ToolUse(ToolUse::new(*id, "tool", None, None)));
        Message::Assistant { blocks: calls.collect(), usage: None }
    }

    fn result(id: &str) -> Message {
        Message::tool_result(id, "r", false)
    }

    fn whole(messages: &[Message], wanted: &[usize]) -> Vec<usize> {
        let wanted = wanted.iter().copied().collect();
        whole_exchanges(messages, &wanted).unwrap().into_iter().collect()
    }

    #[test]
    fn calls_and_results_come_together() {
        let messages = [
            Message::user("0"),
            calls(&["a", "b"]),
            result("b"),
            Message::user("folded"),
            result("a"),
            calls(&["a"]),
            result("a"),
        ];
        assert_eq!(whole(&messages, &[2]), [1, 2, 4]);
        assert_eq!(whole(&messages, &[5]), [5, 6]);
        assert_eq!(whole(&messages, &[3]), [3]);
        assert_eq!(whole(&messages, &[0, 6, 99]), [0, 5, 6]);
        assert_eq!(whole(&messages, &[]), [0; 0]);
    }

    #[test]
    fn what_a_provider_goes_on_with_comes_together() {
        let item = |kind: &str| {
            let raw = RawJson::parse("{}").unwrap();
            Message::Assistant {
                blocks: [Block::Opaque(Opaque { kind: kind.into(), raw })].into(),
                usage: None,
            }
        };
        let messages =
            [Message::user("0"), item("server_tool_use"), item("web_search_tool_result"), item("x")];
        assert_eq!(whole(&messages, &[1]), [1, 2]);
        assert_eq!(whole(&messages, &[2]), [1, 2]);
        assert_eq!(whole(&messages, &[3]), [3]);
    }

    #[test]
    fn damage_is_told_where_it_is_wanted() {
        let messages = [Message::user("0"), result("a"), calls(&["b", "b"]), result("b"), calls(&["c"])];
        let wanted = |at| whole_exchanges(&messages, &BTreeSet::from([at]));
        assert_eq!(wanted(0), Ok([0].into()));
        assert_eq!(wanted(1), Err(HistoryError::ToolResult { message: 1 }));
        assert_eq!(wanted(3), Err(HistoryError::ToolCall { message: 2 }));
        assert_eq!(wanted(4), Ok([4].into()));
    }
}
