//! The page about `epitome session` shows what the command says.

use std::fs;
use std::path::Path;

use crate::journal_folder::Folder;
use crate::terminal::{code, command, stderr, stdout};

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/session-command.md")).unwrap()
}

/// A text without what is another one each time: ids become `ID`, times `TIME`.
fn lasting(text: &str) -> String {
    let is_id = |word: &str| {
        word.len() == 36
            && word.bytes().filter(|byte| *byte == b'-').count() == 4
            && word.starts_with(|at: char| at.is_ascii_hexdigit())
    };
    let is_time = |word: &str| word.len() == 20 && word.ends_with('Z') && word.contains('T');
    let word = |word: &str| {
        let bare = word.trim_end_matches([':', ';']);
        match () {
            () if is_id(bare) => word.replace(bare, "ID"),
            () if is_time(bare) => word.replace(bare, "TIME"),
            () => word.to_owned(),
        }
    };
    text.lines()
        .map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn what_is_shown_is_what_is_said() {
    let folder = Folder::with_chat(0);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/queue-port.json");
    fs::copy(example, folder.path("queue-port.json")).unwrap();
    let page = page();
    let turn = page.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    fs::write(folder.path("turn.json"), turn).unwrap();
    let blocks = page.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("console\n"));
    let mut checked = 0;
    for block in blocks {
        for step in block.split("$ ").skip(1) {
            let (line, expected) = step.split_once('\n').unwrap();
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                // It holds for the whole page.
                ["export", "EPITOME_JOURNAL=sessions.db"] => {}
                ["cmp", one, other] => assert!(folder.read(one) == folder.read(other), "{line}"),
                ["epitome", args @ ..] => {
                    let output = command(folder.root())
                        .env("EPITOME_JOURNAL", "sessions.db")
                        .args(args)
                        .output()
                        .unwrap();
                    assert_eq!(code(&output), 0, "{line}: {}", stderr(&output));
                    let said = [stdout(&output), stderr(&output)].concat();
                    assert_eq!(lasting(&said), lasting(expected), "{line}");
                    checked += 1;
                }
                _ => panic!("{line}"),
            }
        }
    }
    assert!(checked >= 15, "{checked}");
}

#[test]
fn every_command_and_option_stands_on_the_page() {
    let page = page();
    let help = |args: &[&str]| {
        let folder = Folder::with_chat(0);
        let output = folder.run(&[&["session"], args, &["--help"]].concat());
        stdout(&output).to_owned()
    };
    for name in [
        "list", "import", "append", "admit", "compact", "undo", "redo", "log", "show", "export", "verify",
        "purge",
    ] {
        assert!(help(&[]).contains(&format!("  {name} ")), "{name}");
        assert!(page.contains(&format!("`{name}`")) || page.contains(&format!("session {name}")), "{name}");
        assert!(help(&[name]).contains("--journal <FILE>") && help(&[name]).contains("Exit codes"), "{name}");
        assert!(name == "list" || help(&[name]).contains("Examples:"), "{name}");
    }
    let completions = Folder::with_chat(0).run(&["completions", "bash"]);
    assert!(stdout(&completions).contains("epitome__subcmd__session__subcmd__export"));
}
