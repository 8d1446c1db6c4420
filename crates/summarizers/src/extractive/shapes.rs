//! The shapes of single values: small grammars for dates, digests, versions, paths and the like.
//!
//! All take one token in ASCII lower case.

use super::tokens::Made;

const LETTERS: Made = Made::LOWER.with(Made::UPPER);

pub(crate) const BRANCH_PREFIXES: [&[u8]; 10] =
    [b"feature", b"spike", b"fix", b"bugfix", b"hotfix", b"release", b"chore", b"feat", b"user", b"users"];

pub(crate) const ZONE_REGIONS: [&[u8]; 8] =
    [b"america", b"europe", b"asia", b"africa", b"australia", b"pacific", b"etc", b"zone"];

const EXTENSIONS: [&[u8]; 44] = [
    b"py", b"rs", b"ts", b"tsx", b"js", b"jsx", b"go", b"java", b"rb", b"c", b"h", b"cpp", b"hpp", b"cs",
    b"md", b"json", b"jsonl", b"yaml", b"yml", b"toml", b"ini", b"cfg", b"sh", b"sql", b"txt", b"html",
    b"css", b"lock", b"xml", b"env", b"log", b"csv", b"tsv", b"pdf", b"png", b"svg", b"kt", b"swift", b"php",
    b"proto", b"tf", b"vue", b"ipynb", b"conf",
];

/// Folders that projects and systems have. Two plain words with a slash between are a path only if the first
/// is one of them: `start/end` is none.
const FOLDERS: [&[u8]; 46] = [
    b"src",
    b"lib",
    b"libs",
    b"test",
    b"tests",
    b"doc",
    b"docs",
    b"app",
    b"apps",
    b"crates",
    b"packages",
    b"pkg",
    b"cmd",
    b"internal",
    b"bin",
    b"scripts",
    b"config",
    b"configs",
    b"build",
    b"dist",
    b"target",
    b"examples",
    b"benches",
    b"fixtures",
    b"include",
    b"public",
    b"static",
    b"assets",
    b"templates",
    b"tools",
    b"core",
    b"server",
    b"client",
    b"backend",
    b"frontend",
    b"api",
    b"web",
    b"etc",
    b"home",
    b"usr",
    b"var",
    b"tmp",
    b"opt",
    b"data",
    b"vendor",
    b"workspace",
];

pub(crate) fn has_known_extension(lower: &[u8]) -> bool {
    let mut parts = lower.rsplit(|&byte| byte == b'.');
    let extension = parts.next().unwrap_or_default();
    parts.next().is_some() && EXTENSIONS.contains(&extension)
}

/// A path, given what the token is made of.
pub(crate) fn is_path(lower: &[u8], made: Made) -> bool {
    if !made.any(LETTERS.with(Made::FOREIGN)) {
        return false;
    }
    let mut parts = lower.split(|&byte| byte == b'/' || byte == b'\\');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_pair_of_words = parts.next().is_none()
        && [first, second].iter().all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_alphabetic));
    !is_pair_of_words || FOLDERS.contains(&first)
}

/// A capitalized word of small letters: `Alice`.
pub(crate) fn is_name_part(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase) && word.len() > 1 && letters.all(char::is_lowercase)
}

pub(crate) fn is_capital(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
}

/// `1` to `31` with or without `st`, `nd`, `rd`, `th`.
pub(crate) fn is_day(lower: &[u8]) -> bool {
    let digits = lower.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=2).contains(&digits)
        && [b"".as_slice(), b"st", b"nd", b"rd", b"th"].contains(&lower.get(digits..).unwrap_or_default())
}

pub(crate) fn is_ordinal(lower: &[u8]) -> bool {
    let digits = lower.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && [b"st".as_slice(), b"nd", b"rd", b"th"].contains(&lower.get(digits..).unwrap_or_default())
}

fn has_shape(lower: &[u8], separator: u8, lengths: &[std::ops::RangeInclusive<usize>]) -> bool {
    let mut parts = lower.split(|&byte| byte == separator);
    lengths.iter().all(|length| {
        parts.next().is_some_and(|part| length.contains(&part.len()) && part.iter().all(u8::is_ascii_digit))
    }) && parts.next().is_none()
}

pub(crate) fn is_iso_date(lower: &[u8]) -> bool {
    has_shape(lower, b'-', &[4..=4, 2..=2, 2..=2])
}

pub(crate) fn is_slash_date(lower: &[u8]) -> bool {
    has_shape(lower, b'/', &[1..=2, 1..=2]) || has_shape(lower, b'/', &[1..=2, 1..=2, 2..=4])
}

/// Hexadecimal digits of a digest's length, a digit among them.
pub(crate) fn is_hash(lower: &[u8]) -> bool {
    (7..=40).contains(&lower.len())
        && lower.iter().all(u8::is_ascii_hexdigit)
        && lower.iter().any(u8::is_ascii_digit)
}

/// `v1.2`, `2.0.1`, `v3`.
pub(crate) fn is_version(lower: &[u8]) -> bool {
    let figures = lower.strip_prefix(b"v").unwrap_or(lower);
    figures.first().is_some_and(u8::is_ascii_digit)
        && figures
            .split(|&byte| byte == b'.')
            .all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
        && (figures.len() < lower.len() || figures.contains(&b'.'))
}

/// `250ms`, `16gb`, `10k`: figures and at most three letters.
pub(crate) fn is_number_with_unit(lower: &[u8]) -> bool {
    let figures = lower.iter().take_while(|byte| byte.is_ascii_digit() || b".,".contains(byte)).count();
    let unit = lower.get(figures..).unwrap_or_default();
    figures > 0
        && figures + unit.len() >= 3
        && (1..=3).contains(&unit.len())
        && unit.iter().all(u8::is_ascii_alphabetic)
        && !is_ordinal(lower)
}

/// `std::fmt`: names joined by colons.
pub(crate) fn is_path_of_names(lower: &[u8], made: Made) -> bool {
    made.any(Made::COLON) && made.any(LETTERS) && lower.windows(2).any(|pair| pair == b"::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert!(is_iso_date(b"2026-03-01") && !is_iso_date(b"2026-3-1") && !is_iso_date(b"2026-03-01-1"));
        assert!(is_slash_date(b"3/4") && is_slash_date(b"3/4/2026") && !is_slash_date(b"3/4/5/6"));
        assert!(is_day(b"1") && is_day(b"22nd") && !is_day(b"100") && !is_day(b"1x") && !is_day(b"st"));
    }

    #[test]
    fn figures() {
        assert!(is_version(b"v1") && is_version(b"1.2.3") && !is_version(b"1") && !is_version(b"1..2"));
        assert!(
            is_number_with_unit(b"250ms") && is_number_with_unit(b"1.5gb") && !is_number_with_unit(b"2nd")
        );
        assert!(is_hash(b"3f9a2bc") && !is_hash(b"deadbeef") && !is_hash(b"3f9a") && !is_hash(&[b'1'; 41]));
        assert!(is_ordinal(b"21st") && !is_ordinal(b"st"));
    }

    #[test]
    fn names_and_paths() {
        assert!(is_name_part("Jane") && !is_name_part("JANE") && !is_name_part("J") && !is_name_part("jane"));
        assert!(
            has_known_extension(b"a.b.rs") && !has_known_extension(b"rs") && !has_known_extension(b"a.zzz")
        );
        assert!(
            is_path(b"src/main", Made::LOWER)
                && !is_path(b"and/or", Made::LOWER)
                && !is_path(b"1/2", Made::DIGIT)
        );
        assert!(is_path_of_names(b"std::fmt", Made::LOWER.with(Made::COLON)));
    }
}
