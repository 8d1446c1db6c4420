//! Rendering and trimming.

use epitome_loop::TokenCount;
use epitome_summarizers::structured::{
    StructuredSummary, SummarySection, SummaryTemplate, TRIMMED_MARK, TrimmedSummary, estimate_text,
    heading_of_line, is_substantive, item_of_line, read_summary, trim_summary_to_budget,
};
use serde_json::{Value, json};

use super::super::Judgment;
use super::classes::{BETTER_READING, EXACT_TRIM, NOTHING_FORGED, SECTIONS_KEPT};
use super::reading::is_read_otherwise;
use super::scene::{self, summary_value, with_our_words, word};
use super::{equal_or, reference_pass, reference_reader};

/// A text as the only entry of a template's first section, with nothing neutralized: as the reference renders it, a
/// section that is named twice shown twice.
pub(super) fn render_text(text: &str, template: &SummaryTemplate) -> String {
    let first = template.rendered().first();
    let places = template.rendered().iter().filter(|section| Some(*section) == first);
    let shown = places.map(|section| format!("\n\n### {}\n- {text}", section.title()));
    format!("{}{}", template.header.as_str(), shown.collect::<String>())
}

pub(super) fn render(input: &Value, expect: &Value) -> Judgment {
    let summary = scene::summary(&input["summary"]);
    let template = scene::template(&input["template"]);
    let figures = expect["empty"] == summary.is_empty()
        && expect["fits_template"] == summary.fits(&template)
        && expect["populated_in_template"] == summary.populated(&template);
    if !figures {
        return Judgment::of("the figures", "other figures");
    }
    if !is_rendered_so(input, &template, expect) {
        return Judgment::of("what the reference's rules give", "another text");
    }
    let ours = structured_render(&summary, &template);
    let is_equal = ours == with_our_words(word(&expect["text"]));
    equal_or(
        is_equal,
        "the text",
        NOTHING_FORGED,
        could_forge(&summary, &template),
        forges_nothing(&ours, &summary, &template),
    )
}

pub(super) fn round_trip(input: &Value, expect: &Value) -> Judgment {
    let summary = scene::summary(&input["summary"]);
    let template = scene::template(&input["template"]);
    let lists = reference_reader::read(word(&expect["text"]));
    let again = reference_pass::render(&lists, &template);
    let follows_the_rules = is_rendered_so(input, &template, expect)
        && lists == expect["reparsed"]
        && expect["identical"] == (lists == input["summary"])
        && expect["rerender_same"] == (!lists.is_null() && again == word(&expect["text"]));
    if !follows_the_rules {
        return Judgment::of("what the reference's rules give", "another text");
    }
    let ours = structured_render(&summary, &template);
    if ours != with_our_words(word(&expect["text"])) {
        let rule = could_forge(&summary, &template);
        return equal_or(false, "the text", NOTHING_FORGED, rule, forges_nothing(&ours, &summary, &template));
    }
    let again = read_summary(&ours);
    let is_equal = summary_value(again.as_ref()) == expect["reparsed"]
        && expect["identical"] == (again.as_ref() == Some(&summary))
        && expect["rerender_same"] == again.is_some_and(|again| structured_render(&again, &template) == ours);
    equal_or(is_equal, "what is read back", BETTER_READING, is_read_otherwise(&ours), true)
}

/// Whether the text of a vector is what the reference's rules give.
fn is_rendered_so(input: &Value, template: &SummaryTemplate, expect: &Value) -> bool {
    let text = reference_pass::render(&input["summary"], template);
    with_our_words(&text) == with_our_words(word(&expect["text"]))
}

fn structured_render(summary: &StructuredSummary, template: &SummaryTemplate) -> String {
    epitome_summarizers::structured::render(summary, template)
}

/// Whether an entry that is shown has more than one line.
fn could_forge(summary: &StructuredSummary, template: &SummaryTemplate) -> bool {
    let shown = template.rendered().iter().flat_map(|&section| summary.items(section));
    shown.clone().any(|item| item.contains(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']))
}

/// Whether a rendering has no heading but its own.
fn forges_nothing(text: &str, summary: &StructuredSummary, template: &SummaryTemplate) -> bool {
    let headings = text.lines().filter(|line| heading_of_line(line).is_some()).count();
    headings == summary.populated(template)
}

pub(super) fn substantive(input: &Value, expect: &Value) -> Judgment {
    let text = word(&input["text"]);
    let ours = is_substantive(text);
    let is_shell_line = |line: &str| {
        heading_of_line(line).is_some()
            || ["```", "~~~", "---", "==="].iter().any(|mark| line.trim().starts_with(mark))
            || matches!(line.trim(), "-" | "*" | "+" | "•" | TRIMMED_MARK)
    };
    let rule = reference_pass::is_substantive(text)
        && expect["substantive"] == true
        && text.lines().any(is_shell_line);
    equal_or(expect["substantive"] == ours, "a word", EXACT_TRIM, rule, !ours)
}

pub(super) fn trim(input: &Value, expect: &Value) -> Judgment {
    let text = word(&input["text"]);
    let template = scene::template(&input["template"]);
    let budget = TokenCount(input["budget"].as_u64().unwrap_or_default());
    let before = estimate_text(&render_text(text, &template));
    if expect["rendered_tokens_before"] != before.get() {
        return Judgment::of(expect["rendered_tokens_before"].to_string(), before.to_string());
    }
    let ours = trim_answer(text, &template, budget);
    let expected = expect["text"].as_str().map(|text| render_text(text, &template));
    let after = expected.as_deref().map(|text| estimate_text(text).get());
    if expect["rendered_tokens_after"] != json!(after) {
        return Judgment::of(expect["rendered_tokens_after"].to_string(), json!(after).to_string());
    }
    if json!(reference_pass::trim(text, &input["template"], budget.get())) != expect["text"] {
        return Judgment::of("what the reference's rules give", "another text");
    }
    let is_equal = ours.as_ref().map(|ours| ours.text.as_str()) == expected.as_deref();
    let check = match &ours {
        Some(ours) => is_well_trimmed(ours, text, before, budget),
        // It says nothing, or what the reference keeps of it does, or that is over the budget once it is neutralized.
        None => expect["text"].as_str().is_some_and(|kept| {
            let neutral = structured_render(&StructuredSummary::of_raw_text(kept, &template), &template);
            !is_substantive(text) || !is_substantive(kept) || estimate_text(&neutral) > budget
        }),
    };
    if ours.is_none() {
        // A shell is no summary, even where nothing is to be trimmed.
        return equal_or(is_equal, "the trimmed text", EXACT_TRIM, true, check);
    }
    if before <= budget {
        // Nothing is to be trimmed, but a text of several lines is not one bullet as it stands.
        let class = if read_summary(text).is_some() { SECTIONS_KEPT } else { NOTHING_FORGED };
        return equal_or(is_equal, "the text", class, text.contains(['\n', '\r', '{']), check);
    }
    equal_or(is_equal, "the trimmed text", EXACT_TRIM, true, check)
}

/// An answer trimmed as a pass does it.
fn trim_answer(text: &str, template: &SummaryTemplate, budget: TokenCount) -> Option<TrimmedSummary> {
    let read = read_summary(text).filter(|summary| !summary.is_empty() && summary.fits(template));
    if read.is_none() && !is_substantive(text) {
        return None;
    }
    let summary = read.unwrap_or_else(|| StructuredSummary::of_raw_text(text, template));
    trim_summary_to_budget(&summary, template, budget)
}

/// Within the budget, at least nine tenths of it used if anything was left out at up to twice and a half the budget,
/// marked, and of the answer's own words.
fn is_well_trimmed(trimmed: &TrimmedSummary, answer: &str, before: TokenCount, budget: TokenCount) -> bool {
    let used = estimate_text(&trimmed.text);
    let is_marked = trimmed.left_out == 0 || trimmed.text.contains(TRIMMED_MARK);
    let is_near = before.get().saturating_mul(2) <= budget.get().saturating_mul(5);
    let read = read_summary(answer).unwrap_or_default();
    // Where a section goes with its heading, nothing smaller may be left to fill its place.
    let sections = SummarySection::ALL.iter().filter(|&&section| !read.items(section).is_empty()).count();
    let headings = trimmed.text.lines().filter(|line| heading_of_line(line).is_some()).count();
    let uses_the_budget =
        trimmed.left_out == 0 || !is_near || headings < sections || used.get() * 10 >= budget.get() * 9;
    let sources: Vec<&str> = SummarySection::ALL
        .iter()
        .flat_map(|&section| read.items(section))
        .map(|item| item.as_str())
        .chain([answer])
        .collect();
    let mut items = trimmed.text.lines().filter_map(item_of_line);
    let is_said = items.all(|item| {
        let first = item.split_whitespace().next().unwrap_or_default().trim_start_matches('\\');
        sources.iter().any(|source| source.contains(first))
    });
    used <= budget && is_marked && uses_the_budget && is_said && is_substantive(&trimmed.text)
}
