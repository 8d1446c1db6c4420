//! Definitions read from files: policies and rigs.

use epitome_loop::{ContextLimits, CountQuality, SharedText, TokenCount};
use epitome_rig::{
    FileError, FileFormat, PolicyFile, Rig, read_policy_file, read_rig_file, read_rig_file_with,
};

/// Windows of models, none among them.
const WINDOWS: [u64; 5] = [0, 1, 8_192, 1_000_000, u64::MAX];

const QUALITIES: [CountQuality; 2] = [CountQuality::ExactLocal, CountQuality::HeuristicEstimate];

/// Any bytes are a policy file or a fault with its place. A policy is written as JSON that reads back to it, and is
/// worked out for any model whose window is known.
pub fn policy_file(bytes: &[u8]) {
    for format in [FileFormat::Toml, FileFormat::Json] {
        hold_policy(bytes, PolicyFile::read(bytes, format));
    }
    assert_eq!(
        read_policy_file(bytes),
        PolicyFile::read(bytes, FileFormat::detect(bytes)),
        "it is read otherwise than in the format that was found out"
    );
}

fn hold_policy(bytes: &[u8], read: Result<PolicyFile, FileError>) {
    let policy = match read {
        Ok(policy) => policy,
        Err(error) => return hold_place(bytes, &error),
    };
    let json = policy.to_json();
    match PolicyFile::read(json.as_bytes(), FileFormat::Json) {
        Ok(again) => assert_eq!(again, policy, "written as JSON it is another policy"),
        Err(error) => panic!("written as JSON it is refused: {error}"),
    }
    for window in WINDOWS.map(TokenCount) {
        let limits = ContextLimits { window, ..ContextLimits::default() };
        for quality in QUALITIES {
            match policy.resolve(&limits, quality) {
                // Whether it fits this counter is its own question; that it can be asked is enough.
                Ok(resolved) => drop(resolved.validate(Some(quality))),
                Err(_) => assert!(window == TokenCount::ZERO, "a known window is said to be unknown"),
            }
        }
    }
}

/// Any bytes are a rig or a fault with its place. In a rig everything is found by its name, and what a loop
/// compacts with is registered.
pub fn rig_file(bytes: &[u8]) {
    let with_prompts = read_rig_file_with(bytes, |_| Some(SharedText::from("Summarize.")));
    match &with_prompts {
        Ok(rig) => hold_rig(rig),
        Err(error) => hold_place(bytes, error),
    }
    match read_rig_file(bytes) {
        Ok(_) => assert!(with_prompts.is_ok(), "a rig exists only without prompts in files"),
        Err(error) => hold_place(bytes, &error),
    }
}

fn hold_rig(rig: &Rig) {
    assert!(!rig.loops().is_empty(), "a rig without loops");
    for bound in rig.loops() {
        let found = rig.bound_loop(bound.name()).map(|found| found.name());
        assert_eq!(found, Some(bound.name()), "a loop is not found by its name");
        let Some(compaction) = bound.compaction() else { continue };
        let named = compaction.hustle.name();
        assert!(rig.hustle(named).is_some(), "a loop compacts with a hustle that is not registered");
        assert_eq!(rig.hustle_limits(), Some(compaction.limits), "a loop has lanes of its own");
    }
    assert_eq!(
        rig.hustles().is_empty(),
        rig.hustle_limits().is_none(),
        "lanes without hustles, or the reverse"
    );
}

/// A fault lies in the file, or right behind its end.
fn hold_place(bytes: &[u8], error: &FileError) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split('\n').count();
    let in_file = (1..=lines).contains(&error.line);
    assert!(in_file && error.column >= 1, "line {}, column {} of {lines} lines", error.line, error.column);
    let line = text.split('\n').nth(error.line - 1).unwrap_or_default();
    let columns = line.chars().count() + 1;
    assert!(error.column <= columns, "column {} of {columns} in line {}", error.column, error.line);
}
