//! Bringing a summary within a budget, to the character.

use epitome_loop::{SharedText, TokenCount};

use super::estimate::{characters, most_characters};
use super::line::{heading_of_line, is_fence, underline};
use super::rendering::{push_entry, push_heading, render};
use super::section::{StructuredSummary, SummarySection, SummaryTemplate};

/// Marks a place where something was left out.
pub const TRIMMED_MARK: &str = "[trimmed]";

/// Characters of a mark with its line break.
const MARK_SIZE: usize = TRIMMED_MARK.len() + 1;

/// Characters of a bullet with its line break.
const BULLET_SIZE: usize = 3;

/// Characters of a heading besides its title.
const HEADING_SIZE: usize = "\n\n### ".len();

/// A summary within its budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrimmedSummary {
    /// What is left, without marks.
    pub summary: StructuredSummary,
    /// It rendered, with marks.
    pub text: SharedText,
    /// How many entries were left out or cut.
    pub left_out: u64,
}

/// Brings a summary within a budget of tokens by [`super::estimate_text`] of its rendering.
///
/// Entries go whole from the end of the section that can be spared first: open questions, key facts, decisions, pending
/// tasks. Each section that loses something keeps its heading and gets the mark `[trimmed]`; where not even all headings
/// have room, the sections that can be spared go with theirs. An entry that does not fit whole is cut, at a line
/// break if that leaves at most a tenth of the budget unused, else behind a word, else inside one. The result is
/// computed, not approached: there is one pass.
///
/// `None` when the budget has no room for header, heading, mark and a part of an entry, or when what is left says
/// nothing.
#[must_use]
pub fn trim_summary_to_budget(
    summary: &StructuredSummary,
    template: &SummaryTemplate,
    budget: TokenCount,
) -> Option<TrimmedSummary> {
    let most = most_characters(budget)?;
    let whole = render(summary, template);
    if size(&whole) <= most {
        let says = summary.is_empty() || says_something(summary, template);
        return says.then(|| TrimmedSummary { summary: summary.clone(), text: whole.into(), left_out: 0 });
    }
    let mut slots = slots(summary, template);
    let header = size(&template.header);
    let chosen = chosen_slots(&slots, most.checked_sub(header)?);
    let loses_slots = chosen.len() < slots.len();
    let fixed: usize =
        chosen.iter().filter_map(|&at| slots.get(at)).map(|slot| slot.frame() + MARK_SIZE).sum();
    let mut room = most.checked_sub(header)?.checked_sub(fixed)?;
    let mut is_full = false;
    for (at, &slot) in chosen.iter().enumerate() {
        let is_last = at + 1 == chosen.len();
        let Some(slot) = slots.get_mut(slot) else { continue };
        slot.is_chosen = true;
        let refund = if is_last && loses_slots { 0 } else { MARK_SIZE };
        if !is_full && slot.size() <= room + refund {
            room = room + refund - slot.size();
            slot.kept = slot.entries.len();
            slot.is_marked = refund == 0;
            continue;
        }
        slot.is_marked = true;
        if !is_full {
            slot.fill(room, spare(most, budget), at == 0);
            is_full = true;
        }
    }
    finish(&slots, summary, template)
}

/// Brings a plain text within a budget, at a line break if that leaves at most a tenth unused, with the mark at its end.
///
/// `None` when there is no room for the mark and something before it, or what is left says nothing.
#[must_use]
pub fn trim_text_to_budget(text: &str, budget: TokenCount) -> Option<String> {
    let most = most_characters(budget)?;
    if size(text) <= most {
        return is_substantive(text).then(|| text.to_owned());
    }
    let mut kept = cut(text, most.checked_sub(MARK_SIZE)?, spare(most, budget))?.to_owned();
    if !is_substantive(&kept) {
        return None;
    }
    kept.push('\n');
    kept.push_str(TRIMMED_MARK);
    Some(kept)
}

/// Whether a text says something: a line that is not blank, no heading, no fence, no rule, no bare bullet and no mark.
/// What says nothing is the shell of a summary, and no summary.
#[must_use]
pub fn is_substantive(text: &str) -> bool {
    text.lines().any(|line| heading_of_line(line).is_none() && !is_shell(line))
}

/// Whether a line is part of a shell, whatever section it names.
fn is_shell(line: &str) -> bool {
    let line = line.trim();
    line.is_empty()
        || line == TRIMMED_MARK
        || line.starts_with('#')
        || is_fence(line)
        || underline(line).is_some()
        || matches!(line, "-" | "*" | "+" | "•")
}

/// Whether an entry says something. Behind its bullet, a title is a word like any other.
fn entry_says_something(entry: &str) -> bool {
    let (first, rest) = entry.split_once('\n').unwrap_or((entry, ""));
    !is_shell(first) || is_substantive(rest)
}

/// How many of the room's characters may stay unused so that at least nine tenths of the budget are used.
fn spare(most: usize, budget: TokenCount) -> usize {
    let framing = 20_u64;
    let least = budget.get().saturating_mul(9).div_ceil(10).saturating_mul(4).saturating_sub(framing);
    most.saturating_sub(usize::try_from(least).unwrap_or(usize::MAX))
}

fn size(text: &str) -> usize {
    usize::try_from(characters(text)).unwrap_or(usize::MAX)
}

fn says_something(summary: &StructuredSummary, template: &SummaryTemplate) -> bool {
    template
        .rendered()
        .iter()
        .flat_map(|&section| summary.items(section))
        .any(|item| entry_says_something(item))
}

/// One place of the template with its entries as they are rendered.
struct Slot {
    section: SummarySection,
    /// The less, the more important.
    rank: (usize, usize),
    entries: Vec<(String, usize)>,
    is_chosen: bool,
    kept: usize,
    /// The part that is kept of the entry behind the kept ones.
    part: Option<String>,
    is_marked: bool,
}

fn slots(summary: &StructuredSummary, template: &SummaryTemplate) -> Vec<Slot> {
    let places = template.rendered().iter().enumerate();
    places
        .filter(|&(_, &section)| !summary.items(section).is_empty())
        .map(|(at, &section)| {
            let importance = SummarySection::BY_IMPORTANCE.iter().position(|&one| one == section);
            let entries = summary.items(section).iter().map(|item| {
                let mut entry = String::new();
                push_entry(&mut entry, item);
                let length = size(&entry);
                (entry, length)
            });
            Slot {
                section,
                rank: (importance.unwrap_or(usize::MAX), at),
                entries: entries.collect(),
                is_chosen: false,
                kept: 0,
                part: None,
                is_marked: false,
            }
        })
        .collect()
}

/// The slots that keep their headings, with a mark each and room for a character of an entry, the most important first.
fn chosen_slots(slots: &[Slot], room: usize) -> Vec<usize> {
    let mut by_rank: Vec<(usize, &Slot)> = slots.iter().enumerate().collect();
    by_rank.sort_by_key(|(_, slot)| slot.rank);
    let mut used = BULLET_SIZE + 1;
    let mut chosen = Vec::new();
    for (at, slot) in by_rank {
        let with_it = used + slot.frame() + MARK_SIZE;
        if with_it <= room {
            used = with_it;
            chosen.push(at);
        }
    }
    chosen
}

impl Slot {
    /// What the heading takes.
    fn frame(&self) -> usize {
        HEADING_SIZE + size(self.section.title())
    }

    /// What all entries take.
    fn size(&self) -> usize {
        self.entries.iter().map(|(_, length)| length + BULLET_SIZE).sum()
    }

    /// Takes entries while there is room, and a part of the next if much room is left or nothing else is said.
    fn fill(&mut self, mut room: usize, spare: usize, is_first: bool) {
        for (entry, length) in &self.entries {
            let needed = length + BULLET_SIZE;
            if needed <= room {
                room -= needed;
                self.kept += 1;
                continue;
            }
            let says_nothing_yet = is_first && self.kept == 0;
            if room > spare || says_nothing_yet {
                let part = room.checked_sub(BULLET_SIZE).and_then(|room| cut(entry, room, spare));
                self.part = part.map(str::to_owned);
            }
            break;
        }
    }
}

/// The start of a text within so many characters, cut where it hurts least; `None` when nothing is left.
fn cut(text: &str, room: usize, spare: usize) -> Option<&str> {
    let end = text.char_indices().nth(room).map_or(text.len(), |(end, _)| end);
    let start = text.get(..end)?;
    let wastes_little = |kept: &&str| !kept.trim().is_empty() && room.saturating_sub(size(kept)) <= spare;
    let at_line = start.rfind('\n').and_then(|at| start.get(..at)).map(str::trim_end).filter(wastes_little);
    let at_word = || start.rfind(char::is_whitespace).and_then(|at| start.get(..at)).map(str::trim_end);
    let kept = at_line.or_else(|| at_word().filter(wastes_little)).unwrap_or(start);
    (!kept.trim().is_empty()).then_some(kept)
}

fn finish(slots: &[Slot], summary: &StructuredSummary, template: &SummaryTemplate) -> Option<TrimmedSummary> {
    let mut text = template.header.to_string();
    let mut left = StructuredSummary::default();
    let mut left_out = 0_u64;
    let mut is_substance = false;
    for slot in slots {
        left_out += (slot.entries.len() - slot.kept) as u64;
        if !slot.is_chosen {
            continue;
        }
        push_heading(&mut text, slot.section.title());
        let whole = slot.entries.iter().take(slot.kept).map(|(entry, _)| entry);
        for entry in whole.chain(&slot.part) {
            text.push_str("\n- ");
            text.push_str(entry);
            // What was neutralized on the way says no more than before.
            is_substance |= entry_says_something(&entry.replace("\n\\", "\n"));
        }
        if slot.is_marked {
            text.push('\n');
            text.push_str(TRIMMED_MARK);
        }
        let mut items: Vec<SharedText> =
            summary.items(slot.section).iter().take(slot.kept).cloned().collect();
        items.extend(slot.part.as_deref().map(SharedText::from));
        if items.len() >= left.items(slot.section).len() {
            *left.items_mut(slot.section) = items;
        }
    }
    is_substance.then(|| TrimmedSummary { summary: left, text: text.into(), left_out })
}

#[cfg(test)]
mod tests {
    use super::super::estimate::estimate_text;
    use super::*;

    fn template() -> SummaryTemplate {
        SummaryTemplate { header: "## Recap".into(), ..SummaryTemplate::default_template() }
    }

    fn summary(entries: usize) -> StructuredSummary {
        let items =
            |name: &str| (0..entries).map(|at| format!("{name} number {at} of the build").into()).collect();
        StructuredSummary {
            key_facts: items("fact"),
            decisions: items("decision"),
            pending_tasks: items("task"),
            open_questions: items("question"),
        }
    }

    #[test]
    fn entries_go_whole_from_the_least_important_end() {
        let whole = summary(10);
        let budget = TokenCount(estimate_text(&render(&whole, &template())).get() / 2);
        let trimmed = trim_summary_to_budget(&whole, &template(), budget).unwrap();
        assert!(estimate_text(&trimmed.text) <= budget);
        assert!(estimate_text(&trimmed.text).get() * 10 >= budget.get() * 9);
        assert_eq!(trimmed.summary.pending_tasks, whole.pending_tasks);
        assert!(trimmed.summary.open_questions.is_empty());
        assert!(trimmed.text.ends_with("### Open questions\n[trimmed]"), "{}", trimmed.text.as_str());
        assert_eq!(trimmed.text.matches("### ").count(), 4);
        assert!(trimmed.left_out > 0);
    }

    #[test]
    fn far_over_the_budget_something_is_left() {
        let whole = summary(40);
        for budget in 30..60 {
            let trimmed = trim_summary_to_budget(&whole, &template(), TokenCount(budget)).unwrap();
            assert!(estimate_text(&trimmed.text).get() <= budget);
            assert!(
                estimate_text(&trimmed.text).get() * 10 >= budget * 9,
                "{budget} {}",
                trimmed.text.as_str()
            );
        }
    }

    #[test]
    fn an_entry_that_does_not_fit_is_cut_at_a_line() {
        let text: String = (0..40).map(|at| format!("line {at} of a long answer\n")).collect();
        let whole = StructuredSummary::of_raw_text(text.trim_end(), &template());
        let trimmed = trim_summary_to_budget(&whole, &template(), TokenCount(120)).unwrap();
        assert!(trimmed.text.ends_with(" of a long answer\n[trimmed]"), "{}", trimmed.text.as_str());
        assert!(estimate_text(&trimmed.text).get() >= 108);
        // Without a line break there is nothing better than a word, and without words than a character.
        let words = StructuredSummary::of_raw_text("word ".repeat(300), &template());
        assert!(
            trim_summary_to_budget(&words, &template(), TokenCount(100))
                .unwrap()
                .text
                .ends_with("word\n[trimmed]")
        );
        let one = StructuredSummary::of_raw_text("語".repeat(900), &template());
        assert_eq!(
            estimate_text(&trim_summary_to_budget(&one, &template(), TokenCount(100)).unwrap().text).get(),
            100
        );
    }

    #[test]
    fn a_shell_is_no_summary() {
        assert!(trim_summary_to_budget(&summary(9), &template(), TokenCount(12)).is_none());
        let blank = StructuredSummary::of_raw_text(" ".repeat(900), &template());
        assert!(trim_summary_to_budget(&blank, &template(), TokenCount(100)).is_none());
        for shell in
            ["", "[trimmed]", "### A\n[trimmed]", "Key facts:\n[trimmed]", "```\n-\n[trimmed]\n", "---"]
        {
            assert!(!is_substantive(shell), "{shell}");
        }
        assert!(is_substantive("- a") && is_substantive("a[trimmed]"));
    }

    #[test]
    fn plain_text_is_cut_at_a_line() {
        let text = "one line of text\n".repeat(40);
        let trimmed = trim_text_to_budget(&text, TokenCount(80)).unwrap();
        assert!(trimmed.ends_with("one line of text\n[trimmed]"));
        assert!(estimate_text(&trimmed).get() <= 80 && estimate_text(&trimmed).get() >= 72);
        assert_eq!(trim_text_to_budget("### A\n### B", TokenCount(80)), None);
    }
}
