//! What one line of an answer is: a heading, a bullet, a fence.

use super::section::SummarySection;

/// The section that a line is the heading of.
///
/// Any depth of `#` counts, none included, closing `#`s, bold, any casing, and colons at the end, before or behind
/// the marks of bold. A line with a bullet in front is no heading.
#[must_use]
pub fn heading_of_line(line: &str) -> Option<SummarySection> {
    /// The longest title with room to spare, in bytes.
    const LONGEST: usize = 64;
    if item_of_line(line).is_some() {
        return None;
    }
    let line = line.trim();
    let behind_marks = line.trim_start_matches('#');
    let has_marks = behind_marks.len() < line.len();
    let mut core = behind_marks.trim();
    loop {
        let before = core.len();
        core = core.trim_end_matches([':', '：']).trim_end();
        if has_marks {
            core = core.trim_end_matches('#').trim_end();
        }
        core = core.trim_matches(['*', '_']).trim();
        if core.len() == before {
            break;
        }
    }
    if core.is_empty() || core.len() > LONGEST {
        return None;
    }
    let core = core.to_lowercase();
    SummarySection::ALL.into_iter().find(|section| section.title().to_lowercase() == core)
}

/// The text of a line that is a bullet: `-`, `*`, `+`, `•`, or a number with `.` or `)`, then a space, then something.
/// A checkbox stays in the text: it says what is done.
#[must_use]
pub fn item_of_line(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = ["- ", "* ", "+ ", "• "].into_iter().find_map(|mark| line.strip_prefix(mark)).or_else(|| {
        let behind = line.trim_start_matches(|character: char| character.is_ascii_digit());
        let numbered = behind.len() < line.len();
        behind.strip_prefix(". ").or_else(|| behind.strip_prefix(") ")).filter(|_| numbered)
    });
    rest.map(str::trim).filter(|text| !text.is_empty())
}

/// The text of a line that is nothing but a checkbox and a task: `[x] done`.
pub(super) fn bare_checkbox(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = ["[ ] ", "[x] ", "[X] "].into_iter().find_map(|mark| line.strip_prefix(mark))?;
    (!rest.trim().is_empty()).then_some(line)
}

/// Whether a line opens or closes a fence.
pub(super) fn is_fence(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("```") || line.starts_with("~~~")
}

/// Whether a line reads as a heading of whatever name by itself: marks, bold over the whole line, or a short line
/// with a colon at its end.
pub(super) fn is_headline(line: &str) -> bool {
    /// Longer lines with a colon at their end are sentences.
    const MOST_WORDS: usize = 6;
    if item_of_line(line).is_some() {
        return false;
    }
    let trimmed = line.trim();
    if trimmed.starts_with('#') {
        return true;
    }
    let bare = trimmed.trim_end_matches([':', '：']).trim_end();
    let is_bold = ["**", "__"].into_iter().any(|mark| {
        let inner = bare.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
        inner.is_some_and(|inner| !inner.contains(mark) && inner.chars().any(char::is_alphanumeric))
    });
    if is_bold {
        return true;
    }
    let is_indented = line.starts_with([' ', '\t']);
    bare.len() < trimmed.len()
        && !is_indented
        && bare.starts_with(char::is_uppercase)
        && bare.split_whitespace().count() <= MOST_WORDS
}

/// The mark of a line that underlines the one above as a heading, or is a rule.
pub(super) fn underline(line: &str) -> Option<char> {
    let line = line.trim();
    ['=', '-'].into_iter().find(|&mark| line.len() >= 3 && line.trim_matches(mark).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_in_every_dress() {
        use SummarySection::{Decisions, KeyFacts};
        for line in [
            "Key facts",
            "###Key facts",
            "**Key facts:**",
            "**Key facts**:",
            "KEY FACTS :",
            "### Key facts ###",
            "## **Key facts** : ##",
            "__Key facts__",
            "*** Key facts ***",
            "Key facts::",
            "\u{212A}ey facts",
            "Key facts：",
        ] {
            assert_eq!(heading_of_line(line), Some(KeyFacts), "{line}");
        }
        assert_eq!(heading_of_line("*Decisions:*"), Some(Decisions));
        for line in [
            "* Decisions",
            "- Decisions",
            "+ Decisions",
            "1. Decisions",
            "# # Key facts",
            ":Decisions",
            "Key  facts",
            "`Key facts`",
            "#",
            "",
            "**",
            "### Decisions\u{1d}",
        ] {
            assert_eq!(heading_of_line(line), None, "{line}");
        }
    }

    #[test]
    fn bullets_of_every_kind() {
        for (line, text) in [
            ("- a", "a"),
            ("+ a", "a"),
            ("• a", "a"),
            ("* a", "a"),
            ("12) a", "a"),
            ("- [x] a", "[x] a"),
            ("  3. b ", "b"),
            ("- -", "-"),
        ] {
            assert_eq!(item_of_line(line), Some(text), "{line}");
        }
        for line in ["-a", "1.a", "a. x", "٣. a", "- ", "-", "**a** b", ". a", ""] {
            assert_eq!(item_of_line(line), None, "{line}");
        }
    }

    #[test]
    fn headings_of_other_names() {
        for line in [
            "# Notes",
            "#tag",
            "**Background:**",
            "**Background**:",
            "__Background__",
            "Next steps:",
            "Rejected options：",
        ] {
            assert!(is_headline(line), "{line}");
        }
        for line in [
            "**a** and **b**",
            "- # x",
            "  Wrapped:",
            "and so on:",
            "This is what the user had said about it:",
            "prose",
        ] {
            assert!(!is_headline(line), "{line}");
        }
        assert_eq!(["=====", "---", "--", "-=-"].map(underline), [Some('='), Some('-'), None, None]);
    }
}
