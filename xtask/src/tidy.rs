//! Holds documents, corpora and sources to each other: what can go stale is checked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::command::StepError;
use crate::workspace;

/// A file of a crate longer than this holds more than one thing.
const MOST_LINES: usize = 600;

/// What does not agree; nothing when all does.
pub(crate) fn findings(root: &Path) -> Result<Vec<String>, StepError> {
    let files = workspace::files(root)?;
    let mut findings = Vec::new();
    findings.extend(architecture(root, &files)?);
    findings.extend(minimum_rust(root, &files)?);
    findings.extend(summary_corpus(root, &files)?);
    findings.extend(examples(root, &files)?);
    findings.extend(contents(root, &files)?);
    findings.extend(fuzz_targets(root, &files)?);
    findings.extend(unused_dependencies(root, &files)?);
    Ok(findings)
}

/// Every folder in `crates/` is named in the architecture page, and the other way round.
fn architecture(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, StepError> {
    const PAGE: &str = "docs/ARCHITECTURE.md";
    let Some(page) = read_if_there(root, files, PAGE)? else { return Ok(vec![missing(PAGE)]) };
    let folders: BTreeSet<String> = files
        .iter()
        .filter_map(|path| path.strip_prefix("crates").ok()?.components().next())
        .map(|folder| folder.as_os_str().to_string_lossy().into_owned())
        .collect();
    let named: BTreeSet<String> = page
        .split("crates/")
        .skip(1)
        .map(|rest| {
            rest.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect()
        })
        .filter(|name: &String| !name.is_empty())
        .collect();
    let unnamed = folders.difference(&named).map(|folder| format!("{PAGE} does not name crates/{folder}"));
    let gone =
        named.difference(&folders).map(|folder| format!("{PAGE} names crates/{folder}, which is not there"));
    Ok(unnamed.chain(gone).collect())
}

/// The README says which Rust it takes, and says what Cargo.toml says.
fn minimum_rust(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, StepError> {
    let manifest = workspace::read(root, "Cargo.toml")?;
    let Some(version) = value_of(&manifest, "rust-version") else {
        return Ok(vec!["Cargo.toml names no rust-version".to_owned()]);
    };
    let Some(readme) = read_if_there(root, files, "README.md")? else {
        return Ok(vec![missing("README.md")]);
    };
    let named: Vec<String> = readme
        .split("Rust ")
        .skip(1)
        .map(|rest| rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect::<String>())
        .map(|found| found.trim_end_matches('.').to_owned())
        .filter(|found| !found.is_empty())
        .collect();
    if named.is_empty() {
        return Ok(vec![format!("README.md does not say `Rust {version}`")]);
    }
    let wrong = named.into_iter().filter(|found| *found != version);
    Ok(wrong.map(|found| format!("README.md says Rust {found}, Cargo.toml says {version}")).collect())
}

/// Every reason that a summary's text can be refused for has inputs that show it.
///
/// Only the `xml_` reasons: the others (wire, identity, shape, limits) are about what surrounds the text, which
/// a file with a summary cannot show; the vectors of `output_struct` hold them.
fn summary_corpus(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, StepError> {
    const SOURCE: &str = "crates/loop/src/compaction.rs";
    const CORPUS: &str = "tests/corpus/summary";
    let source = workspace::read(root, SOURCE)?;
    let reasons = xml_reasons(&source);
    if reasons.is_empty() {
        return Ok(vec![format!("{SOURCE}: no InvalidSummaryReason found")]);
    }
    let wanted = reasons.iter().map(String::as_str).chain(["accepted"]);
    let empty = wanted.filter(|reason| {
        let folder = Path::new(CORPUS).join(reason);
        !files.iter().any(|file| file.starts_with(&folder))
    });
    Ok(empty.map(|reason| format!("{CORPUS}/{reason} holds no input")).collect())
}

/// The names that `InvalidSummaryReason::as_str` gives to its `Xml` variants.
fn xml_reasons(source: &str) -> Vec<String> {
    source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Self::Xml")?.split_once("=> \""))
        .filter_map(|(_, name)| Some(name.split_once('"')?.0.to_owned()))
        .collect()
}

/// A code block under the line `<!-- example: PATH -->` equals the file at PATH.
fn examples(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, StepError> {
    const MARK: &str = "<!-- example: ";
    let mut findings = Vec::new();
    let pages = files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    for page in pages {
        let text = workspace::read(root, page)?;
        for after in text.split(MARK).skip(1) {
            let Some((path, rest)) = after.split_once(" -->") else { continue };
            let block = rest.split_once("```").and_then(|(_, block)| block.split_once('\n'));
            let shown = block.and_then(|(_, block)| Some(block.split_once("\n```")?.0));
            let Some(file) = read_if_there(root, files, path)? else {
                findings.push(format!("{}: {path} is not there", page.display()));
                continue;
            };
            if shown.map(str::trim_end) != Some(file.trim_end()) {
                findings.push(format!("{}: the example differs from {path}", page.display()));
            }
        }
    }
    Ok(findings)
}

/// No paths of one machine, no marks of unfinished work, no overlong source file.
fn contents(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, StepError> {
    // Split, so that this file does not hold them.
    const UNWANTED: [&str; 6] = [
        concat!("/wor", "k/"),
        concat!("/roo", "t/"),
        concat!("/tmp/", "wt"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("todo", "!("),
    ];
    let mut findings = Vec::new();
    for path in files.iter().filter(|path| !is_data(path)) {
        // Not text: nothing to read here.
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        for (at, line) in text.lines().enumerate() {
            for word in UNWANTED.iter().filter(|word| holds_word(line, word)) {
                findings.push(format!("{}:{} holds `{word}`", path.display(), at + 1));
            }
        }
        let lines = text.lines().count();
        if is_crate_source(path) && lines > MOST_LINES {
            findings.push(format!("{} has {lines} lines, more than {MOST_LINES}", path.display()));
        }
    }
    Ok(findings)
}

/// Whether a line holds a word that is not a part of a longer one.
fn holds_word(line: &str, word: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let goes_on = |inside: Option<char>, outside: Option<char>| is_letter(inside) && is_letter(outside);
    line.match_indices(word).any(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let after = rest.strip_prefix(word).unwrap_or_default();
        let begins_before = goes_on(word.chars().next(), before.chars().next_back());
        let ends_later = goes_on(word.chars().next_back(), after.chars().next());
        !begins_before && !ends_later
    })
}

/// Vectors, cases and corpora hold whatever the world holds; so does a lock file.
fn is_data(path: &Path) -> bool {
    const DATA: [&str; 6] =
        ["tests/vectors", "tests/cases", "tests/corpus", "fuzz/corpus", "fuzz/Cargo.lock", "Cargo.lock"];
    DATA.iter().any(|data| path.starts_with(data))
}

fn is_crate_source(path: &Path) -> bool {
    let mut parts = path.components().map(|part| part.as_os_str());
    parts.next().is_some_and(|first| first == "crates")
        && parts.nth(1).is_some_and(|folder| folder == "src")
        && path.extension().is_some_and(|ending| ending == "rs")
}

/// Every fuzz target that the manifest names exists and has seeds, every one that exists is named, and the
/// corpora stay small.
fn fuzz_targets(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, StepError> {
    const MANIFEST: &str = "fuzz/Cargo.toml";
    /// All corpora together; what runs find beyond that is not worth a clone's time.
    const MOST_BYTES: u64 = 300_000;
    let Some(manifest) = read_if_there(root, files, MANIFEST)? else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    let mut named = BTreeSet::new();
    for bin in manifest.split("[[bin]]").skip(1) {
        let (Some(name), Some(path)) = (value_of(bin, "name"), value_of(bin, "path")) else {
            findings.push(format!("{MANIFEST}: a target without name or path"));
            continue;
        };
        let path = Path::new("fuzz").join(path);
        if !files.contains(&path) {
            findings.push(format!("{MANIFEST} names {}, which is not there", path.display()));
        }
        let corpus = Path::new("fuzz/corpus").join(&name);
        if !files.iter().any(|file| file.starts_with(&corpus)) {
            findings.push(format!("{} holds no seed", corpus.display()));
        }
        named.insert(path);
        named.insert(corpus);
    }
    let sources = files.iter().filter(|file| file.starts_with("fuzz/fuzz_targets"));
    let corpora =
        files.iter().filter(|file| file.starts_with("fuzz/corpus")).filter_map(|file| file.parent());
    let there: BTreeSet<&Path> = sources.map(PathBuf::as_path).chain(corpora).collect();
    let unnamed = there.into_iter().filter(|path| !named.contains(*path));
    findings.extend(unnamed.map(|path| format!("{MANIFEST} names no target for {}", path.display())));
    let corpora = files.iter().filter(|file| file.starts_with("fuzz/corpus"));
    let sizes = corpora.filter_map(|file| Some(std::fs::metadata(root.join(file)).ok()?.len()));
    let bytes: u64 = sizes.sum();
    if bytes > MOST_BYTES {
        findings.push(format!("fuzz/corpus holds {bytes} bytes, more than {MOST_BYTES}"));
    }
    Ok(findings)
}

/// Every dependency that the workspace names is used by one of its packages.
fn unused_dependencies(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, StepError> {
    let manifest = workspace::read(root, "Cargo.toml")?;
    let named = manifest.split_once("[workspace.dependencies]").map_or("", |(_, rest)| rest);
    let named = named.lines().skip(1).take_while(|line| !line.starts_with('['));
    let members = files.iter().filter(|path| path.ends_with("Cargo.toml") && path.components().count() > 1);
    let members = members.map(|path| workspace::read(root, path)).collect::<Result<Vec<_>, _>>()?;
    let uses = |name: &str| {
        let plain = format!("{name}.workspace");
        let with_features = format!("{name} = {{ workspace = true");
        let lines = members.iter().flat_map(|member| member.lines());
        lines.into_iter().any(|line| line.starts_with(&plain) || line.starts_with(&with_features))
    };
    let names = named.filter_map(|line| Some(line.split_once('=')?.0.trim()));
    let unused = names.filter(|name| !name.starts_with('#') && !uses(name));
    Ok(unused.map(|name| format!("Cargo.toml names {name}, which no package uses")).collect())
}

fn read_if_there(root: &Path, files: &[PathBuf], path: &str) -> Result<Option<String>, StepError> {
    if files.iter().any(|file| file == Path::new(path)) {
        workspace::read(root, path).map(Some)
    } else {
        Ok(None)
    }
}

fn missing(path: &str) -> String {
    format!("{path} is missing")
}

/// The text value of the first `key = "value"` line.
fn value_of(manifest: &str, key: &str) -> Option<String> {
    manifest.lines().find_map(|line| {
        let value = line.trim().strip_prefix(key)?.trim_start().strip_prefix('=')?.trim();
        Some(value.strip_prefix('"')?.split_once('"')?.0.to_owned())
    })
}

#[cfg(test)]
mod tests;
