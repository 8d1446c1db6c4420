//! Whether messages stand in an order that providers accept; judged without our own check of histories.

use epitome_loop::{Message, Role};

/// Whether the newest turn waits for results.
pub(super) fn waits(messages: &[Message]) -> bool {
    let last = messages.iter().rposition(|message| message.role() != Role::Tool).unwrap_or(0);
    let behind = messages.get(last..).unwrap_or_default();
    behind.first().is_some_and(|message| message.tool_calls().count() >= behind.len())
}

/// What is wrong with the order after a repair; `None` when nothing is. Calls of the last message that is no
/// result may be open.
pub(super) fn fault(messages: &[Message]) -> Option<&'static str> {
    let spoken = messages.iter().find(|message| message.role() != Role::System);
    if spoken.is_some_and(|message| message.role() != Role::User) {
        return Some("the user does not begin");
    }
    let mut rest = messages;
    while let Some((message, behind)) = rest.split_first() {
        if message.blocks().is_empty() {
            return Some("a message is empty");
        }
        let results = behind.iter().take_while(|message| message.role() == Role::Tool).count();
        let (results, behind) = behind.split_at(results);
        let mut open: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
        open.sort_unstable();
        if open.windows(2).any(|pair| pair.first() == pair.last()) {
            return Some("a message has two calls with one id");
        }
        for result in results {
            let Message::ToolResult { tool_use_id, .. } = result else { return Some("not a result") };
            match open.binary_search(&tool_use_id.as_str()) {
                Ok(at) => drop(open.remove(at)),
                Err(_) => return Some("a result without a call"),
            }
        }
        if !open.is_empty() && !behind.is_empty() {
            return Some("a call without a result");
        }
        rest = behind;
    }
    None
}
