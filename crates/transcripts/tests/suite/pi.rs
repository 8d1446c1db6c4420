//! What pi would send next, and what pi would read from a compacted session.

use std::fmt::Write as _;

use epitome_loop::{Block, Message};
use epitome_transcripts::{Format, Note, ReadOptions, Replacement, Session, read, write};

const LINEAR: &str = "{\"type\":\"session\",\"id\":\"s\",\"cwd\":\"/\"}\n";
const TREE: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/\"}\n";

fn parse(source: &str) -> Session {
    read(source.as_bytes(), &ReadOptions::default(), &mut |_| {}).unwrap()
}

fn texts(session: &Session) -> Vec<&str> {
    session.messages().iter().map(text_of).collect()
}

fn text_of(message: &Message) -> &str {
    match &**message.blocks() {
        [Block::Text { text }, ..] => text,
        _ => "",
    }
}

fn user(text: &str) -> String {
    format!("{{\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n")
}

fn node(id: &str, parent: Option<&str>, text: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
    format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
    )
}

#[test]
fn the_newest_compaction_counts_and_older_ones_render_to_nothing() {
    let mut source = LINEAR.to_owned() + &user("one") + &user("two");
    source += "{\"type\":\"compaction\",\"summary\":\"first\",\"firstKeptEntryIndex\":2}\n";
    source += &user("three");
    source += "{\"type\":\"compaction\",\"summary\":\"second\",\"firstKeptEntryIndex\":2}\n";
    source += &user("four");
    let session = parse(&source);
    assert_eq!(texts(&session), ["second", "two", "three", "four"]);
    assert_eq!(session.derived_prefix(), 1);
    assert!(session.lacks_system_and_tools());
}

#[test]
fn a_session_tells_where_and_when_it_was() {
    let session = parse(
        "{\"type\":\"session\",\"id\":\"s\",\"cwd\":\"/srv\",\"timestamp\":\"t0\"}\n{\"type\":\"message\",\"timestamp\":\"t1\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n{\"type\":\"label\"}\n",
    );
    assert_eq!(session.cwd().map(|cwd| cwd.as_str()), Some("/srv"));
    assert_eq!(session.last_timestamp().map(|time| time.as_str()), Some("t1"));
    assert_eq!(session.context_window(), None);
    let session = parse(LINEAR);
    assert_eq!(session.last_timestamp(), None);
}

#[test]
fn a_compaction_may_keep_nothing() {
    for kept in [
        "\"firstKeptEntryIndex\":3",
        "\"firstKeptEntryIndex\":99",
        "\"firstKeptEntryId\":\"gone\"",
        "\"x\":0",
    ] {
        let record = format!("{{\"type\":\"compaction\",\"summary\":\"s\",{kept}}}\n");
        let session = parse(&(LINEAR.to_owned() + &user("one") + &user("two") + &record + &user("three")));
        assert_eq!(texts(&session), ["s", "three"], "{kept}");
    }
}

#[test]
fn only_the_way_to_the_newest_record_is_sent() {
    let source = TREE.to_owned()
        + &node("a", None, "a")
        + &node("b", Some("a"), "b")
        + &node("c", Some("a"), "c")
        + &node("d", Some("c"), "d");
    let session = parse(&source);
    assert_eq!(texts(&session), ["a", "c", "d"]);
    assert!(session.notes().contains(&Note::OtherBranches { count: 1 }));
}

#[test]
fn parents_in_a_circle_end() {
    let source = TREE.to_owned() + &node("a", Some("b"), "a") + &node("b", Some("a"), "b");
    assert_eq!(texts(&parse(&source)), ["a", "b"]);
    let own = TREE.to_owned() + &node("a", Some("a"), "a");
    assert_eq!(texts(&parse(&own)), ["a"]);
}

#[test]
fn a_damaged_parent_does_not_cut_the_way() {
    let torn = node("b", Some("a"), "b").replace("\"message\":{", "\"message\":");
    let source = TREE.to_owned() + &node("a", None, "a") + &torn + &node("c", Some("b"), "c");
    assert_eq!(texts(&parse(&source)), ["a", "c"]);
    let gone = TREE.to_owned() + &node("a", None, "a") + &node("c", Some("b"), "c");
    assert_eq!(texts(&parse(&gone)), ["c"], "without damage the parent is simply not there");
}

#[test]
fn a_kept_part_with_holes_stays_one_way() {
    let mut source = TREE.to_owned();
    for at in 0..6 {
        let parent = (at > 0).then(|| format!("n{}", at - 1));
        source += &node(&format!("n{at}"), parent.as_deref(), &format!("text {at}"));
    }
    let session = parse(&source);
    let kept = Replacement { summary: Some("what was before"), kept: &[0, 2, 3, 5] };
    let (written, report) = write(&session, &kept, Format::PiSession).unwrap();
    assert_eq!((report.verbatim, report.encoded), (4, 1));
    let written = String::from_utf8(written).unwrap();
    assert_eq!(texts(&parse(&written)), ["what was before", "text 0", "text 2", "text 3", "text 5"]);
    // Only what names a record that is gone differs from the source.
    let same = written.lines().filter(|line| source.lines().any(|old| old == *line)).count();
    assert_eq!(same, 3, "{written}");
    assert!(written.contains("\"id\":\"n2\",\"parentId\":\"n0\""));
}

#[test]
fn compacting_again_and_again_stays_readable() {
    let mut source = LINEAR.to_owned();
    for at in 0..4 {
        source += &user(&format!("text {at}"));
    }
    for round in 0..5 {
        let session = parse(&source);
        let newest = session.messages().len() - 1;
        let summary = format!("summary {round}");
        let kept = Replacement { summary: Some(&summary), kept: &[newest] };
        let (written, _) = write(&session, &kept, Format::PiSession).unwrap();
        source = String::from_utf8(written).unwrap();
        assert_eq!(texts(&parse(&source)), [summary.as_str(), "text 3"]);
        assert_eq!(source.lines().count(), 3);
    }
}

#[test]
fn what_is_not_for_the_model_is_left_out() {
    let mut source = LINEAR.to_owned() + &user("one");
    for exclude in [true, false] {
        writeln!(
            source,
            "{{\"type\":\"message\",\"message\":{{\"role\":\"bashExecution\",\"command\":\"id\",\"output\":\"ada\",\"exitCode\":0,\"excludeFromContext\":{exclude}}}}}"
        )
        .unwrap();
    }
    source += "{\"type\":\"label\",\"label\":\"x\"}\n{\"type\":\"message\",\"message\":null}\n17\n";
    let session = parse(&source);
    assert_eq!(texts(&session), ["one", "$ id\nada"]);
    assert_eq!(session.notes(), [Note::StrayValues { count: 1 }, Note::SideRecords { count: 3 }]);
}
