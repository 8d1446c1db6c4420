//! Reading a model's answer, tolerantly.

use epitome_loop::SharedText;
use serde_json::Value;

use super::json_answer::json_answer;
use super::line::{bare_checkbox, heading_of_line, is_fence, is_headline, is_underline, item_of_line};
use super::section::{MAX_SECTION_ITEMS, StructuredSummary, SummarySection};
use super::trimming::TRIMMED_MARK;

/// Reads an answer: JSON with the sections' keys, or headings with bullets. `None` when it cannot be read, which is not
/// the same as an answer that says nothing: known headings without content, or empty lists, are an empty summary.
///
/// * **JSON** counts only when it is the answer itself. A list with something other than text in it is unreadable.
/// * **Headings** count at any depth, in any casing, with bold and colons; a heading of another name ends the section.
/// * **Bullets** are `-`, `*`, `+`, `•`, numbers, and checkboxes without a mark. A line that goes on with a bullet is
///   joined to it by a space. A fence is looked through; in one that was opened under a heading, `#` is a comment.
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
    in_code: bool,
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
    };
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_underlined = lines.peek().is_some_and(|next| is_underline(next));
        scan.line(line, is_underlined);
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
    fn line(&mut self, line: &str, is_underlined: bool) {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            if self.last == Last::Bullet {
                self.last = Last::Blank;
            }
            return;
        }
        if is_fence(trimmed) {
            // One that opens before the first heading holds the whole answer.
            self.in_code = !self.in_code && self.current.is_some();
            return;
        }
        if let Some(section) = heading_of_line(line) {
            self.current = SummarySection::ALL.iter().position(|&one| one == section);
            self.is_recognized = true;
            self.in_code = false;
            self.last = Last::Nothing;
            return;
        }
        if !self.in_code && self.ends_section(line, is_underlined) {
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
        let says_something = trimmed != TRIMMED_MARK && trimmed.chars().any(char::is_alphanumeric);
        if !goes_on || !says_something {
            self.is_unread = true;
            return;
        }
        self.last = Last::Bullet;
        if !self.is_dropped
            && let Some(item) = list.last_mut()
        {
            item.push(' ');
            item.push_str(trimmed);
        }
    }

    fn ends_section(&self, line: &str, is_underlined: bool) -> bool {
        let is_setext = is_underlined
            && self.last != Last::Bullet
            && item_of_line(line).is_none()
            && !is_underline(line)
            && line.chars().any(char::is_alphanumeric);
        is_setext || is_headline(line)
    }
}
