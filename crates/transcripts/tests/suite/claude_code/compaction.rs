//! Where compactions cut, and what they kept.

use epitome_transcripts::{Format, Note, Replacement, write};
use serde_json::json;

use super::log::{Log, has, outline, parse};

#[test]
fn a_compaction_cuts_and_its_figures_from_before_are_void() {
    let mut log = Log::default();
    log.user("u", None, "go").model("a", "u", "one").boundary(
        "B",
        "a",
        json!({"trigger": "auto", "preTokens": 9}),
    );
    // Nothing stands behind it yet: another program is just writing it.
    assert_eq!(outline(&log.session()), ["go", "one"]);
    assert!(log.session().reported_usage().is_some());
    log.summary("S", "B", "so far");
    let session = log.session();
    assert_eq!((outline(&session), session.derived_prefix()), (vec!["so far".to_owned()], 1));
    assert_eq!(session.reported_usage(), None);
    assert!(has(&session, Note::BeforeCompaction { count: 2 }));
    log.model("b", "S", "two");
    let usage = log.session().reported_usage().unwrap();
    assert_eq!((usage.message, usage.context_tokens.get()), (1, 101));
}

#[test]
fn a_lost_summary_is_told() {
    let mut log = Log::default();
    log.user("u", None, "go").boundary("B", "u", json!({})).user("v", Some("B"), "on");
    let session = log.session();
    assert_eq!((outline(&session), session.derived_prefix()), (vec!["on".to_owned()], 0));
    assert!(has(&session, Note::SummaryNotInFile));
}

#[test]
fn older_versions_wrote_a_summary_without_a_boundary() {
    let mut log = Log::default();
    log.user("u", None, "go").model("a", "u", "one").summary("S", "a", "so far").user("v", Some("S"), "on");
    let session = log.session();
    assert_eq!(
        (outline(&session), session.derived_prefix()),
        (vec!["so far".to_owned(), "on".to_owned()], 1)
    );
}

#[test]
fn kept_messages_stand_where_the_compaction_says() {
    let keep = |anchor: &str| {
        let segment = json!({"headUuid": "v", "anchorUuid": anchor, "tailUuid": "b"});
        let mut log = Log::default();
        log.user("u", None, "go").model("a", "u", "one").user("v", Some("a"), "on").model("b", "v", "two");
        log.boundary("B", "b", json!({"preservedSegment": segment})).summary("S", "B", "so far");
        log.user("w", Some("S"), "next");
        log
    };
    let session = keep("S").session();
    assert_eq!(outline(&session), ["so far", "on", "two", "next"]);
    assert_eq!((session.derived_prefix(), session.reported_usage()), (1, None));
    // The newest part was summarized and what came before it was kept.
    let session = keep("B").session();
    assert_eq!(
        (outline(&session), session.derived_prefix()),
        (["on", "two", "so far", "next"].map(str::to_owned).to_vec(), 0)
    );
    let kept = Replacement { summary: Some("new"), kept: &[0, 1, 2, 3] };
    let (written, _) = write(&session, &kept, Format::ClaudeCode).unwrap();
    assert_eq!(outline(&parse(&written)), ["new", "on", "two", "so far", "next"]);
}

#[test]
fn a_compaction_that_cannot_be_followed_keeps_everything() {
    let mut log = Log::default();
    log.user("u", None, "go").model("a", "u", "one");
    log.boundary(
        "B",
        "a",
        json!({"preservedSegment": {"headUuid": "a", "anchorUuid": "S", "tailUuid": "u"}}),
    );
    assert_eq!(outline(&log.session()), ["go", "one"]);
}

#[test]
fn compactions_follow_each_other() {
    let mut log = Log::default();
    log.user("u", None, "go").model("a", "u", "one");
    log.boundary(
        "B",
        "a",
        json!({"preservedSegment": {"headUuid": "a", "anchorUuid": "S", "tailUuid": "a"}}),
    );
    log.summary("S", "B", "first").user("v", Some("S"), "on").model("b", "v", "two");
    // What the second keeps reaches back behind the first.
    log.boundary(
        "C",
        "b",
        json!({"preservedSegment": {"headUuid": "a", "anchorUuid": "T", "tailUuid": "b"}}),
    );
    log.summary("T", "C", "second");
    assert_eq!(outline(&log.session()), ["second", "one", "on", "two"]);
}
