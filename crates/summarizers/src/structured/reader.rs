//! Reading a model's answer, tolerantly.

use epitome_loop::SharedText;
use serde_json::Value;

use super::json_answer::json_answer;
use super::line::{bare_checkbox, heading_of_line, is_fence, is_headline, item_of_line, underline};
use super::section::{MAX_SECTION_ITEMS, StructuredSummary, SummarySection};
use super::trimming::TRIMMED_MARK;

/// Reads an answer: JSON with the sections' keys, or headings with bullets. `None` when it cannot be read, which is not
/// the same as an answer that says nothing: known headings without content, or empty lists, are an empty summary.
///
/// * **JSON** counts only when it is the answer itself. A list with something other than text in it is unreadable.
/// * **Headings** count at any depth, in any casing, with bold and colons; a heading of another name ends the section.
/// * **Bullets** are `-`, `*`, `+`, `•`, numbers, and checkboxes without a mark. A line that goes on with a bullet is
///   joined to it by a space, a line of code by a line break. A fence is looked through; in one that was opened under a
///   heading and is closed again, `#` is a comment.
/// * Each section takes 50 entries; further ones are dropped.
///
/// Time is linear in the answer.
#[must_use]
pub fn read_summary(text: &str) -> Option<StructuredSummary> {
    if let Some(json) = json_answer(text) {
        return read_json(json);
    }
    read_headings(text)
}

fn read_json(json: &str) -> Option<StructuredSummary> {
    let Ok(Value::Object(object)) = serde_json::from_str(json) else { return None };
    let mut summary = StructuredSummary::default();
    let mut is_recognized = false;
    for section in SummarySection::ALL {
        let Some(Value::Array(values)) = object.get(section.key()) else { continue };
        is_recognized |= values.is_empty();
        for value in values {
            // What is not text cannot be read, and dropping it would lose what it says.
            let Value::String(item) = value else { return None };
            let items = summary.items_mut(section);
            if !item.trim().is_empty() && items.len() < MAX_SECTION_ITEMS {
                items.push(SharedText::from(item.as_str()));
            }
        }
    }
    (is_recognized || !summary.is_empty()).then_some(summary)
}

/// Whether a line may go on with the last bullet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// There is no bullet to go on with.
    Nothing,
    /// A bullet, or a line that went on with it, stands right above.
    Bullet,
    /// A blank line stands between.
    Blank,
}

struct Scan {
    lists: [Vec<String>; 4],
    current: Option<usize>,
    last: Last,
    /// The last bullet was one too many, and so is what goes on with it.
    is_dropped: bool,
    is_recognized: bool,
    is_unread: bool,
    /// Inside a fence that was opened under a heading.
    in_code: bool,
    /// Inside a fence that holds the whole answer.
    in_outer: bool,
    /// How many fences follow.
    fences_left: usize,
}

fn read_headings(text: &str) -> Option<StructuredSummary> {
    let mut scan = Scan {
        lists: Default::default(),
        current: None,
        last: Last::Nothing,
        is_dropped: false,
        is_recognized: false,
        is_unread: false,
        in_code: false,
        in_outer: false,
        fences_left: text.lines().filter(|line| is_fence(line)).count(),
    };
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let underline = lines.peek().and_then(|next| underline(next));
        scan.line(line, underline);
    }
    let is_empty = scan.lists.iter().all(Vec::is_empty);
    if !scan.is_recognized || is_empty && scan.is_unread {
        return None;
    }
    let mut summary = StructuredSummary::default();
    for (section, list) in SummarySection::ALL.into_iter().zip(scan.lists) {
        *summary.items_mut(section) = list.into_iter().map(SharedText::from).collect();
    }
    Some(summary)
}

impl Scan {
    fn line(&mut self, line: &str, underlined: Option<char>) {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            if self.last == Last::Bullet {
                self.last = Last::Blank;
            }
            return;
        }
        if is_fence(trimmed) {
            self.fence(trimmed);
            return;
        }
        if let Some(section) = heading_of_line(line) {
            self.current = SummarySection::ALL.iter().position(|&one| one == section);
            self.is_recognized = true;
            self.in_code = false;
            self.last = Last::Nothing;
            return;
        }
        if !self.in_code && self.ends_section(line, underlined) {
            self.current = None;
            self.last = Last::Nothing;
            self.is_unread = true;
            return;
        }
        let Some(list) = self.current.and_then(|at| self.lists.get_mut(at)) else {
            self.is_unread = true;
            return;
        };
        if let Some(item) = item_of_line(line).or_else(|| bare_checkbox(line)) {
            self.is_dropped = list.len() >= MAX_SECTION_ITEMS;
            if !self.is_dropped {
                list.push(item.to_owned());
            }
            self.last = Last::Bullet;
            return;
        }
        let goes_on = match self.last {
            Last::Nothing => false,
            Last::Bullet => true,
            Last::Blank => self.in_code || line.starts_with("  ") || line.starts_with('\t'),
        };
        let says_something =
            trimmed != TRIMMED_MARK && !is_tag(trimmed) && trimmed.chars().any(char::is_alphanumeric);
        if !goes_on || !says_something {
            self.is_unread = true;
            return;
        }
        self.last = Last::Bullet;
        if !self.is_dropped
            && let Some(item) = list.last_mut()
        {
            item.push(if self.in_code { '\n' } else { ' ' });
            item.push_str(trimmed);
        }
    }

    fn fence(&mut self, line: &str) {
        self.fences_left = self.fences_left.saturating_sub(1);
        let is_bare = line.trim_matches(['`', '~']).is_empty();
        if self.in_code && is_bare {
            self.in_code = false;
        } else if self.in_outer && is_bare {
            self.in_outer = false;
        } else if self.current.is_none() {
            self.in_outer = true;
        } else {
            // One that nothing closes is a stray.
            self.in_code = self.fences_left > usize::from(self.in_outer);
        }
    }

    fn ends_section(&self, line: &str, underlined: Option<char>) -> bool {
        // Below a bullet and what goes on with it, dashes are a rule.
        let counts = underlined.is_some_and(|mark| mark == '=' || self.last != Last::Bullet);
        let is_setext = counts
            && item_of_line(line).is_none()
            && underline(line).is_none()
            && line.chars().any(char::is_alphanumeric);
        is_setext || is_headline(line)
    }
}

/// Whether a line is one tag of a markup, as wrappers around answers leave them.
fn is_tag(line: &str) -> bool {
    let inner = line.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    inner.is_some_and(|inner| !inner.contains(['<', '>']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(summary: &StructuredSummary, section: SummarySection) -> Vec<&str> {
        summary.items(section).iter().map(|item| item.as_str()).collect()
    }

    fn facts(text: &str) -> Option<Vec<String>> {
        let summary = read_summary(text)?;
        Some(items(&summary, SummarySection::KeyFacts).into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn a_line_that_goes_on_belongs_to_its_bullet() {
        assert_eq!(
            facts("### Key facts\n- a\n  goes on\nlazily\n\n  further\n- b").unwrap(),
            ["a goes on lazily further", "b"]
        );
        assert_eq!(facts("### Key facts\n- a\n\nprose of its own\n- b").unwrap(), ["a", "b"]);
        assert_eq!(facts("### Key facts\n- a\n</summary>\n---").unwrap(), ["a"]);
    }

    #[test]
    fn a_comment_in_code_ends_nothing() {
        let text = "### Key facts\n- run\n```sh\n# first\nmake\n```\n- after\n### Decisions\n- d";
        assert_eq!(facts(text).unwrap(), ["run\n# first\nmake", "after"]);
        // Nor does the fence around an answer hide one.
        assert_eq!(facts("```md\n### Key facts\n- a\n# Other\n- b\n```").unwrap(), ["a"]);
        // A fence that nothing closes is no code.
        assert_eq!(facts("### Key facts\n- a\n```\n# Other\n- b").unwrap(), ["a"]);
        assert_eq!(facts("~~~\n### Key facts\n- a\n~~~").unwrap(), ["a"]);
    }

    #[test]
    fn a_heading_of_another_name_ends_a_section() {
        for heading in [
            "# Rejected",
            "**Rejected**",
            "__Rejected:__",
            "Rejected options:",
            "Rejected\n========",
            "\nRejected\n---",
        ] {
            let summary = read_summary(&format!("### Decisions\n- use X\n{heading}\n- use Y")).unwrap();
            assert_eq!(items(&summary, SummarySection::Decisions), ["use X"], "{heading}");
        }
    }

    #[test]
    fn a_star_bullet_is_no_heading() {
        let summary = read_summary("### Key facts\n* Decisions\n* b").unwrap();
        assert_eq!(items(&summary, SummarySection::KeyFacts), ["Decisions", "b"]);
    }

    #[test]
    fn checkboxes_are_bullets_and_keep_their_mark() {
        let summary = read_summary("## Pending tasks :\n- [x] a\n[ ] b\n+ c\n• d").unwrap();
        assert_eq!(items(&summary, SummarySection::PendingTasks), ["[x] a", "[ ] b", "c", "d"]);
    }

    #[test]
    fn json_counts_only_as_the_answer() {
        let quoted = "### Decisions\n- saw `{\"pending_tasks\": []}`\n- b";
        assert_eq!(
            items(&read_summary(quoted).unwrap(), SummarySection::Decisions),
            ["saw `{\"pending_tasks\": []}`", "b"]
        );
        assert_eq!(facts("[ ] note\n{\"key_facts\": [\"a\"]}").unwrap(), ["a"]);
    }

    #[test]
    fn empty_and_unreadable_are_told_apart() {
        assert!(read_summary("### Key facts").unwrap().is_empty());
        assert!(read_summary("{\"key_facts\": []}").unwrap().is_empty());
        for unreadable in [
            "",
            "prose",
            "### Key facts\nprose",
            "{\"key_facts\": [1, 2], \"decisions\": []}",
            "{\"key_facts\": [\"a\", 1]}",
            "{\"other\": []}",
            "[\"a\"]",
            "- a",
        ] {
            assert!(read_summary(unreadable).is_none(), "{unreadable}");
        }
    }

    #[test]
    fn a_section_takes_fifty_and_no_pieces_of_more() {
        let text = format!("### Key facts\n{}  goes on", "- a\n".repeat(51));
        let facts = facts(&text).unwrap();
        assert_eq!((facts.len(), facts.last().unwrap().as_str()), (50, "a"));
    }
}
