//! The lines of a text outside fenced code, with breaks inside a sentence undone.

use std::borrow::Cow;

use super::statements::is_code_like;

/// A paragraph is not joined beyond this many bytes.
const LONGEST_PARAGRAPH: usize = 2_000;
/// From this length on a line is likely to have been broken for its width.
const WRAPPED_LINE: usize = 40;

/// Words with which a sentence goes on in the next line, however short this one is.
const CONNECTIVES: [&str; 24] = [
    "to", "the", "a", "an", "of", "in", "on", "at", "for", "and", "or", "with", "without", "from", "into",
    "by", "unless", "until", "before", "after", "when", "because", "that", "which",
];

/// Other words that no sentence ends with.
const UNFINISHED: [&str; 24] = [
    "not", "never", "ever", "don't", "do", "must", "should", "shall", "will", "may", "can", "be", "is",
    "are", "your", "my", "our", "no", "any", "every", "these", "those", "always", "only",
];

/// Calls back with every line of the text that is no fenced code. A line that goes on with the sentence of the
/// line before it is joined to that: half a rule can mean the opposite.
pub(crate) fn each_line<'t>(text: &'t str, mut found: impl FnMut(Cow<'t, str>)) {
    let mut open: Option<(Cow<'t, str>, &'t str)> = None;
    each_line_outside_fences(text, |line, is_adjacent| {
        if let Some((paragraph, last)) = &mut open
            && is_adjacent
            && paragraph.len() + line.len() < LONGEST_PARAGRAPH
            && goes_on(last, line)
        {
            let joined = paragraph.to_mut();
            joined.push(' ');
            joined.push_str(line);
            *last = line;
            return;
        }
        if let Some((paragraph, _)) = open.replace((Cow::Borrowed(line), line)) {
            found(paragraph);
        }
    });
    if let Some((paragraph, _)) = open {
        found(paragraph);
    }
}

/// Whether a sentence goes on from one line to the next.
fn goes_on(before: &str, line: &str) -> bool {
    let is_data = |text: &str| text.contains(['=', '|', '\t', '{', '}']) || text.contains("->");
    if before.ends_with(['.', '!', '?', ':', ';']) || before.starts_with(['>', '#', '|', '<']) {
        return false;
    }
    let first = line.split(' ').next().unwrap_or_default();
    let last = before.rsplit(' ').next().unwrap_or_default();
    let is_continuation = line.chars().next().is_some_and(char::is_lowercase) && !first.ends_with(':');
    let last = last.to_ascii_lowercase();
    let wants_more = CONNECTIVES.contains(&last.as_str()) || UNFINISHED.contains(&last.as_str());
    let may_go_on =
        is_continuation && (before.len() >= WRAPPED_LINE || CONNECTIVES.contains(&first) || wants_more);
    may_go_on && !is_data(before) && !is_data(line) && !is_code_like(before) && !is_code_like(line)
}

/// Calls back with every line that is not blank and not inside a code fence, and with whether the line before
/// it was one as well. A fence that is never closed fences nothing: a stray mark must not swallow the rules
/// after it.
fn each_line_outside_fences<'t>(text: &'t str, mut found: impl FnMut(&'t str, bool)) {
    let is_fence = |line: &str| line.starts_with("```");
    let mut fences = 0_usize;
    if text.contains("```") {
        fences = text.lines().filter(|line| is_fence(line.trim_start())).count();
    }
    let closed = fences - fences % 2;
    let mut met = 0;
    let mut is_adjacent = false;
    for line in text.lines() {
        let line = line.trim();
        let is_read = !is_fence(line) && !line.is_empty() && (met % 2 == 0 || met > closed);
        met += usize::from(is_fence(line));
        if is_read {
            found(line, is_adjacent);
        }
        is_adjacent = is_read;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        each_line(text, |line| all.push(line.into_owned()));
        all
    }

    #[test]
    fn a_broken_sentence_is_one_line() {
        for (text, joined) in [
            ("You must never delete the\ncustomer table.", "You must never delete the customer table."),
            ("Never push\nto main.", "Never push to main."),
            (
                "Whatever happens, please do not\ndelete the customer table.",
                "Whatever happens, please do not delete the customer table.",
            ),
            (
                "It is fine to read the archive of last year\nbut writing is not allowed",
                "It is fine to read the archive of last year but writing is not allowed",
            ),
        ] {
            assert_eq!(lines(text), [joined]);
        }
    }

    #[test]
    fn lines_of_their_own_stay_apart() {
        for text in [
            "use tabs\nno emojis",
            "Rules:\nnever push",
            "Done.\nnext",
            "- one item of a list that is rather long\n- another",
            "a = the\nb = two",
            "limit: the\ncolor: red",
            "> quoted words that go on to the\nend",
            "word of the\n\nnext paragraph",
        ] {
            assert!(lines(text).len() > 1, "{text}");
        }
        assert_eq!(lines("a\n```\ncode of the\nfence\n```\nb"), ["a", "b"]);
    }
}
