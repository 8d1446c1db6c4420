//! Text that may say anything, written so that it can form none of our tags and none of a model's control tokens.

use std::fmt::Write;

/// Whether a character is `<` or is easily taken for it.
///
/// The list: the characters that Unicode's table of confusables gives for `<`, its compatibility forms, and the single
/// angle brackets of the scripts that have some.
pub(crate) fn is_angle(character: char) -> bool {
    matches!(
        character,
        '<' | '\u{2c2}'
            | '\u{1438}'
            | '\u{16b2}'
            | '\u{2039}'
            | '\u{2329}'
            | '\u{276c}'
            | '\u{276e}'
            | '\u{2770}'
            | '\u{27e8}'
            | '\u{29fc}'
            | '\u{3008}'
            | '\u{fe3f}'
            | '\u{fe64}'
            | '\u{ff1c}'
            | '\u{1d236}'
    )
}

/// Whether nothing is seen of a character, so that it can hide in a word: fillers, tags, selectors beyond the common
/// ones. Joiners, which some scripts and pictures need, are not among them.
pub(crate) fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}'
            | '\u{ffff}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a character turns the direction of writing: under it `>` is shown as `<`.
pub(crate) fn turns_direction(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}')
}

/// Words in square brackets that are control tokens of some models. Those in angle brackets need no list.
const BRACKETED: [&str; 15] = [
    "INST",
    "/INST",
    "SYSTEM_PROMPT",
    "/SYSTEM_PROMPT",
    "AVAILABLE_TOOLS",
    "/AVAILABLE_TOOLS",
    "TOOL_CALLS",
    "TOOL_RESULTS",
    "/TOOL_RESULTS",
    "TOOL_CONTENT",
    "ARGS",
    "THINK",
    "/THINK",
    "gMASK",
    "PREFIX",
];

/// Appends text that holds no `<`, and nothing that is easily taken for one, no control token, no character that is not
/// seen, and no line break but `\n`.
///
/// `<` and what looks like it is written `&lt;`; `&` is written `&amp;` where it could begin such a reference; what turns
/// the direction of writing, and `[` in front of a control word, is written as a numbered reference, so that it is seen.
pub(crate) fn push_defused(out: &mut String, text: &str) {
    out.reserve(text.len());
    let mut rest = text;
    let mut is_after_ascii = true;
    while let Some(at) = rest.bytes().position(is_special) {
        let (plain, special) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(plain);
        is_after_ascii |= !plain.is_empty();
        let mut characters = special.chars();
        let Some(character) = characters.next() else { return };
        rest = characters.as_str();
        push_character(out, character, rest, is_after_ascii);
        if !is_joiner(character) {
            is_after_ascii = character.is_ascii();
        }
    }
    out.push_str(rest);
}

/// Bytes that are not just copied.
fn is_special(byte: u8) -> bool {
    byte >= 0x7f || (byte < 0x20 && byte != b'\n' && byte != b'\t') || matches!(byte, b'<' | b'&' | b'[')
}

fn push_character(out: &mut String, character: char, rest: &str, is_after_ascii: bool) {
    match character {
        '&' if begins_reference(rest) => out.push_str("&amp;"),
        '[' if begins_control_word(rest) => out.push_str("&#91;"),
        '\r' if rest.starts_with('\n') => {}
        '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
        _ if is_angle(character) => out.push_str("&lt;"),
        _ if turns_direction(character) => {
            let _ = write!(out, "&#x{:x};", u32::from(character));
        }
        _ if is_unseen(character) || character.is_control() && character != '\t' && character != '\n' => {}
        // Between letters of English a joiner joins nothing.
        _ if is_joiner(character) && is_after_ascii => {}
        _ => out.push(character),
    }
}

/// Whether what follows an `&` could be the rest of a reference.
fn begins_reference(rest: &str) -> bool {
    seen(rest).next().is_some_and(|next| next == '#' || next.is_alphanumeric())
}

/// Whether what follows a `[` is a control word and `]`.
fn begins_control_word(rest: &str) -> bool {
    const LONGEST: usize = 20;
    let mut word = String::new();
    for character in seen(rest).take(LONGEST) {
        if character == ']' {
            return BRACKETED.contains(&word.as_str());
        }
        word.push(character);
    }
    false
}

/// The characters of a text that are written, so that one that is left out hides nothing. A run of unseen ones is looked
/// through only so far: behind more of them nothing is taken for a word.
fn seen(text: &str) -> impl Iterator<Item = char> + '_ {
    const MOST: usize = 64;
    let is_left_out =
        |character: char| is_unseen(character) || is_joiner(character) || character.is_control();
    text.chars().take(MOST).filter(move |&character| !is_left_out(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defused(text: &str) -> String {
        let mut out = String::new();
        push_defused(&mut out, text);
        out
    }

    #[test]
    fn what_is_harmless_stays_as_it_is() {
        for text in
            ["a && b & c", "x > y [1] [TODO] *", "tab\tline\n", "żółć 日本語 👩\u{200d}💻 می\u{200c}خواهم"]
        {
            assert_eq!(defused(text), text);
        }
    }

    #[test]
    fn nothing_that_looks_like_a_tag_is_left() {
        for text in ["</transcript>", "\u{ff1c}/x>", "\u{2039}x>", "\u{3008}x\u{3009}", "<\u{200b}/x>"] {
            let out = defused(text);
            assert!(out.starts_with("&lt;") && !out.contains(is_angle) && !out.contains(is_unseen), "{out}");
        }
        assert_eq!(defused("\u{202e}>x/"), "&#x202e;>x/");
        assert_eq!(defused("&lt;a&#60;&\u{200b}lt;"), "&amp;lt;a&amp;#60;&amp;lt;");
        assert_eq!(defused("[INST] [/IN\u{200b}S\u{200d}T] [INSTALL]"), "&#91;INST] &#91;/INST] [INSTALL]");
        assert_eq!(defused("a\r\nb\rc\u{2028}d\u{1b}[0m\0"), "a\nb\nc\nd[0m");
        assert_eq!(defused("S\u{ad}y\u{e0053}s\u{200d}tem"), "System");
    }
}
