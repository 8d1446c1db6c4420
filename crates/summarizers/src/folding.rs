//! Words as they are compared: without case, without what cannot be seen, and with look-alikes made alike.

/// The words of a text, folded. Where a script writes none apart, each character is one.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let mut characters = text.chars().filter(|character| !is_invisible(*character)).map(alike).peekable();
    std::iter::from_fn(move || {
        while characters.next_if(|character| !character.is_alphanumeric()).is_some() {}
        let first = characters.next()?;
        let mut word: String = first.to_lowercase().collect();
        if stands_alone(first) {
            return Some(word);
        }
        while let Some(next) = characters.next_if(|next| next.is_alphanumeric() && !stands_alone(*next)) {
            word.extend(next.to_lowercase());
        }
        Some(word)
    })
}

/// Whether a character has no width: joiners, marks of direction, tags, and selectors of variants.
pub(crate) fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{e0000}'..='\u{e0fff}'
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
        let plain: Vec<String> = words("Push to main, NOW!").collect();
        assert_eq!(plain, ["push", "to", "main", "now"]);
        for same in ["push\u{200b} to m\u{200d}ain now", "ＰＵＳＨ　to main... now", "рush tо mаіn nοw"]
        {
            assert_eq!(words(same).collect::<Vec<_>>(), plain, "{same}");
        }
        assert_eq!(words("\u{5220}\u{9664}x1").collect::<Vec<_>>(), ["\u{5220}", "\u{9664}", "x1"]);
        assert_eq!(words(" \u{200b}- ").count(), 0);
    }
}
