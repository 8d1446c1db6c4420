//! The five sections of a summary and their canonical XML.

use crate::SharedText;

/// Name of the summary's root element.
pub const SUMMARY_ROOT: &str = "conversation_summary";

/// A section of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// What the user wants.
    Goal,
    /// Rules that hold until revoked.
    Constraints,
    /// What was decided.
    Decisions,
    /// What is the case.
    State,
    /// What remains to be done.
    OpenItems,
}

impl Section {
    /// The sections in the order of the grammar.
    pub const ALL: [Self; 5] = [Self::Goal, Self::Constraints, Self::Decisions, Self::State, Self::OpenItems];

    /// The element's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Goal => "goal",
            Self::Constraints => "constraints",
            Self::Decisions => "decisions",
            Self::State => "state",
            Self::OpenItems => "open_items",
        }
    }

    /// Whether the grammar demands that this section says something.
    #[must_use]
    pub fn is_required(self) -> bool {
        matches!(self, Self::Goal | Self::State)
    }
}

/// A summary's content: items by section, in order. One item is one line; line breaks inside an item become
/// spaces when it is rendered.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SummarySections {
    /// What the user wants. Must say something.
    pub goal: Vec<SharedText>,
    /// Rules that hold until revoked.
    pub constraints: Vec<SharedText>,
    /// What was decided.
    pub decisions: Vec<SharedText>,
    /// What is the case. Must say something.
    pub state: Vec<SharedText>,
    /// What remains to be done.
    pub open_items: Vec<SharedText>,
}

/// A rendered summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedSummary {
    /// The canonical XML.
    pub xml: SharedText,
    /// How many characters were dropped because XML forbids them.
    pub dropped_characters: u64,
}

impl SummarySections {
    /// The items of one section.
    #[must_use]
    pub fn items(&self, section: Section) -> &[SharedText] {
        match section {
            Section::Goal => &self.goal,
            Section::Constraints => &self.constraints,
            Section::Decisions => &self.decisions,
            Section::State => &self.state,
            Section::OpenItems => &self.open_items,
        }
    }

    /// The items of one section, to change.
    pub fn items_mut(&mut self, section: Section) -> &mut Vec<SharedText> {
        match section {
            Section::Goal => &mut self.goal,
            Section::Constraints => &mut self.constraints,
            Section::Decisions => &mut self.decisions,
            Section::State => &mut self.state,
            Section::OpenItems => &mut self.open_items,
        }
    }

    /// Reads items back from the decoded text of a section: one a line, without list marks; blank lines are no
    /// items. A carriage return ends a line too, so that no item holds a break that rendering would change.
    #[must_use]
    pub fn items_of_text(text: &str) -> Vec<SharedText> {
        text.split(['\n', '\r'])
            .map(|line| without_marks(line.trim()))
            .filter(|line| !line.is_empty() && *line != "-")
            .map(SharedText::from)
            .collect()
    }

    /// The canonical XML: a single item of goal or state as plain text, every list one item a line with
    /// `- ` in front, `&`, `<` and `>` escaped, characters that XML forbids dropped and counted. Items that
    /// say nothing are left out.
    ///
    /// If goal and state each hold something that is not white space, the strict parser accepts the result.
    #[must_use]
    pub fn render(&self) -> RenderedSummary {
        let mut xml = String::new();
        let mut dropped_characters = 0;
        push_tag(&mut xml, "<", SUMMARY_ROOT);
        for section in Section::ALL {
            push_tag(&mut xml, "<", section.as_str());
            let plain = section.is_required() && self.spoken(section).count() == 1;
            for (at, item) in self.spoken(section).enumerate() {
                if at > 0 {
                    xml.push('\n');
                }
                if !plain {
                    xml.push_str("- ");
                }
                dropped_characters += push_item(&mut xml, item);
            }
            push_tag(&mut xml, "</", section.as_str());
        }
        push_tag(&mut xml, "</", SUMMARY_ROOT);
        RenderedSummary { xml: SharedText::from(xml), dropped_characters }
    }

    /// The length in bytes of the rendered XML, without rendering it.
    #[must_use]
    pub fn rendered_len(&self) -> usize {
        Section::ALL.iter().fold(SUMMARY_FRAME_BYTES, |len, &section| {
            let count = self.spoken(section).count();
            let marks = if section.is_required() && count == 1 { 0 } else { 2 * count };
            let breaks = count.saturating_sub(1);
            len + marks + breaks + self.spoken(section).map(|item| rendered_item_len(item)).sum::<usize>()
        })
    }

    /// The items that say something: more than white space and characters that XML forbids.
    fn spoken(&self, section: Section) -> impl Iterator<Item = &SharedText> {
        let speaks = |character: char| !character.is_whitespace() && is_xml_character(character);
        self.items(section).iter().filter(move |item| item.chars().any(speaks))
    }
}

/// Bytes that the ten section tags and the root take in a rendered summary.
pub const SUMMARY_FRAME_BYTES: usize = {
    let names = [SUMMARY_ROOT, "goal", "constraints", "decisions", "state", "open_items"];
    let mut bytes = 0;
    let mut at = 0;
    while at < names.len() {
        bytes += 2 * names[at].len() + "<></>".len();
        at += 1;
    }
    bytes
};

/// The length in bytes that one item takes in a rendered summary, its list mark and line break not included.
#[must_use]
pub fn rendered_item_len(item: &str) -> usize {
    item.chars()
        .map(|character| match character {
            '&' => 5,
            '<' | '>' => 4,
            _ if is_xml_character(character) => character.len_utf8(),
            _ => 0,
        })
        .sum()
}

/// Whether XML 1.0 allows the character in text.
#[must_use]
pub fn is_xml_character(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Appends text with `&`, `<` and `>` escaped, without the characters that XML forbids; says how many those
/// were.
pub fn escape_xml_into(xml: &mut String, text: &str) -> u64 {
    let mut dropped = 0;
    for character in text.chars() {
        match character {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            _ if is_xml_character(character) => xml.push(character),
            _ => dropped += 1,
        }
    }
    dropped
}

/// A line without the marks of a list in front, however many: rendered as a single item, one that was left
/// would be read as the mark.
fn without_marks(mut line: &str) -> &str {
    while let Some(rest) = line.strip_prefix("- ") {
        line = rest.trim_start();
    }
    line
}

fn push_item(xml: &mut String, item: &str) -> u64 {
    if !item.contains(['\n', '\r']) {
        return escape_xml_into(xml, item);
    }
    let mut dropped = 0;
    for (at, line) in item.split(['\n', '\r']).enumerate() {
        if at > 0 {
            xml.push(' ');
        }
        dropped += escape_xml_into(xml, line);
    }
    dropped
}

fn push_tag(xml: &mut String, open: &str, name: &str) {
    xml.push_str(open);
    xml.push_str(name);
    xml.push('>');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_the_canonical_form() {
        let sections = SummarySections {
            goal: vec!["ship <it> & rest".into()],
            constraints: vec!["never push".into(), " \u{1b}".into(), "two\nlines\u{1b}".into()],
            state: vec!["done".into(), "tested".into()],
            ..SummarySections::default()
        };
        let rendered = sections.render();
        assert_eq!(
            rendered.xml.as_str(),
            "<conversation_summary><goal>ship &lt;it&gt; &amp; rest</goal>\
             <constraints>- never push\n- two lines</constraints><decisions></decisions>\
             <state>- done\n- tested</state><open_items></open_items></conversation_summary>"
        );
        assert_eq!(rendered.dropped_characters, 1);
        assert_eq!(rendered.xml.len(), sections.rendered_len());
    }

    #[test]
    fn items_are_read_back() {
        assert_eq!(
            SummarySections::items_of_text("\n- a\n - b - c\r\n\n-\nplain\r- - d\n- -"),
            vec![SharedText::from("a"), "b - c".into(), "plain".into(), "d".into()]
        );
    }
}
