//! Shortens a statement for the summary without touching what it says.

use std::borrow::Cow;

use epitome_loop::{Section, is_xml_character, rendered_item_len};

use super::cues::Cues;
use super::phrases::cues_in;
use super::recognize::Content;
use super::statement::{ASSISTANT_MARK, Origin, Statement};
use super::statements::{cut_at_word, sentences};

/// How hard the budget presses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pressure {
    /// What matters fits.
    Normal,
    /// Not even what matters most fits.
    Tight,
}

/// No item is longer than this many bytes.
const LONGEST_ITEM: usize = 300;

/// The statement as an item of a summary: without openers and closing full stop; of a long one only the
/// sentences that carry a cue or a value.
pub(crate) fn shortened(statement: &Statement<'_>, pressure: Pressure) -> String {
    let limit = match pressure {
        Pressure::Normal => 200,
        Pressure::Tight => 110,
    };
    let text = without_emphasis(&statement.text);
    let text = without_opener(&text);
    let text = if text.len() > limit { telling_sentences(text) } else { Cow::Borrowed(text) };
    let text = cut_at_word(&text, LONGEST_ITEM);
    let is_free_of_rules = matches!(statement.section, Section::State | Section::OpenItems);
    let text = if pressure == Pressure::Tight && is_free_of_rules {
        without_articles(text)
    } else {
        text.to_owned()
    };
    let is_one_sentence = !text.contains(". ");
    let text = text.trim_end_matches(|end: char| end == ' ' || is_one_sentence && ".;,".contains(end));
    if statement.origin == Origin::Assistant && statement.section == Section::Constraints {
        return format!("{ASSISTANT_MARK}{text}");
    }
    text.to_owned()
}

/// The longest beginning whose rendered form takes at most `bytes` bytes, cut between words if possible; a
/// dash if nothing of it fits.
pub(crate) fn fit_rendered(text: &str, bytes: usize) -> String {
    if rendered_item_len(text) <= bytes && says_something(text) {
        return text.to_owned();
    }
    let mut rendered = 0;
    let end = text.char_indices().find_map(|(at, character)| {
        rendered += rendered_item_len(character.encode_utf8(&mut [0; 4]));
        (rendered > bytes).then_some(at)
    });
    let cut = cut_at_word(text, end.unwrap_or(text.len())).trim();
    if says_something(cut) { cut.to_owned() } else { "-".to_owned() }
}

/// Whether the rendered text is more than white space.
pub(crate) fn says_something(text: &str) -> bool {
    text.chars().any(|character| is_xml_character(character) && !character.is_whitespace())
}

/// Words that open a statement and say nothing about it.
const OPENERS: [&str; 15] = [
    "quick update",
    "update",
    "note",
    "reminder",
    "fyi",
    "okay",
    "ok",
    "alright",
    "so",
    "also",
    "please",
    "well",
    "hey",
    "hi",
    "right",
];

fn without_opener(text: &str) -> &str {
    let rest = OPENERS.iter().find_map(|opener| {
        let (head, rest) = text.split_at_checked(opener.len())?;
        let rest = head.eq_ignore_ascii_case(opener).then_some(rest)?;
        let rest = rest.strip_prefix([':', ',', '!', '.']).unwrap_or(rest);
        rest.strip_prefix(' ').map(str::trim_start).filter(|rest| !rest.is_empty())
    });
    rest.unwrap_or(text)
}

/// The text without the marks of bold type; between word characters two stars are an operator.
fn without_emphasis(text: &str) -> Cow<'_, str> {
    if !text.contains("**") {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for (at, piece) in text.split("**").enumerate() {
        let joins_words = plain.ends_with(char::is_alphanumeric) && piece.starts_with(char::is_alphanumeric);
        if at > 0 && joins_words {
            plain.push_str("**");
        }
        plain.push_str(piece);
    }
    Cow::Owned(plain)
}

/// The sentences that carry a cue or a value, or else the first.
fn telling_sentences(text: &str) -> Cow<'_, str> {
    let all = sentences(text);
    let Some(&first) = all.first() else { return Cow::Borrowed(text) };
    if all.len() < 2 {
        return Cow::Borrowed(text);
    }
    let mut content = Content::default();
    let telling: Vec<&str> =
        all.iter().copied().filter(|sentence| is_telling(sentence, &mut content)).collect();
    if telling.is_empty() { Cow::Borrowed(first) } else { Cow::Owned(telling.join(" ")) }
}

fn is_telling(sentence: &str, content: &mut Content) -> bool {
    const TELLING: Cues =
        Cues::PROHIBITION.with(Cues::SCOPE).with(Cues::OBLIGATION).with(Cues::DECISION).with(Cues::OPEN);
    let lower = sentence.to_ascii_lowercase();
    if cues_in(lower.as_bytes()).any(TELLING) {
        return true;
    }
    content.read(sentence, lower.as_bytes());
    !content.values.is_empty()
}

fn without_articles(text: &str) -> String {
    let is_article =
        |word: &&str| ["the", "a", "an"].iter().any(|article| word.eq_ignore_ascii_case(article));
    let mut words = text.split(' ').peekable();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if !(is_article(&word) && words.peek().is_some()) {
            kept.push(word);
        }
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openers_go() {
        assert_eq!(without_opener("Please, use tabs"), "use tabs");
        assert_eq!(without_opener("Quick update: it moved"), "it moved");
        assert_eq!(without_opener("Some text"), "Some text");
        assert_eq!(without_opener("ok"), "ok");
    }

    #[test]
    fn emphasis_goes_but_operators_stay() {
        assert_eq!(without_emphasis("**Budget:** 5 **now**"), "Budget: 5 now");
        assert_eq!(without_emphasis("2**3"), "2**3");
    }

    #[test]
    fn articles_go_but_the_last_word_stays() {
        assert_eq!(without_articles("the tests of a module pass the"), "tests of module pass the");
    }

    #[test]
    fn fitting_counts_the_rendered_form() {
        assert_eq!(fit_rendered("a & b c", 7), "a &");
        assert_eq!(fit_rendered("a & b c", 11), "a & b c");
        assert_eq!(fit_rendered("&&&", 4), "-");
        assert_eq!(fit_rendered("éé", 3), "é");
    }
}
