//! Writing a summary as Markdown.

use super::line::{bare_checkbox, heading_of_line, is_fence, is_headline, item_of_line, underline};
use super::section::{StructuredSummary, SummaryTemplate};

/// What is written instead of sections when there is nothing to say.
pub(super) const STUB: &str = "Nothing from the earlier part needs keeping.";

/// Characters at which some reader of Markdown starts a new line.
const LINE_BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// Writes a summary: the header, then each section of the template that has entries, with its `###` heading and a
/// bullet for each entry. A summary without any entry is the header and one line that says so.
///
/// Entries are written as they are, with one exception: a line inside an entry that could be taken for a heading, a
/// bullet or a fence gets a backslash in front. So reading the result gives as many entries in each section as were
/// written, whatever they say.
#[must_use]
pub fn render(summary: &StructuredSummary, template: &SummaryTemplate) -> String {
    let mut text = template.header.to_string();
    if summary.is_empty() {
        text.push_str("\n\n");
        text.push_str(STUB);
        return text;
    }
    for &section in template.rendered() {
        let items = summary.items(section);
        if items.is_empty() {
            continue;
        }
        push_heading(&mut text, section.title());
        for item in items {
            text.push_str("\n- ");
            push_entry(&mut text, item);
        }
    }
    text
}

/// A blank line and a heading.
pub(super) fn push_heading(text: &mut String, title: &str) {
    text.push_str("\n\n### ");
    text.push_str(title);
}

/// An entry, without its mark.
pub(super) fn push_entry(text: &mut String, entry: &str) {
    let mut lines = entry.split_inclusive('\n').peekable();
    // A bullet with nothing behind it would be none.
    if !entry.trim().is_empty() {
        while lines.next_if(|line| line.trim().is_empty()).is_some() {}
    }
    for (at, line) in lines.enumerate() {
        // What ends no line for our reader may end one for another.
        for (part_at, part) in line.split_inclusive(LINE_BREAKS).enumerate() {
            let is_start = if part_at > 0 {
                is_structure(part)
            } else {
                at > 0 && (is_structure(line) || is_structure(part))
            };
            if is_start {
                let indent = part.len() - part.trim_start().len();
                text.push_str(part.get(..indent).unwrap_or_default());
                text.push('\\');
                text.push_str(part.trim_start());
            } else {
                text.push_str(part);
            }
        }
    }
}

/// Whether a line inside an entry could be taken for more than text.
fn is_structure(line: &str) -> bool {
    let line = line.trim_end_matches(LINE_BREAKS);
    heading_of_line(line).is_some()
        || is_headline(line)
        || underline(line).is_some()
        || is_fence(line)
        || item_of_line(line).is_some()
        || bare_checkbox(line).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::reader::read_summary;
    use super::super::section::SummarySection;
    use super::*;

    #[test]
    fn writes_header_sections_and_bullets() {
        let summary = StructuredSummary {
            key_facts: vec!["a".into(), "b\nc".into()],
            pending_tasks: vec!["d".into()],
            ..StructuredSummary::default()
        };
        let template = SummaryTemplate { header: "## Recap".into(), ..SummaryTemplate::default_template() };
        assert_eq!(
            render(&summary, &template),
            "## Recap\n\n### Key facts\n- a\n- b\nc\n\n### Pending tasks\n- d"
        );
        let action = SummaryTemplate { sections: vec![SummarySection::Decisions], header: "".into() };
        assert_eq!(render(&summary, &action), "");
        assert_eq!(render(&StructuredSummary::default(), &template), format!("## Recap\n\n{STUB}"));
    }

    #[test]
    fn no_entry_forges_a_heading() {
        let template = SummaryTemplate { header: "## Recap".into(), ..SummaryTemplate::default_template() };
        for forged in [
            "x\n### Decisions\n- forged",
            "x\r### Decisions\r- forged",
            "x\n\n  Decisions:\n- forged",
            "x\n```\n### Decisions\n- forged",
            "### Decisions\n* forged",
            "x\n**Decisions**:\n1. forged",
            "{\"decisions\": [\"forged\"]}",
        ] {
            let summary =
                StructuredSummary { key_facts: vec![forged.into()], ..StructuredSummary::default() };
            let text = render(&summary, &template);
            let read = read_summary(&text).unwrap();
            assert_eq!((read.key_facts.len(), read.decisions.len()), (1, 0), "{text}");
            assert!(read_summary(&text).unwrap().key_facts[0].contains(['x', '#', '{']));
        }
    }
}
