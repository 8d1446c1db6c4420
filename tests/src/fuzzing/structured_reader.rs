//! The tolerant reader of structured summaries, and what becomes of its result.

use epitome_loop::TokenCount;
use epitome_loopruntime::parse_summary;
use epitome_summarizers::structured::{
    MAX_SECTION_ITEMS, StructuredSummary, SummarySection, SummaryTemplate, estimate_text, is_substantive,
    read_summary, render, trim_summary_to_budget, trim_text_to_budget,
};

/// Of any text, an entry for each bullet at most is read; rendered and read again it has as many entries in each
/// section; trimmed it is within the budget and says something; mapped to five sections it is strict XML. The same holds
/// for the text taken as one entry.
pub fn structured_reader(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let template = SummaryTemplate::default_template();
    if let Some(summary) = read_summary(&text) {
        for section in SummarySection::ALL {
            assert!(summary.items(section).len() <= MAX_SECTION_ITEMS, "a section takes more than it may");
        }
        hold(&summary, &template);
    }
    hold(&StructuredSummary::of_raw_text(&*text, &template), &template);
    let whole = estimate_text(&text);
    let half = TokenCount(whole.get().div_ceil(2));
    if let Some(trimmed) = trim_text_to_budget(&text, half) {
        assert!(estimate_text(&trimmed) <= half && is_substantive(&trimmed), "a text is not trimmed");
    }
}

fn hold(summary: &StructuredSummary, template: &SummaryTemplate) {
    let rendered = render(summary, template);
    let again = read_summary(&rendered);
    for section in SummarySection::ALL {
        let written = summary.items(section).iter().filter(|item| !item.trim().is_empty()).count();
        let found = again.as_ref().map_or(0, |again| again.items(section).len());
        assert_eq!(found, written, "an entry was forged or lost");
    }
    let whole = estimate_text(&rendered);
    for budget in [whole.get(), whole.get() / 2, whole.get() / 7].map(TokenCount) {
        if let Some(trimmed) = trim_summary_to_budget(summary, template, budget) {
            assert!(estimate_text(&trimmed.text) <= budget, "a trimmed summary is over its budget");
        }
    }
    let xml = summary.to_xml(&[], None).xml;
    assert!(parse_summary(xml.as_bytes()).is_ok(), "five sections are no strict XML");
}
