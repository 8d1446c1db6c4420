//! A small workspace that is tidy, and one change for each way to make it untidy.

use super::*;

use std::fs;
use std::process::Command;

const COMPACTION: &str = r#"
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wire => "wire",
            Self::XmlRoot => "xml_root",
        }
    }
"#;

const MANIFEST: &str =
    "rust-version = \"1.95\"\n[workspace.dependencies]\nbytes = \"1\"\n# Why.\nserde = \"1\"\n[x]\ny = 1\n";

/// Files of a tidy workspace.
fn tidy_workspace() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let git = Command::new("git").current_dir(root).args(["init", "--quiet"]).status().unwrap();
    assert!(git.success());
    for (path, text) in [
        ("Cargo.toml", MANIFEST),
        ("crates/loop/Cargo.toml", "[dependencies]\nbytes.workspace = true\n"),
        ("tests/Cargo.toml", "[dependencies]\nserde = { workspace = true, features = [] }\n"),
        (
            "README.md",
            "Needs Rust 1.95.\n\n<!-- example: crates/loop/examples/one.rs -->\n```rust\nfn main() {}\n```\n",
        ),
        ("docs/ARCHITECTURE.md", "`crates/loop/` holds the words.\n"),
        ("crates/loop/src/compaction.rs", COMPACTION),
        ("crates/loop/examples/one.rs", "fn main() {}\n"),
        ("tests/corpus/summary/accepted/small.xml", "<x/>"),
        ("tests/corpus/summary/xml_root/other.xml", "<x/>"),
        ("fuzz/Cargo.toml", "[[bin]]\nname = \"x\"\npath = \"fuzz_targets/x.rs\"\n"),
        ("fuzz/fuzz_targets/x.rs", "fn main() {}\n"),
        ("fuzz/corpus/x/seed", "x"),
    ] {
        write(root, path, text);
    }
    dir
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn this_workspace_is_tidy() {
    assert_eq!(findings(&workspace::root()).unwrap(), Vec::<String>::new());
}

#[test]
fn a_tidy_workspace_has_no_findings() {
    assert_eq!(findings(tidy_workspace().path()).unwrap(), Vec::<String>::new());
}

#[test]
fn every_kind_of_untidiness_is_one_finding() {
    let long = "//\n".repeat(MOST_LINES + 1);
    for (path, text, finding) in [
        ("docs/ARCHITECTURE.md", "nothing", "docs/ARCHITECTURE.md does not name crates/loop"),
        (
            "docs/ARCHITECTURE.md",
            "crates/loop and crates/gone.",
            "docs/ARCHITECTURE.md names crates/gone, which is not there",
        ),
        ("README.md", "Rust 1.80.0", "README.md says Rust 1.80.0, Cargo.toml says 1.95"),
        ("README.md", "needs a compiler", "README.md does not say `Rust 1.95`"),
        (
            "crates/loop/src/compaction.rs",
            "Self::XmlRoot => \"xml_root\",\nSelf::XmlNew => \"xml_new\",",
            "tests/corpus/summary/xml_new holds no input",
        ),
        (
            "crates/loop/examples/one.rs",
            "fn main() { let changed = 1; }",
            "README.md: the example differs from crates/loop/examples/one.rs",
        ),
        ("docs/page.md", "<!-- example: gone.rs -->\n```rust\n```", "docs/page.md: gone.rs is not there"),
        ("docs/page.md", concat!("see /wor", "k/x"), concat!("docs/page.md:1 holds `/wor", "k/`")),
        ("benches/x.rs", concat!("\n// FIX", "ME"), concat!("benches/x.rs:2 holds `FIX", "ME`")),
        ("crates/loop/src/long.rs", &long, "crates/loop/src/long.rs has 601 lines, more than 600"),
        ("crates/loop/Cargo.toml", "bytes = \"1\"", "Cargo.toml names bytes, which no package uses"),
        (
            "fuzz/Cargo.toml",
            "[[bin]]\nname = \"x\"\npath = \"fuzz_targets/x.rs\"\n[[bin]]\nname = \"x\"\npath = \"fuzz_targets/y.rs\"",
            "fuzz/Cargo.toml names fuzz/fuzz_targets/y.rs, which is not there",
        ),
        (
            "fuzz/Cargo.toml",
            "[[bin]]\nname = \"x\"\npath = \"fuzz_targets/x.rs\"\n[[bin]]\nname = \"y\"\npath = \"fuzz_targets/x.rs\"",
            "fuzz/corpus/y holds no seed",
        ),
        ("fuzz/fuzz_targets/z.rs", "", "fuzz/Cargo.toml names no target for fuzz/fuzz_targets/z.rs"),
        ("fuzz/corpus/z/seed", "", "fuzz/Cargo.toml names no target for fuzz/corpus/z"),
        ("fuzz/corpus/x/large", &"x".repeat(300_000), "fuzz/corpus holds 300001 bytes, more than 300000"),
    ] {
        let dir = tidy_workspace();
        write(dir.path(), path, text);
        assert_eq!(findings(dir.path()).unwrap(), vec![finding.to_owned()], "{path}");
    }
}

#[test]
fn a_mark_inside_a_longer_word_is_none() {
    let dir = tidy_workspace();
    write(dir.path(), "benches/x.rs", concat!("// the escape \\uXX", "XX"));
    assert_eq!(findings(dir.path()).unwrap(), Vec::<String>::new());
}

#[test]
fn a_missing_page_and_an_empty_corpus_are_findings() {
    let dir = tidy_workspace();
    fs::remove_file(dir.path().join("docs/ARCHITECTURE.md")).unwrap();
    fs::remove_file(dir.path().join("tests/corpus/summary/accepted/small.xml")).unwrap();
    assert_eq!(
        findings(dir.path()).unwrap(),
        ["docs/ARCHITECTURE.md is missing", "tests/corpus/summary/accepted holds no input"]
    );
}
