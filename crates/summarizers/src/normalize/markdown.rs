//! An answer in Markdown: the names of the sections as headings, items below.

use epitome_loop::{InvalidSummaryReason, Section, SharedText, SummarySections};

use super::{Repair, leave_out};

/// Reads the sections. Text in front of the first heading is an introduction; a heading that is no section would take what
/// is below it along, so it is refused.
pub(super) fn read(text: &str, repairs: &mut Vec<Repair>) -> Result<SummarySections, InvalidSummaryReason> {
    let mut items: [Vec<String>; Section::ALL.len()] = Default::default();
    let mut seen: Vec<Section> = Vec::new();
    let mut around = Vec::new();
    let mut in_fence = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_fence = !in_fence;
            continue;
        }
        match (heading(line).filter(|_| !in_fence), seen.last()) {
            (Some(Heading::Section(section)), _) => {
                if seen.contains(&section) {
                    return Err(InvalidSummaryReason::XmlStructure);
                }
                seen.push(section);
            }
            // The title of the whole.
            (Some(Heading::Unknown), None) => around.push(line),
            (Some(Heading::Unknown), Some(_)) => return Err(InvalidSummaryReason::XmlStructure),
            (None, None) if line.is_empty() => {}
            (None, None) => around.push(line),
            (None, Some(section)) => {
                if let Some(items) = items.get_mut(*section as usize) {
                    add(items, line, in_fence);
                }
            }
        }
    }
    if seen.is_empty() {
        return Err(InvalidSummaryReason::XmlRoot);
    }
    for line in around {
        leave_out(line, repairs)?;
    }
    repairs.push(Repair::Markdown);
    if !seen.is_sorted() {
        repairs.push(Repair::SectionOrder);
    }
    if seen.len() < Section::ALL.len() {
        repairs.push(Repair::MissingSections);
    }
    let mut sections = SummarySections::default();
    for (section, items) in Section::ALL.into_iter().zip(items) {
        *sections.items_mut(section) = items.into_iter().map(SharedText::from).collect();
    }
    Ok(sections)
}

enum Heading {
    Section(Section),
    Unknown,
}

/// Whether a line is a heading: marked by `#` at any depth, or bold and nothing else.
fn heading(line: &str) -> Option<Heading> {
    let bold = line.strip_prefix("**").and_then(|rest| rest.trim_end_matches(':').strip_suffix("**"));
    let name = match (line.strip_prefix('#'), bold) {
        (Some(rest), _) => rest.trim_start_matches('#').trim_end_matches('#'),
        (None, Some(bold)) => bold,
        (None, None) => return None,
    };
    let name = name.trim().trim_matches('*').trim().trim_end_matches(':').trim();
    let name = name.to_lowercase().replace([' ', '-'], "_");
    let section = Section::ALL.into_iter().find(|section| section.as_str() == name);
    Some(section.map_or(Heading::Unknown, Heading::Section))
}

/// Adds a line: an item of its own when it is marked as one or begins the section, else more of the item before it.
fn add(items: &mut Vec<String>, line: &str, in_fence: bool) {
    if line.is_empty() || line == "-" {
        return;
    }
    let item = if in_fence { None } else { marked(line) };
    // What says that there is nothing is no item.
    let says_nothing = |text: &str| {
        let text = text.trim_matches(['(', ')', '.', '_', '*', ' ']).to_lowercase();
        matches!(text.as_str(), "none" | "n/a" | "nothing" | "empty")
    };
    if says_nothing(item.unwrap_or(line)) {
        return;
    }
    match (item, items.last_mut()) {
        (None, Some(last)) => {
            last.push(' ');
            last.push_str(line);
        }
        _ => items.push(item.unwrap_or(line).into()),
    }
}

/// The text of a line that is marked as an item.
fn marked(line: &str) -> Option<&str> {
    for mark in ["- ", "* ", "+ ", "\u{2022} "] {
        if let Some(item) = line.strip_prefix(mark) {
            return Some(item.trim());
        }
    }
    let digits = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let is_numbered = digits.len() < line.len();
    digits.strip_prefix(". ").or_else(|| digits.strip_prefix(") ")).filter(|_| is_numbered).map(str::trim)
}
