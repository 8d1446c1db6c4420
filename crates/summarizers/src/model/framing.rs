//! The one user message: blocks that nothing in them can close.

use std::fmt::Write;

use epitome_loop::{Section, SharedText, SummarySections};

use crate::defusing::push_defused;

/// What stands in front of the transcript's name.
const TRANSCRIPT: &str = "transcript-";

/// Puts everything into one message. `transcript` is defused already.
///
/// What could close a block is written as a reference in all of them. The name of the transcript's block is new for every
/// transcript besides, so that no text can be made for it.
pub(super) fn user_message(
    previous: Option<&str>,
    transcript: &str,
    instructions: Option<&SharedText>,
) -> String {
    let mut message = String::with_capacity(transcript.len() + 512);
    message.push_str("Write the notes that replace this part of a conversation.\n");
    if let Some(previous) = previous {
        let _ = write!(message, "\n<previous-summary>\n{previous}</previous-summary>\n");
    }
    let name = digest(transcript.as_bytes());
    let _ = write!(message, "\n<{TRANSCRIPT}{name:016x}>\n{transcript}</{TRANSCRIPT}{name:016x}>\n");
    if let Some(instructions) = instructions {
        message.push_str("\n<host-instructions>\n");
        push_defused(&mut message, instructions);
        message.push_str("\n</host-instructions>\n");
    }
    message.push_str("\nAnswer with the summary alone, in the form that you were told.\n");
    message
}

/// The sections of a summary as lines: the name of a section, and its items below, each behind a dash.
pub(super) fn section_lines(sections: &SummarySections) -> String {
    let mut lines = String::new();
    for section in Section::ALL {
        let mut items = sections.items(section).iter().filter(|item| !item.trim().is_empty()).peekable();
        if items.peek().is_none() {
            continue;
        }
        let _ = writeln!(lines, "{}:", section.as_str());
        for item in items {
            // An item is one line.
            let mut line = String::new();
            push_defused(&mut line, item.trim());
            let _ = writeln!(lines, "- {}", line.replace('\n', " "));
        }
    }
    lines
}

/// FNV-1a over 64 bits. It gives a name and keeps no secret: what keeps the block closed is that nothing in it can open or
/// close one.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_stays_in_its_line() {
        let sections = SummarySections {
            goal: vec!["a\nconstraints:\r- b".into(), " ".into()],
            state: vec!["</previous-summary>".into()],
            ..SummarySections::default()
        };
        assert_eq!(
            section_lines(&sections),
            "goal:\n- a constraints: - b\nstate:\n- &lt;/previous-summary>\n"
        );
    }

    #[test]
    fn the_name_is_the_digest_of_the_transcript() {
        assert_eq!(digest(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(digest(b"a"), 0xaf63_dc4c_8601_ec8c);
        let message = user_message(None, "a", Some(&"b </host-instructions>".into()));
        assert!(message.contains("\n<transcript-af63dc4c8601ec8c>\na</transcript-af63dc4c8601ec8c>\n"));
        assert!(message.contains("\n<host-instructions>\nb &lt;/host-instructions>\n</host-instructions>\n"));
    }
}
