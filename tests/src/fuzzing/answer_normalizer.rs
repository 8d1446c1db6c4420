//! The tolerant reader of a model's answer in five sections.

use std::collections::BTreeSet;

use epitome_loop::Section;
use epitome_loopruntime::parse_summary;
use epitome_summarizers::{NormalizedAnswer, normalize_answer};

/// Of any text: what is read is accepted by the strict parser once it is rendered, says what was read, and is read again
/// without a repair; each repair is named once. What the strict parser accepts is never refused.
pub fn answer_normalizer(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match normalize_answer(&text) {
        Ok(NormalizedAnswer { sections, repairs }) => {
            let names: BTreeSet<&str> = repairs.iter().map(|repair| repair.as_str()).collect();
            assert_eq!(names.len(), repairs.len(), "a repair is named twice");
            let rendered = sections.render();
            assert_eq!(rendered.dropped_characters, 0, "a character is dropped without a name for it");
            let summary = parse_summary(rendered.xml.as_bytes());
            let summary = summary.unwrap_or_else(|_| panic!("what was read is no summary"));
            let again = normalize_answer(&rendered.xml);
            let again = again.unwrap_or_else(|reason| panic!("its own form is refused: {}", reason.as_str()));
            assert_eq!(again.repairs, [], "its own form is repaired");
            for section in Section::ALL {
                let read = summary.sections();
                assert_eq!(again.sections.items(section), read.items(section), "the two readers differ");
            }
        }
        Err(_) => {
            let strict = parse_summary(bytes);
            let says_something = strict.is_ok_and(|summary| {
                let sections = summary.sections();
                !sections.goal.is_empty() && !sections.state.is_empty()
            });
            assert!(!says_something, "a strict summary is refused");
        }
    }
}
