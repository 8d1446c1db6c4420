//! Where a JSON value ends, with every byte of it checked, without recursion.

use std::ops::Range;

/// Checks the value that starts at `start` (no white space before it) and says where it ends.
///
/// `closed` is told of every object, array and string in it where it stands, inner ones first; keys are not
/// told. Text inside strings is checked for control characters and escapes; whether it is UTF-8 is looked at
/// when it is read.
///
/// # Errors
/// The offset of the first byte that cannot be part of the value; the length of `source` when it ends early.
pub(super) fn scan(
    source: &[u8],
    start: usize,
    mut closed: impl FnMut(Range<usize>),
) -> Result<usize, usize> {
    let mut open: Vec<(u8, usize)> = Vec::new();
    let mut at = start;
    loop {
        match source.get(at) {
            Some(b'{') => {
                let inside = skip_space(source, at + 1);
                if source.get(inside) == Some(&b'}') {
                    at = inside + 1;
                } else {
                    open.push((b'}', at));
                    at = key(source, inside)?;
                    continue;
                }
            }
            Some(b'[') => {
                let inside = skip_space(source, at + 1);
                if source.get(inside) == Some(&b']') {
                    at = inside + 1;
                } else {
                    open.push((b']', at));
                    at = inside;
                    continue;
                }
            }
            Some(b'"') => {
                let began = at;
                at = string(source, at)?;
                closed(began..at);
            }
            Some(b'-' | b'0'..=b'9') => at = number(source, at)?,
            Some(b't') => at = literal(source, at, b"true")?,
            Some(b'f') => at = literal(source, at, b"false")?,
            Some(b'n') => at = literal(source, at, b"null")?,
            _ => return Err(at.min(source.len())),
        }
        loop {
            let Some(&(close, began)) = open.last() else { return Ok(at) };
            at = skip_space(source, at);
            match source.get(at) {
                Some(&byte) if byte == close => {
                    open.pop();
                    at += 1;
                    closed(began..at);
                }
                Some(b',') => {
                    at = skip_space(source, at + 1);
                    if close == b'}' {
                        at = key(source, at)?;
                    }
                    break;
                }
                _ => return Err(at.min(source.len())),
            }
        }
    }
}

/// The first offset from `at` on that is not JSON white space.
pub(super) fn skip_space(source: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = source.get(at) {
        at += 1;
    }
    at
}

/// Where a value known to be valid ends.
pub(super) fn skip_value(source: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while let Some(&byte) = source.get(at) {
        match byte {
            b'"' => {
                at = skip_string(source, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                // The end of the container that holds a number or literal.
                if depth == 0 {
                    return at;
                }
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' | b' ' | b'\n' | b'\t' | b'\r' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Where a string known to be valid ends, its closing quote included.
pub(super) fn skip_string(source: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        let rest = source.get(at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(found) if rest.get(found) == Some(&b'"') => return at + found + 1,
            Some(found) => at += found + 2,
            None => return source.len(),
        }
    }
}

fn key(source: &[u8], at: usize) -> Result<usize, usize> {
    if source.get(at) != Some(&b'"') {
        return Err(at.min(source.len()));
    }
    let colon = skip_space(source, string(source, at)?);
    match source.get(colon) {
        Some(b':') => Ok(skip_space(source, colon + 1)),
        _ => Err(colon.min(source.len())),
    }
}

fn string(source: &[u8], start: usize) -> Result<usize, usize> {
    let mut at = start + 1;
    loop {
        let rest = source.get(at..).unwrap_or_default();
        let plain = memchr::memchr2(b'"', b'\\', rest);
        let (segment, tail) = rest.split_at(plain.unwrap_or(rest.len()));
        // A fold without early exit is what the compiler turns into vector instructions.
        if segment.iter().fold(false, |found, &byte| found | (byte < 0x20)) {
            let control = segment.iter().position(|&byte| byte < 0x20).unwrap_or(0);
            return Err(at + control);
        }
        at += segment.len();
        match tail {
            [b'"', ..] => return Ok(at + 1),
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => at += 2,
            [b'\\', b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => {
                at += 6;
            }
            [b'\\', b'u', digits @ ..] if digits.len() < 4 && digits.iter().all(u8::is_ascii_hexdigit) => {
                return Err(source.len());
            }
            [b'\\', _, ..] => return Err(at + 1),
            _ => return Err(source.len()),
        }
    }
}

fn literal(source: &[u8], at: usize, word: &[u8]) -> Result<usize, usize> {
    let rest = source.get(at..).unwrap_or_default();
    let same = rest.iter().zip(word).take_while(|(left, right)| left == right).count();
    if same == word.len() { Ok(at + same) } else { Err(at + same) }
}

fn number(source: &[u8], start: usize) -> Result<usize, usize> {
    let mut at = start;
    if source.get(at) == Some(&b'-') {
        at += 1;
    }
    at = match source.get(at) {
        Some(b'0') => at + 1,
        _ => digits(source, at)?,
    };
    if source.get(at) == Some(&b'.') {
        at = digits(source, at + 1)?;
    }
    if let Some(b'e' | b'E') = source.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = source.get(at) {
            at += 1;
        }
        at = digits(source, at)?;
    }
    Ok(at)
}

fn digits(source: &[u8], start: usize) -> Result<usize, usize> {
    let rest = source.get(start..).unwrap_or_default();
    match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 => Err(start.min(source.len())),
        count => Ok(start + count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn end_of(source: &[u8], start: usize) -> Result<usize, usize> {
        scan(source, start, |_| {})
    }

    #[test]
    fn deep_nesting_takes_no_stack() {
        let deep = [b"[".repeat(1_000_000), b"]".repeat(1_000_000)].concat();
        assert_eq!(end_of(&deep, 0), Ok(2_000_000));
        assert_eq!(skip_value(&deep, 0), 2_000_000);
        assert_eq!(end_of(deep.get(..1_500_000).unwrap(), 0), Err(1_500_000));
    }

    #[test]
    fn faults_are_placed() {
        for (text, fault) in [
            ("", 0),
            ("{\"a\":1,}", 7),
            ("[1 2]", 3),
            ("\"a\nb\"", 2),
            ("\"\\x\"", 2),
            ("{\"a\" 1}", 5),
            ("tru", 3),
            ("[1", 2),
            ("-", 1),
            ("1.e", 2),
            ("\"\\u12", 5),
            ("\"\\u12\"", 2),
        ] {
            assert_eq!(end_of(text.as_bytes(), 0), Err(fault), "{text:?}");
        }
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "\\PC*".prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json_on_where_values_end(value in json(), pretty: bool, tail in "[ ,\\]x]*") {
            let text =
                if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let source = format!("[{text}]{tail}");
            prop_assert_eq!(end_of(source.as_bytes(), 0), Ok(text.len() + 2));
            prop_assert_eq!(skip_value(source.as_bytes(), 1), text.len() + 1);
        }

        #[test]
        fn accepts_exactly_what_serde_json_accepts(text in "[\\[\\]{}\",:0-9eE+\\-. tfn\\\\ua-f\n]{0,12}") {
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            let start = skip_space(text.as_bytes(), 0);
            let ours = end_of(text.as_bytes(), start)
                .is_ok_and(|end| skip_space(text.as_bytes(), end) == text.len());
            prop_assert_eq!(ours, theirs);
        }
    }
}
