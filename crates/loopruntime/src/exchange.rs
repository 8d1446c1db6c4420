//! Messages that cannot stand without each other.

use std::collections::BTreeSet;

use epitome_loop::Message;

use crate::history::{HistoryError, OpenCalls};
use crate::tail::continues_previous;

/// The wanted messages with all that they need to stand in a legal history: a result needs its call, a call all
/// the results of its message, and what goes on with a provider's own call needs the message before it.
///
/// Indices that are out of range are passed over.
///
/// # Errors
/// [`HistoryError`] with the first fault when calls and results do not pair.
pub fn whole_exchanges(
    messages: &[Message],
    wanted: &BTreeSet<usize>,
) -> Result<BTreeSet<usize>, HistoryError> {
    let mut open = OpenCalls::default();
    // Which exchange a message belongs to, by the index of the message that opens it.
    let mut opened_by: Vec<usize> = Vec::with_capacity(messages.len());
    let mut last_of_model = None;
    for (at, message) in messages.iter().enumerate() {
        let call = open.follow(at, message)?;
        let previous = last_of_model.filter(|_| continues_previous(message));
        let belongs_to = call.or(previous).and_then(|earlier: usize| opened_by.get(earlier).copied());
        opened_by.push(belongs_to.unwrap_or(at));
        if matches!(message, Message::Assistant { .. }) {
            last_of_model = Some(at);
        }
    }
    let exchanges: BTreeSet<usize> = wanted.iter().filter_map(|&at| opened_by.get(at).copied()).collect();
    let whole = opened_by.iter().enumerate().filter(|(_, exchange)| exchanges.contains(exchange));
    Ok(whole.map(|(at, _)| at).collect())
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
    fn damaged_pairing_is_told() {
        let messages = [Message::user("0"), result("a")];
        let fault = HistoryError::ToolResult { message: 1 };
        assert_eq!(whole_exchanges(&messages, &BTreeSet::from([0])), Err(fault));
    }
}
