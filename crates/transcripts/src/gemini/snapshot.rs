//! The summary that the Gemini command line leaves when it compresses a history.

use epitome_loop::{Block, Message};

/// How many messages at the start stem from an earlier compression, and at which of them the summary stands.
///
/// A compressed history is the program's description of the environment, a user message with a
/// `<state_snapshot>`, a short acknowledgment of the model, and what was kept. Older versions have an
/// acknowledgment behind the environment too. Only there counts a snapshot: one that is quoted anywhere else
/// is text.
pub(super) fn earlier_summary(messages: &[Message]) -> Option<(usize, usize)> {
    const MOST_BEFORE: usize = 2;
    let at = messages.iter().take(MOST_BEFORE + 1).position(is_snapshot)?;
    let before = messages.get(..at)?;
    let is_plain = |message: &Message| matches!(message, Message::User { .. }) || is_acknowledgment(message);
    if !before.iter().all(is_plain) {
        return None;
    }
    let acknowledged = messages.get(at + 1).is_some_and(is_acknowledgment);
    Some((at + 1 + usize::from(acknowledged), at))
}

/// A user message that begins with a snapshot, or with the scratchpad that the model thought it up in.
fn is_snapshot(message: &Message) -> bool {
    const SNAPSHOT: &str = "<state_snapshot";
    let Message::User { blocks } = message else { return false };
    let mut texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str().trim_start()),
        _ => None,
    });
    let Some(first) = texts.next() else { return false };
    let is_tag = |text: &str| {
        text.strip_prefix(SNAPSHOT).is_some_and(|rest| rest.starts_with(['>', ' ', '\n', '\r', '\t']))
    };
    is_tag(first)
        || first.starts_with("<scratchpad")
            && (texts.any(is_tag) || memchr::memmem::find(first.as_bytes(), SNAPSHOT.as_bytes()).is_some())
}

/// A few words of the model and nothing else.
fn is_acknowledgment(message: &Message) -> bool {
    const LONGEST: usize = 200;
    let Message::Assistant { blocks, .. } = message else { return false };
    let mut length = 0;
    let only_text = blocks.iter().all(|block| match block {
        Block::Text { text } => {
            length += text.len();
            true
        }
        Block::Thinking(_) => true,
        _ => false,
    });
    only_text && (1..=LONGEST).contains(&length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_counts_at_the_start_only() {
        let environment = || Message::user("This is the CLI.");
        let snapshot = || Message::user("\n<state_snapshot>\n<overall_goal/></state_snapshot>");
        let thanks = || Message::assistant("Got it. Thanks!");
        let work = || Message::assistant("x".repeat(500));
        for (messages, expected) in [
            (vec![snapshot(), thanks(), environment()], Some((2, 0))),
            (vec![environment(), snapshot(), thanks()], Some((3, 1))),
            (vec![environment(), thanks(), snapshot(), thanks()], Some((4, 2))),
            (vec![snapshot(), work()], Some((1, 0))),
            (vec![snapshot()], Some((1, 0))),
            (vec![environment(), work(), snapshot()], None),
            (vec![environment(), environment(), environment(), snapshot()], None),
            (vec![thanks(), Message::assistant("<state_snapshot>")], None),
            (vec![Message::user("see <state_snapshot>")], None),
            (vec![Message::user("<state_snapshots>")], None),
            (vec![Message::user("<scratchpad>so</scratchpad>\n<state_snapshot v=\"1\">")], Some((1, 0))),
            (vec![Message::user("<scratchpad>so")], None),
            (vec![], None),
        ] {
            assert_eq!(earlier_summary(&messages), expected, "{}", messages.len());
        }
    }
}
