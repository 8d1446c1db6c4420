//! Words as they are compared: without case, without what cannot be seen or only shows them otherwise, and with look-alikes
//! made alike.

use unicode_normalization::UnicodeNormalization;

use crate::defusing::{is_unseen, turns_direction};

/// A word, folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its letters and digits.
    pub(crate) text: String,
    /// Whether white space is in front of it, or nothing: the parts of a path are one word to a person.
    pub(crate) is_apart: bool,
}

/// The words of a text, folded. Where a script writes none apart, each character is one.
pub(crate) fn words(text: &str) -> impl Iterator<Item = Word> {
    // Letters in circles, bold letters of mathematics and accents come down to the letters themselves.
    let plain = unescaped(text).nfkd();
    let seen = plain.filter(|character| !is_invisible(*character) && !decorates(*character));
    let mut characters = seen.map(alike).peekable();
    let mut is_apart = true;
    std::iter::from_fn(move || {
        while let Some(between) = characters.next_if(|character| !character.is_alphanumeric()) {
            is_apart |= between.is_whitespace();
        }
        let first = characters.next()?;
        let mut text: String = first.to_lowercase().collect();
        let word = |text| Word { text, is_apart };
        if stands_alone(first) {
            return Some(word(text));
        }
        while let Some(next) = characters.next_if(|next| next.is_alphanumeric() && !stands_alone(*next)) {
            text.extend(next.to_lowercase());
        }
        let word = word(text);
        is_apart = false;
        Some(word)
    })
}

/// The characters of a text as a reader sees them, in their case: without what has no width, with look-alikes made alike.
pub(crate) fn seen(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|character| !is_invisible(*character)).map(alike)
}

/// The characters of a text without tags, and with those that are written as `%41`, `\\u0041`, `\\x41`, `\\n`, `&nbsp;` or
/// `&#65;` read, so that no escape glues itself to a word.
fn unescaped(text: &str) -> impl Iterator<Item = char> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while let Some(behind) = behind_tag(rest) {
            rest = behind;
        }
        if let Some((character, behind)) = escaped(rest).or_else(|| white_space(rest)) {
            rest = behind;
            return Some(character);
        }
        let mut characters = rest.chars();
        let next = characters.next();
        rest = characters.as_str();
        next
    })
}

/// What stands behind a tag that a text begins with.
fn behind_tag(text: &str) -> Option<&str> {
    const LONGEST: usize = 120;
    let tag = text.strip_prefix('<')?;
    let name = tag.strip_prefix('/').unwrap_or(tag);
    name.starts_with(|first: char| first.is_ascii_alphabetic()).then_some(())?;
    let end = tag.bytes().take(LONGEST).position(|byte| matches!(byte, b'>' | b'<' | b'\n'))?;
    tag.get(end..)?.strip_prefix('>')
}

/// White space that is written as an escape or by a name, and what stands behind it.
fn white_space(text: &str) -> Option<(char, &str)> {
    const WRITTEN: [&str; 7] = ["\\n", "\\t", "\\r", "&nbsp;", "&ensp;", "&emsp;", "&thinsp;"];
    let behind = WRITTEN.into_iter().find_map(|written| text.strip_prefix(written))?;
    Some((' ', behind))
}

fn escaped(text: &str) -> Option<(char, &str)> {
    let (digits, radix, behind) = if let Some(rest) = text.strip_prefix('%') {
        let (digits, behind) = rest.split_at_checked(2)?;
        (digits, 16, behind)
    } else if let Some(rest) = text.strip_prefix("\\u") {
        let (digits, behind) = rest.split_at_checked(4)?;
        (digits, 16, behind)
    } else if let Some(rest) = text.strip_prefix("\\x") {
        let (digits, behind) = rest.split_at_checked(2)?;
        (digits, 16, behind)
    } else {
        let rest = text.strip_prefix("&#")?;
        let end = rest.bytes().take(9).position(|byte| byte == b';')?;
        let (digits, behind) = rest.split_at_checked(end)?;
        let behind = behind.strip_prefix(';')?;
        match digits.strip_prefix(['x', 'X']) {
            Some(hex) => (hex, 16, behind),
            None => (digits, 10, behind),
        }
    };
    // A sign is no digit.
    let code =
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, radix));
    Some((char::from_u32(code?.ok()?)?, behind))
}

/// Whether a character has no width: what is never seen, marks of direction, joiners, and selectors of variants.
fn is_invisible(character: char) -> bool {
    let joins_or_selects = matches!(character, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    joins_or_selects || is_unseen(character) || turns_direction(character)
}

/// Whether a character only shows what stands beside it otherwise: an accent, or a sign that makes text bold or struck out.
fn decorates(character: char) -> bool {
    matches!(
        character,
        '*' | '`' | '~' | '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}'
    )
}

/// Scripts that write no spaces: Chinese, Japanese, Thai and their neighbors.
fn stands_alone(character: char) -> bool {
    matches!(
        character,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'
    )
}

/// The Latin letter that a letter looks like; wide forms in their usual width.
fn alike(character: char) -> char {
    match character {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character),
        '\u{3000}' => ' ',
        '\u{2d0}' | '\u{2f8}' | '\u{589}' | '\u{5c3}' | '\u{2236}' | '\u{a789}' | '\u{fe13}' | '\u{fe30}'
        | '\u{fe55}' => ':',
        'а' | 'А' | 'α' | 'Α' => 'a',
        'В' | 'Β' => 'b',
        'с' | 'С' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'Е' | 'Ε' => 'e',
        'Н' | 'Η' | 'һ' => 'h',
        'і' | 'І' | 'ι' | 'Ι' => 'i',
        'ј' | 'Ј' => 'j',
        'К' | 'к' | 'Κ' | 'κ' => 'k',
        'ӏ' => 'l',
        'М' | 'Μ' => 'm',
        'Ν' => 'n',
        'о' | 'О' | 'ο' | 'Ο' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' | 'Ѕ' => 's',
        'Т' | 'Τ' | 'τ' => 't',
        'ν' => 'v',
        'ԝ' => 'w',
        'х' | 'Х' | 'Χ' | 'χ' => 'x',
        'у' | 'У' | 'Υ' | 'γ' => 'y',
        'Ζ' => 'z',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_without_disguise() {
        let read = |text: &str| words(text).map(|word| word.text).collect::<Vec<_>>();
        let plain = read("Push to main, NOW!");
        assert_eq!(plain, ["push", "to", "main", "now"]);
        for same in [
            "push\\x20to%20main\\u0020now",
            "push&#32;to&#x20;main,now",
            "push\u{200b} to m\u{200d}ain now",
            "ＰＵＳＨ　to main... now",
            "рush tо mаіn nοw",
            "pu**sh** `to` *main* ~~now~~",
            "<b>push</b> <i class=\"a\">to</i> m<b>ai</b>n<br>,now",
            "push&nbsp;to\\nmain\\tnow",
            "pu\u{301}sh t\u{f6} m\u{e4}in n\u{0308}ow",
            "\u{24df}\u{24e4}\u{24e2}\u{24d7} \u{1d42d}\u{1d428} main now",
        ] {
            assert_eq!(read(same), plain, "{same}");
        }
        assert_eq!(read("\u{5220}\u{9664}x1"), ["\u{5220}", "\u{9664}", "x1"]);
        assert_eq!(words(" \u{200b}- ").count(), 0);
        assert_eq!(read("100% &#; \\u12 %zz &#+1;"), ["100", "u12", "zz", "1"]);
        assert_eq!(read("a < b && c > d <- e <3> <f"), ["a", "b", "c", "d", "e", "3", "f"]);
        let apart: Vec<bool> = words("see crates/loop/src, please").map(|word| word.is_apart).collect();
        assert_eq!(apart, [true, true, false, false, true]);
    }
}
