//! Cuts text into statements: lines, and the sentences of long lines.

use std::borrow::Cow;

use epitome_loop::Section;

use super::lines::each_line;

/// A line of at most this many bytes is one statement.
pub(crate) const LONG_LINE: usize = 240;
/// No statement is longer than this many bytes; what is, is cut between words.
const LONGEST_STATEMENT: usize = 400;

/// Calls back with every statement of the text, in order, and with whether the line quotes somebody else.
/// Fenced code has no statements.
pub(crate) fn each_statement<'t>(text: &'t str, mut found: impl FnMut(Cow<'t, str>, bool)) {
    each_line(text, |line| match line {
        Cow::Borrowed(line) => statements_of_line(line, &mut found),
        Cow::Owned(joined) => statements_of_line(&joined, |text, is_quotation| {
            found(Cow::Owned(text.into_owned()), is_quotation);
        }),
    });
}

fn statements_of_line<'t>(line: &'t str, mut found: impl FnMut(Cow<'t, str>, bool)) {
    let is_quotation = line.starts_with('>');
    let line = without_list_mark(line);
    if line.len() < 3 {
        return;
    }
    if line.len() <= LONG_LINE {
        found(with_single_spaces(line), is_quotation);
        return;
    }
    for sentence in sentences(line) {
        each_chunk(sentence, |chunk| found(with_single_spaces(chunk), is_quotation));
    }
}

/// The sentences of a line, trimmed. Fragments of fewer than four words stay with their neighbor, so that
/// `For the rest of this session.` keeps the rule it belongs to.
pub(crate) fn sentences(line: &str) -> Vec<&str> {
    let mut merged: Vec<(usize, usize, usize)> = Vec::new();
    let mut take = |start: usize, end: usize| {
        let Some(sentence) = line.get(start..end) else { return };
        let start = start + (sentence.len() - sentence.trim_start().len());
        let sentence = sentence.trim();
        if sentence.is_empty() {
            return;
        }
        let (end, words) = (start + sentence.len(), count_words(sentence));
        match merged.last_mut() {
            Some((first, last, held))
                if (words < 4 || *held < 4) && (*last - *first) + sentence.len() < LONG_LINE =>
            {
                *last = end;
                *held += words;
            }
            _ => merged.push((start, end, words)),
        }
    };
    let mut start = 0;
    for end in sentence_ends(line) {
        take(start, end);
        start = end;
    }
    take(start, line.len());
    merged.into_iter().filter_map(|(start, end, _)| line.get(start..end)).collect()
}

/// The sentences of a line, trimmed, fragments apart.
pub(crate) fn sentences_apart(line: &str) -> Vec<&str> {
    let mut start = 0;
    let ends = sentence_ends(line).into_iter().chain([line.len()]);
    ends.filter_map(|end| line.get(std::mem::replace(&mut start, end)..end)).map(str::trim).collect()
}

/// How many words a text with single spaces has.
pub(crate) fn count_words(text: &str) -> usize {
    text.split_ascii_whitespace().count()
}

/// The longest prefix of at most `bytes` bytes that ends between words, or else between characters.
pub(crate) fn cut_at_word(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let end = text.floor_char_boundary(bytes);
    let head = text.get(..end).unwrap_or_default();
    let is_inside_word = !text.get(end..).unwrap_or_default().starts_with(' ');
    match head.rsplit_once(' ') {
        Some((whole, _)) if is_inside_word && !whole.trim().is_empty() => whole.trim_end(),
        _ => head.trim_end(),
    }
}

/// What the words before a colon say about a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Label {
    /// The label names a section.
    Section(Section),
    /// The label calls for attention and names none: `Note:`, or any word in capitals.
    Attention,
}

/// The label of a statement and the statement without it; a label in capitals that is not known stays.
pub(crate) fn split_label(text: &str) -> Option<(Label, &str)> {
    let colon = text.bytes().take(36).position(|byte| byte == b':')?;
    let (before, after) = text.split_at_checked(colon)?;
    let body = after.strip_prefix(": ")?.trim_start();
    if body.is_empty() {
        return None;
    }
    let is_mark = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    let label = before.trim_matches(is_mark);
    let marks_in_front = before.len() - before.trim_start_matches(is_mark).len();
    if marks_in_front > 4 || !(3..=25).contains(&label.len()) {
        return None;
    }
    let is_plain = |byte: u8| byte.is_ascii_alphabetic() || b" _/-".contains(&byte);
    if !label.bytes().all(is_plain) {
        return None;
    }
    let lower = label.to_ascii_lowercase();
    match LABELS.iter().find(|(name, _)| *name == lower) {
        Some((_, Some(section))) => Some((Label::Section(*section), body)),
        Some((_, None)) => Some((Label::Attention, body)),
        None => label.bytes().all(|byte| !byte.is_ascii_lowercase()).then_some((Label::Attention, text)),
    }
}

const LABELS: [(&str, Option<Section>); 44] = [
    ("safety rule", Some(Section::Constraints)),
    ("rule", Some(Section::Constraints)),
    ("rules", Some(Section::Constraints)),
    ("hard constraint", Some(Section::Constraints)),
    ("constraint", Some(Section::Constraints)),
    ("constraints", Some(Section::Constraints)),
    ("requirement", Some(Section::Constraints)),
    ("requirements", Some(Section::Constraints)),
    ("policy", Some(Section::Constraints)),
    ("user preference", Some(Section::Constraints)),
    ("preference", Some(Section::Constraints)),
    ("important", Some(Section::Constraints)),
    ("critical", Some(Section::Constraints)),
    ("warning", Some(Section::Constraints)),
    ("goal", Some(Section::Goal)),
    ("objective", Some(Section::Goal)),
    ("task", Some(Section::Goal)),
    ("mission", Some(Section::Goal)),
    ("decision", Some(Section::Decisions)),
    ("decided", Some(Section::Decisions)),
    ("decisions", Some(Section::Decisions)),
    ("fact", Some(Section::State)),
    ("context", Some(Section::State)),
    ("goal state", Some(Section::State)),
    ("state", Some(Section::State)),
    ("status", Some(Section::State)),
    ("progress", Some(Section::State)),
    ("done", Some(Section::State)),
    ("error", Some(Section::State)),
    ("todo", Some(Section::OpenItems)),
    ("next", Some(Section::OpenItems)),
    ("next step", Some(Section::OpenItems)),
    ("next steps", Some(Section::OpenItems)),
    ("open question", Some(Section::OpenItems)),
    ("open item", Some(Section::OpenItems)),
    ("action item", Some(Section::OpenItems)),
    ("blocked", Some(Section::OpenItems)),
    ("pending", Some(Section::OpenItems)),
    ("question", Some(Section::OpenItems)),
    ("note", None),
    ("update", None),
    ("quick update", None),
    ("reminder", None),
    ("fyi", None),
];

/// Whether a line reads like program text or machine output. Such lines state no rules, whoever sent them.
pub(crate) fn is_code_like(line: &str) -> bool {
    let bytes = line.as_bytes();
    let Some(&first) = bytes.first() else { return false };
    let has = |signs: &[u8]| bytes.iter().any(|byte| signs.contains(byte));
    let word_len = bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let word = bytes.get(..word_len).unwrap_or_default();
    let after = bytes.get(word_len..).unwrap_or_default();
    let is_numbered = first.is_ascii_digit()
        && word.iter().all(u8::is_ascii_digit)
        && matches!(after, [b':' | b'|', ..] | [b' ', b':' | b'|', ..]);
    let opens_like_data =
        matches!(bytes, [b'{' | b'<', ..] | [b'[', b'"' | b'\'' | b'{' | b'[' | b'0'..=b'9', ..])
            || first == b'[' && bytes.ends_with(b"]");
    let opens_like_code = ["//", "/*", ">>>", "$ ", "+++", "---", "@@", "#include"]
        .iter()
        .any(|opening| line.starts_with(opening));
    // Words that open sentences as well need a second sign.
    let is_keyword = CODE_WORDS.contains(&word)
        || CODE_OR_ENGLISH_WORDS.contains(&word)
            && (has(b"{};=") || bytes.ends_with(b":") || line.contains("()") || line.contains("::"))
        || word == b"from" && line.contains(" import ");
    let ends_like_code = matches!(bytes.last(), Some(b'{' | b'}'))
        || bytes.ends_with(b";") && has(b"()=")
        || bytes.ends_with(b"):");
    is_numbered
        || opens_like_data
        || opens_like_code
        || is_keyword
        || ends_like_code
        || is_position(line)
        || is_log_line(line)
        || is_mostly_signs(line)
}

const CODE_WORDS: [&[u8]; 10] =
    [b"def", b"fn", b"const", b"var", b"pub", b"elif", b"except", b"struct", b"impl", b"async"];

const CODE_OR_ENGLISH_WORDS: [&[u8]; 14] = [
    b"class", b"import", b"return", b"if", b"for", b"while", b"let", b"use", b"else", b"try", b"raise",
    b"assert", b"from", b"enum",
];

/// How programs without tool messages hand a tool's output over in the user's name.
const TOOL_OUTPUT_OPENINGS: [&str; 3] = ["EXECUTION RESULT of [", "OBSERVATION:", "[Tool result"];

/// Whether a message that carries the user's name is a tool's output.
pub(crate) fn is_tool_output(text: &str) -> bool {
    TOOL_OUTPUT_OPENINGS.iter().any(|opening| text.trim_start().starts_with(opening))
}

/// The elements in which coding agents put standing instructions and facts about the machine before the user's words.
const PUT_THERE: [&str; 4] =
    ["environment_context", "user_instructions", "system-reminder", "permissions instructions"];

/// Whether a text that carries the user's name was put there by the program: project instructions, or where it runs.
/// Its rules hold, but it is not what the user came for.
pub(crate) fn is_put_there(text: &str) -> bool {
    let text = text.trim();
    let is_whole = |name: &&str| {
        let inner = text.strip_prefix('<').and_then(|rest| rest.strip_prefix(*name)?.strip_prefix('>'));
        inner.is_some_and(|inner| {
            inner.strip_suffix('>').is_some_and(|rest| rest.ends_with(&format!("</{name}")))
        })
    };
    text.starts_with("# AGENTS.md instructions") || PUT_THERE.iter().any(is_whole)
}

/// `2026-11-30 12:00:00 ERROR ...`, `[12:00:00.123] ...`: a time to the second opens the line.
fn is_log_line(line: &str) -> bool {
    let is_of_time = |byte: &u8| byte.is_ascii_digit() || b"[-/:T.,+Z ".contains(byte);
    let opening = line.as_bytes().iter().take_while(|byte| is_of_time(byte)).count();
    let opening = line.as_bytes().get(..opening).unwrap_or_default();
    opening.windows(8).any(|window| {
        let digits = |at: usize| window.iter().skip(at).take(2).all(u8::is_ascii_digit);
        digits(0) && digits(3) && digits(6) && window.get(2) == Some(&b':') && window.get(5) == Some(&b':')
    })
}

/// `src/a.rs:12: ...`
fn is_position(line: &str) -> bool {
    let place = line.split(' ').next().unwrap_or_default();
    place.split_once(':').is_some_and(|(file, after)| {
        !file.is_empty()
            && file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte))
            && after.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
    })
}

/// Whether more than an eighth of a line is signs that prose does not use, or almost half of it digits.
fn is_mostly_signs(line: &str) -> bool {
    let (mut characters, mut signs, mut digits) = (0_usize, 0_usize, 0_usize);
    for &byte in line.as_bytes() {
        match KINDS[usize::from(byte)] {
            Kind::Prose => characters += 1,
            Kind::Digit => (characters, digits) = (characters + 1, digits + 1),
            Kind::Sign => (characters, signs) = (characters + 1, signs + 1),
            Kind::Continuation => {}
        }
    }
    if !line.is_ascii() {
        // The lines that frame tables and progress bars.
        signs += line.chars().filter(|character| matches!(character, '\u{2500}'..='\u{259f}')).count();
    }
    signs * 100 > characters * 12 + 100 || digits * 100 > characters * 45
}

#[derive(Clone, Copy)]
enum Kind {
    Prose,
    Digit,
    Sign,
    Continuation,
}

/// What each byte counts as; a character that is not ASCII counts once, as prose.
static KINDS: [Kind; 256] = {
    let mut kinds = [Kind::Prose; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'0'..=b'9' => Kind::Digit,
            b'#' | b'&' | b'+' | b'<'..=b'>' | b'@' | b'['..=b'^' | b'{'..=b'~' => Kind::Sign,
            0..b' ' | 0x7f => Kind::Sign,
            0x80..0xc0 => Kind::Continuation,
            _ => Kind::Prose,
        };
        byte += 1;
    }
    kinds
};

/// The line without the mark of a list, a heading or a quotation.
fn without_list_mark(line: &str) -> &str {
    let marks = line.trim_start_matches('#');
    let rest = if marks.len() < line.len() && line.len() - marks.len() <= 6 {
        marks
    } else if let Some(rest) = line.strip_prefix(['-', '*', '•', '>']) {
        rest
    } else {
        let digits = line.trim_start_matches(|character: char| character.is_ascii_digit());
        match digits.strip_prefix(['.', ')']) {
            Some(rest) if digits.len() < line.len() && line.len() - digits.len() <= 4 => rest,
            _ => return line,
        }
    };
    if rest.starts_with([' ', '\t']) { rest.trim() } else { line }
}

/// The offsets after which a new sentence starts.
fn sentence_ends(line: &str) -> Vec<usize> {
    let bytes = line.as_bytes();
    let mut ends = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte >= 0x80 {
            // Full stops of scripts that put no space after them.
            let character = line.get(at..).and_then(|rest| rest.chars().next());
            at += character.map_or(1, char::len_utf8);
            if matches!(character, Some('。' | '！' | '？')) {
                ends.push(at);
                start = at;
            }
            continue;
        }
        at += 1;
        if !b".!?;".contains(&byte) {
            continue;
        }
        let stop = at;
        while bytes.get(at).is_some_and(|byte| b".!?;\"')]".contains(byte)) {
            at += 1;
        }
        let gap =
            bytes.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let next = bytes.get(at + gap).copied().unwrap_or(b' ');
        let opens = next.is_ascii_uppercase()
            || next.is_ascii_digit()
            || next >= 0x80
            || b"\"'([$`*-".contains(&next);
        let sentence = bytes.get(start..stop).unwrap_or_default();
        if gap > 0 && opens && !(byte == b'.' && ends_with_abbreviation(sentence)) {
            at += gap;
            ends.push(at);
            start = at;
        }
    }
    ends
}

/// Whether the full stop at the end belongs to an abbreviation, an initial or a number.
fn ends_with_abbreviation(sentence: &[u8]) -> bool {
    const ABBREVIATIONS: [&[u8]; 13] =
        [b"e.g", b"i.e", b"etc", b"vs", b"mr", b"mrs", b"ms", b"dr", b"fig", b"cf", b"approx", b"inc", b"st"];
    let word_start = sentence.iter().rposition(|byte| byte.is_ascii_whitespace() || *byte == b'(');
    let word = sentence.get(word_start.map_or(0, |at| at + 1)..).unwrap_or_default();
    let word = word.strip_suffix(b".").unwrap_or(word);
    let is_number = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    if is_number && word_start.is_some_and(|at| ends_with_counted(sentence.get(..at).unwrap_or_default())) {
        return false;
    }
    match word {
        [letter] => letter.is_ascii_alphanumeric(),
        [.., last] if last.is_ascii_digit() => word.iter().all(u8::is_ascii_digit) && word.len() <= 2,
        _ => ABBREVIATIONS.iter().any(|known| word.eq_ignore_ascii_case(known)),
    }
}

/// Whether a number behind this ends a sentence: `Now to part 2.`, `retries = 5.`
fn ends_with_counted(before: &[u8]) -> bool {
    const COUNTED: [&[u8]; 15] = [
        b"part", b"step", b"task", b"item", b"phase", b"stage", b"point", b"chapter", b"ticket", b"issue",
        b"is", b"be", b"most", b"least", b"than",
    ];
    let before = before.trim_ascii_end();
    let last = before.rsplit(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    before.ends_with(b"=") || COUNTED.iter().any(|known| last.eq_ignore_ascii_case(known))
}

/// Cuts what is longer than a statement may be.
fn each_chunk<'t>(sentence: &'t str, mut found: impl FnMut(&'t str)) {
    let mut rest = sentence;
    while !rest.is_empty() {
        let chunk = cut_at_word(rest, LONGEST_STATEMENT);
        let (head, tail) = if chunk.is_empty() {
            rest.split_at_checked(rest.floor_char_boundary(LONGEST_STATEMENT)).unwrap_or((rest, ""))
        } else {
            rest.split_at_checked(chunk.len()).unwrap_or((rest, ""))
        };
        if head.len() >= 3 {
            found(head);
        }
        rest = tail.trim_start();
    }
}

/// The text with every run of white space as one space.
fn with_single_spaces(text: &str) -> Cow<'_, str> {
    let mut after_space = false;
    let is_clean = text.bytes().all(|byte| {
        let is_space = byte == b' ';
        let clean = !(is_space && after_space) && (is_space || !byte.is_ascii_whitespace());
        after_space = is_space;
        clean
    });
    if is_clean {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        each_statement(text, |statement, _| all.push(statement.into_owned()));
        all
    }

    #[test]
    fn lines_are_statements_without_their_marks() {
        assert_eq!(
            statements("# Rules\n\n- never  push\n2) ask\tfirst\n* **bold** one\nok"),
            ["Rules", "never push", "ask first", "**bold** one"]
        );
        assert_eq!(statements("-x stays\n1.5 stays\n#tag"), ["-x stays", "1.5 stays", "#tag"]);
    }

    #[test]
    fn fenced_code_is_skipped_and_a_stray_fence_fences_nothing() {
        assert_eq!(statements("before\n```\nnever do this\n```\nafter"), ["before", "after"]);
        assert_eq!(statements("before\n```\nnever do this"), ["before", "never do this"]);
    }

    #[test]
    fn long_lines_are_cut_into_sentences() {
        let long = "The first sentence says something of some length here. ".repeat(6);
        assert_eq!(statements(&long).len(), 6);
        assert_eq!(
            sentences("Hard line. Never push to main, e.g. after work. Ask me first of all."),
            ["Hard line. Never push to main, e.g. after work.", "Ask me first of all."]
        );
        assert_eq!(sentences("version 1. 2 is fine here. J. Doe said so today.").len(), 2);
        assert_eq!(
            sentences_apart("Next part 1. Always answer in English."),
            ["Next part 1.", "Always answer in English."]
        );
    }

    #[test]
    fn endless_lines_stay_linear_and_lose_no_words() {
        let endless = "word ".repeat(10_000);
        let all = statements(&endless);
        assert!(all.iter().all(|statement| statement.len() <= LONGEST_STATEMENT));
        assert_eq!(all.iter().map(|statement| count_words(statement)).sum::<usize>(), 10_000);
        assert_eq!(statements(&"é".repeat(1000)).concat().len(), 2000);
    }

    #[test]
    fn labels_are_read() {
        assert_eq!(
            split_label("RULE: never push"),
            Some((Label::Section(Section::Constraints), "never push"))
        );
        assert_eq!(split_label("**Todo**: ship"), Some((Label::Section(Section::OpenItems), "ship")));
        assert_eq!(split_label("NOTE: x y"), Some((Label::Attention, "x y")));
        assert_eq!(split_label("SHOUT: x y"), Some((Label::Attention, "SHOUT: x y")));
        assert_eq!(split_label("hello: x y"), None);
        assert_eq!(split_label("rule:"), None);
    }

    #[test]
    fn code_is_told_from_prose() {
        for code in [
            "12: let x = 1",
            "{\"a\": 1}",
            "def run(self):",
            "if (x) {",
            "return x;",
            "src/a.rs:12: error",
            "@@ -1 +1 @@",
            "from a import b",
            "x = f(y);",
            "[1, 2]",
        ] {
            assert!(is_code_like(code), "{code}");
        }
        for prose in [
            "from now on never push",
            "if you push, ask me",
            "use tabs, not spaces",
            "for every reply be brief",
            "(never push to main)",
            "never push;",
            "Let me know: yes or no",
            "Note: it's 5 o'clock",
        ] {
            assert!(!is_code_like(prose), "{prose}");
        }
    }

    #[test]
    fn cuts_fall_between_words() {
        assert_eq!(cut_at_word("one two three", 9), "one two");
        assert_eq!(cut_at_word("one two three", 7), "one two");
        assert_eq!(cut_at_word("éééé", 3), "é");
        assert_eq!(cut_at_word("one", 9), "one");
    }
}
