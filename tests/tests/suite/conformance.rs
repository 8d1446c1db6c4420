//! Our functions against the committed vectors of the reference: one test a file.

use std::collections::BTreeSet;
use std::path::Path;

use epitome_tests::conformance::{self, BETTER_CLASSES, FileReport, STRICTER_WIRE, print_reports};
use epitome_tests::with_deep_stack;

fn compare(name: &str) -> FileReport {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("vectors/reference/{name}.jsonl"));
    let suite = conformance::suite(name).unwrap();
    let report = with_deep_stack(|| conformance::run(suite, &file)).unwrap().unwrap();
    let mut shown = Vec::new();
    print_reports(&mut shown, std::slice::from_ref(&report)).unwrap();
    assert!(report.different.is_empty(), "{}", String::from_utf8_lossy(&shown));
    assert!(report.equal > report.cases / 2, "{}", String::from_utf8_lossy(&shown));
    report
}

#[test]
fn candidate() {
    compare("candidate");
}

#[test]
fn capability() {
    assert!(compare("capability").stricter.is_empty());
}

#[test]
fn fingerprint() {
    assert!(compare("fingerprint").stricter.is_empty());
}

#[test]
fn fit() {
    compare("fit");
}

#[test]
fn hustle_descriptor() {
    let report = compare("hustle_descriptor");
    assert!(report.looser.keys().all(|class| *class == "retry-for-any-hustle"), "{:?}", report.looser);
}

#[test]
fn hustle_limits() {
    compare("hustle_limits");
}

#[test]
fn hustle_name() {
    compare("hustle_name");
}

#[test]
fn input_decode() {
    let report = compare("input_decode");
    assert!(STRICTER_WIRE.iter().all(|class| report.stricter.contains_key(class.name)), "{report:?}");
}

#[test]
fn input_wire() {
    compare("input_wire");
}

#[test]
fn limits() {
    compare("limits");
}

#[test]
fn loop_define() {
    compare("loop_define");
}

#[test]
fn message_json() {
    compare("message_json");
}

#[test]
fn output_struct() {
    compare("output_struct");
}

#[test]
fn output_validate() {
    compare("output_validate");
}

#[test]
fn policy() {
    compare("policy");
}

#[test]
fn projection() {
    compare("projection");
}

#[test]
fn reason_allowed() {
    compare("reason_allowed");
}

#[test]
fn reject_reason() {
    compare("reject_reason");
}

#[test]
fn retained_history() {
    compare("retained_history");
}

#[test]
fn retained_tail_fits() {
    compare("retained_tail_fits");
}

#[test]
fn retry() {
    compare("retry");
}

#[test]
fn rig_hustles() {
    let report = compare("rig_hustles");
    assert!(report.stricter.keys().all(|class| *class == "no-loop"), "{:?}", report.stricter);
    assert!(report.looser.keys().all(|class| *class == "named-model-for-compaction"), "{:?}", report.looser);
}

#[test]
fn tail() {
    compare("tail");
}

#[test]
fn translate_error() {
    compare("translate_error");
}

#[test]
fn summary_xml() {
    let report = compare("summary_xml");
    assert!(report.stricter.keys().all(|class| *class == "xml-1.0-forbids"), "{:?}", report.stricter);
}

#[test]
fn waiter_reply_id() {
    assert!(compare("waiter_reply_id").stricter.is_empty());
}

#[test]
fn every_suite_has_its_vectors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/reference");
    let files = conformance::files_of(&folder).unwrap();
    let files: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    let suites: Vec<_> = conformance::SUITES.iter().map(|suite| suite.name).collect();
    assert_eq!(suites, files);
}

/// A file of structured summaries, by the operations that its cases name.
fn compare_structured(name: &str) -> FileReport {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("vectors/structured/{name}.jsonl"));
    assert!(conformance::is_structured(&file).unwrap());
    let report = with_deep_stack(|| conformance::run_structured(name, &file)).unwrap().unwrap();
    let mut shown = Vec::new();
    print_reports(&mut shown, std::slice::from_ref(&report)).unwrap();
    assert!(report.cases > 0 && report.different.is_empty(), "{}", String::from_utf8_lossy(&shown));
    report
}

#[test]
fn every_structured_vector_is_equal_or_in_a_named_class() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/structured");
    let files = conformance::files_of(&folder).unwrap();
    let reports: Vec<_> = files.iter().map(|(name, _)| compare_structured(name)).collect();
    assert_eq!(reports.iter().map(|report| report.cases).sum::<usize>(), 1863);
    assert!(reports.iter().map(|report| report.equal).sum::<usize>() > 1200);
    // Each class has its cases, and no other class has any.
    let used: BTreeSet<_> = reports.iter().flat_map(|report| report.better.keys().copied()).collect();
    assert_eq!(used, BETTER_CLASSES.iter().map(|class| class.name).collect());
}

#[test]
fn the_page_explains_every_class() {
    let page = include_str!("../../../docs/structured-summary.md");
    for class in BETTER_CLASSES {
        assert!(page.contains(&format!("`{}`", class.name)), "{}", class.name);
    }
}

#[test]
fn sizes_splits_and_texts_are_the_references() {
    for name in ["tokens", "render", "transcript"] {
        let report = compare_structured(name);
        assert_eq!(report.equal, report.cases, "{name}");
    }
}
