//! The embedded summarizer.

use epitome_loop::{Section, SummarizerError, SummaryDraft, SummaryRequest, TokenCount};
use epitome_loopruntime::parse_summary;
use epitome_summarizers::Extractive;

use super::script::request;
use crate::{SecondVerdict, second_judge};

/// Of any request, written as a script, a summary is within its budget and valid, and the same every time; or
/// the budget is refused as too small, with one that would do.
pub fn extractive(bytes: &[u8]) {
    let request = request(bytes);
    match Extractive::new().summarize_now(&request) {
        Ok(draft) => {
            hold_draft(&request, &draft);
            let again = Extractive::new().summarize_now(&request);
            assert!(again.is_ok_and(|again| again == draft), "the same request gives another summary");
        }
        Err(SummarizerError::BudgetTooSmall { needed_bytes, needed_tokens }) => {
            let is_too_small = request.max_bytes.is_some_and(|bytes| bytes < needed_bytes)
                || request.max_tokens < needed_tokens;
            assert!(is_too_small, "a budget is refused that is not too small");
            let larger = SummaryRequest {
                max_bytes: request.max_bytes.map(|bytes| bytes.max(needed_bytes)),
                max_tokens: request.max_tokens.max(needed_tokens),
                ..request
            };
            match Extractive::new().summarize_now(&larger) {
                Ok(draft) => hold_draft(&larger, &draft),
                Err(error) => panic!("with what was asked for: {error}"),
            }
        }
        Err(error) => panic!("{error}"),
    }
}

fn hold_draft(request: &SummaryRequest, draft: &SummaryDraft) {
    let xml = draft.sections.render().xml;
    assert_eq!(xml.len(), draft.sections.rendered_len(), "the length is not the rendered one");
    let over = request.max_bytes.is_some_and(|most| xml.len() > most);
    assert!(!over, "{} bytes of {:?}", xml.len(), request.max_bytes);
    let tokens: TokenCount = request.estimator.estimate(&xml);
    assert!(tokens <= request.max_tokens, "{tokens:?} of {:?}", request.max_tokens);
    for section in [Section::Goal, Section::State] {
        let says = draft.sections.items(section).iter().any(|item| !item.trim().is_empty());
        assert!(says, "{} is blank", section.as_str());
    }
    match parse_summary(xml.as_bytes()) {
        Ok(summary) => assert_eq!(summary.raw(), &xml),
        Err(error) => panic!("the strict parser refuses it: {error}"),
    }
    assert!(
        matches!(second_judge(xml.as_bytes()), SecondVerdict::Accepted(_)),
        "the second judge refuses it"
    );
}
