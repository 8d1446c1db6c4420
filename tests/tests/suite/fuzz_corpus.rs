//! The committed fuzz corpora hold the laws, inputs that once broke one among them.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use epitome_tests::fuzzing::{LAWS, law};
use epitome_transcripts::Format;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus")
}

/// Holds every input of one target's corpus to its law.
fn replay(name: &str) {
    let law = law(name).unwrap_or_else(|| panic!("{name}: no such law"));
    let folder = corpora().join(name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    let broken: Vec<_> = paths
        .iter()
        .filter(|path| {
            let bytes = fs::read(path).unwrap();
            catch_unwind(|| (law.check)(&bytes)).is_err()
        })
        .collect();
    assert!(broken.is_empty(), "these break the law: {broken:?}");
}

macro_rules! replayed {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { replay(stringify!($name)); })*

        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
    };
}

replayed![
    answer_normalizer,
    extractive,
    policy_file,
    rig_file,
    structured_reader,
    summary_xml,
    transcript_anthropic,
    transcript_claude_code,
    transcript_claude_stream_json,
    transcript_codex,
    transcript_detect,
    transcript_epitome,
    transcript_gemini,
    transcript_openai_chat,
    transcript_openai_responses,
    transcript_pi,
    wire_input,
    wire_output,
];

#[test]
fn every_law_is_replayed_and_has_a_target() {
    let names: Vec<_> = LAWS.iter().map(|law| law.name).collect();
    assert_eq!(names, REPLAYED);
    for name in names {
        let target = corpora().join("../fuzz_targets").join(name).with_extension("rs");
        let source =
            fs::read_to_string(&target).unwrap_or_else(|error| panic!("{}: {error}", target.display()));
        assert!(source.contains(&format!("epitome_tests::fuzzing::{name}(bytes)")), "{}", target.display());
    }
}

#[test]
fn every_transcript_format_has_a_law() {
    for format in Format::ALL {
        let name = format!("transcript_{}", format.as_str().replace('-', "_"));
        assert!(law(&name).is_some(), "{format}: a law `{name}`, a fuzz target and a corpus are missing");
    }
}
