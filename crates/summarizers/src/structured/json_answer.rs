//! Finding the JSON in an answer that is JSON.

use epitome_loop::json_scan::measure_value;

use super::line::{heading_of_line, is_fence, item_of_line};

/// Openers that are tried: prose in front of an answer has few.
const MOST_OPENERS: usize = 16;

/// The JSON of an answer that is JSON itself: alone, in a fence, or with one line of prose before and one behind it.
///
/// JSON that is quoted in a bullet or stands under a heading is text and is not found. What is found is one valid
/// value: an object, or an array that is the whole answer.
#[must_use]
pub fn json_answer(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let mut preamble = None;
    let mut openers = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let line_start = start;
        start += line.len();
        if line.trim().is_empty() || is_fence(line) {
            continue;
        }
        for (at, character) in line.char_indices().filter(|(_, character)| matches!(character, '{' | '[')) {
            openers += 1;
            if openers > MOST_OPENERS {
                return None;
            }
            let before = line.get(..at).unwrap_or_default().trim();
            let is_alone = preamble.is_none() && before.is_empty();
            if character == '[' && !is_alone
                || !before.is_empty() && (preamble.is_some() || !is_prose(before))
            {
                continue;
            }
            let opener = line_start + at;
            let Ok(extent) = measure_value(bytes, opener, usize::MAX) else { continue };
            let end = opener + extent.len;
            let (value, behind) = (text.get(opener..end)?, text.get(end..)?);
            let fits = if character == '[' {
                behind_lines(behind) == Some(0)
            } else {
                behind_lines(behind).is_some()
            };
            if fits {
                return Some(value);
            }
        }
        // A line without the answer is the one line of prose before it; a second one is too many.
        if preamble.is_some() || !is_prose(line) {
            return None;
        }
        preamble = Some(line);
    }
    None
}

/// How many lines of prose follow an answer, if that is one at most and nothing else does.
fn behind_lines(behind: &str) -> Option<usize> {
    let mut lines = behind.lines().filter(|line| !line.trim().is_empty() && !is_fence(line));
    match (lines.next(), lines.next()) {
        (None, _) => Some(0),
        (Some(line), None) if is_prose(line) => Some(1),
        _ => None,
    }
}

/// Whether a line is neither bullet nor heading of ours.
fn is_prose(line: &str) -> bool {
    // What stands in front of JSON on its line may be a bare mark.
    let is_mark = matches!(line.trim(), "-" | "*" | "+" | "•");
    !is_mark
        && !line.trim_start().starts_with('#')
        && item_of_line(line).is_none()
        && heading_of_line(line).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_is_the_answer() {
        let found = "{\"a\":[1]}";
        for text in [
            "{\"a\":[1]}",
            "Here it is: {\"a\":[1]}",
            "Here it is:\n\n```json\n{\"a\":[1]}\n```\nHope it helps.",
            "[ ] {\"a\":[1]}",
            "an odd \" before\n{\"a\":[1]}",
            "[x] {\"a\":[1]}",
        ] {
            assert_eq!(json_answer(text), Some(found), "{text}");
        }
        assert_eq!(json_answer("[[1]]"), Some("[[1]]"));
    }

    #[test]
    fn json_that_is_quoted() {
        for text in [
            "- saw {\"a\":[1]}",
            "- {\"a\":[1]}",
            "### Decisions\n{\"a\":[1]}",
            "### Decisions\n- saw `{\"a\":[1]}`\n- b",
            "one\ntwo\n{\"a\":[1]}",
            "{\"a\":[1]}\n- b",
            "{\"a\":[1]}\none\ntwo",
            "{\"a\":[1]",
            "[[1]",
            "null",
        ] {
            assert_eq!(json_answer(text), None, "{text}");
        }
    }
}
