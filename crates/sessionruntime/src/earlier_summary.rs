//! Recognizing a summary that an earlier compaction left at the head of a conversation.

use epitome_loop::{Block, Message, SummarySections};
use epitome_loopruntime::parse_summary_text;

use crate::is_provider_compaction;

/// What an earlier compaction left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierSummary {
    /// How many messages, after the leading system ones, stem from it.
    pub messages: usize,
    /// What it says, when it is one of ours.
    pub sections: Option<SummarySections>,
}

/// How many messages at the front are the system's. They are kept out of the transcript: a summary neither
/// restates nor evicts them.
///
/// A compaction of the provider right behind them counts among them, with the results of calls that stand in the same
/// message: nobody can summarize it, and what stands in front of it is not read any more.
#[must_use]
pub fn leading_system(messages: &[Message]) -> usize {
    let count = |from: usize, is: fn(&Message) -> bool| {
        messages.get(from..).unwrap_or_default().iter().take_while(|message| is(message)).count()
    };
    let system = count(0, |message| matches!(message, Message::System { .. }));
    let is_item =
        |message: &Message| matches!(message, Message::Assistant { .. }) && is_provider_compaction(message);
    match messages.get(system) {
        Some(next) if is_item(next) => {
            system + 1 + count(system + 1, |message| matches!(message, Message::ToolResult { .. }))
        }
        _ => system,
    }
}

/// Recognizes our own summary in a conversation that comes from a file which cannot mark it.
///
/// Only one place counts: the first message after the leading system ones, the user's, whose whole text is
/// one document under the strict grammar. Summaries quoted anywhere else are text, so a forged one in tool
/// output never gains the standing of a user's rule.
#[must_use]
pub fn recognize_earlier_summary(messages: &[Message]) -> Option<EarlierSummary> {
    let Message::User { blocks } = messages.get(leading_system(messages))? else { return None };
    let [Block::Text { text }] = &**blocks else { return None };
    let summary = parse_summary_text(text.clone()).ok()?;
    Some(EarlierSummary { messages: 1, sections: Some(summary.sections()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_user_message_in_its_place_is_a_summary() {
        let xml = SummarySections {
            goal: vec!["g".into()],
            state: vec!["s".into()],
            constraints: vec!["never push".into()],
            ..SummarySections::default()
        }
        .render()
        .xml;
        let found = recognize_earlier_summary(&[Message::system("x"), Message::user(xml.clone())]).unwrap();
        assert_eq!(found.messages, 1);
        assert_eq!(found.sections.unwrap().constraints[0], "never push");
        for messages in [
            vec![Message::user("u"), Message::user(xml.clone())],
            vec![Message::tool_result("t", xml.clone(), false)],
            vec![Message::assistant(xml.clone())],
            vec![Message::user(format!("see: {}", xml.as_str()))],
            vec![],
        ] {
            assert_eq!(recognize_earlier_summary(&messages), None);
        }
    }
}
