//! What kind of content a text is, told from its bytes.

use std::fmt;

use crate::byte_pairs::{ByteClass as C, BytePairs};

/// What kind of content a text is, as far as the size of its tokens goes.
///
/// The class is told from the bytes alone, so a table of figures counts as [`ContentClass::Log`] whoever made
/// it. It decides by which row of a fit a text is sized and which band of error is stated for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContentClass {
    /// Sentences. They cannot be told from those of another language of plain Latin letters, such as Dutch or
    /// Swahili; the bands that are stated for prose are those of English.
    Prose,
    /// Source code, markup, configuration.
    Code,
    /// JSON and what is as full of quotes: arguments of tools.
    Json,
    /// Output of tools: listings, paths, figures, logs.
    Log,
    /// Base64, hexadecimal figures and other text without words.
    Sealed,
    /// Languages other than English that show it by their letters: accents, Cyrillic, Chinese.
    OtherLanguage,
    /// Blanks and line breaks with hardly anything between them.
    Blank,
}

impl ContentClass {
    /// Every class, in the order of the tables.
    pub const ALL: [Self; 7] =
        [Self::Prose, Self::Code, Self::Json, Self::Log, Self::Sealed, Self::OtherLanguage, Self::Blank];

    /// Tells the class of a text in one pass.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::of_pairs(&BytePairs::of(text))
    }

    /// The stable name used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prose => "prose",
            Self::Code => "code",
            Self::Json => "json",
            Self::Log => "log",
            Self::Sealed => "sealed",
            Self::OtherLanguage => "other_language",
            Self::Blank => "blank",
        }
    }

    /// The rules, first match first. The figures were chosen on half of the texts that the shares were fitted
    /// on; a text near an edge is sized much the same by either row.
    pub(crate) fn of_pairs(pairs: &BytePairs) -> Self {
        let bytes = pairs.bytes();
        let percent = |part: u64| part.saturating_mul(100).checked_div(bytes).unwrap_or(0);
        let blank = pairs.of_class(C::Space) + pairs.of_class(C::Break);
        // How often the kind of letter changes without a word ending: rare in words, common in base64.
        let mixed = [
            (C::Lower, C::Upper),
            (C::Lower, C::Digit),
            (C::Upper, C::Digit),
            (C::Digit, C::Lower),
            (C::Digit, C::Upper),
        ]
        .into_iter()
        .map(|(first, second)| pairs.count(first, second))
        .sum::<u64>();
        let letters = 2 * (pairs.of_class(C::Latin) + pairs.of_class(C::Lead2))
            + 3 * (pairs.of_class(C::Indic) + pairs.of_class(C::Lead3));
        if percent(blank) >= 80 {
            return Self::Blank;
        }
        if percent(letters) >= 2 && percent(mixed) < 10 {
            return Self::OtherLanguage;
        }
        if percent(mixed) >= 18 && percent(blank) < 6 {
            return Self::Sealed;
        }
        if percent(pairs.of_class(C::Quote)) >= 6 {
            return Self::Json;
        }
        let words = [C::Space, C::Break]
            .into_iter()
            .map(|before| pairs.count(before, C::Lower) + pairs.count(before, C::Upper))
            .sum::<u64>();
        let odd_words = pairs.glued_words() + pairs.humps();
        let digits = pairs.of_class(C::Digit);
        let marks = pairs.of_class(C::Mark) + pairs.of_class(C::Quote) + digits;
        if percent(marks) <= 10 && 4 * odd_words <= words {
            Self::Prose
        } else if percent(digits) >= 8 || 2 * words < odd_words {
            Self::Log
        } else {
            Self::Code
        }
    }
}

impl fmt::Display for ContentClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_told() {
        let samples = [
            ("The committee agreed that the proposal should be revised before Monday. ", ContentClass::Prose),
            (
                "    let total = items.iter().map(|item| item.price * item.count).sum::<u64>();\n",
                ContentClass::Code,
            ),
            ("{\"id\":4711,\"name\":\"billing\",\"tags\":[\"a\",\"b\"],\"ok\":true},\n", ContentClass::Json),
            (
                "2026-11-30T12:24:11.123Z ERROR [worker-3] connection to 10.0.12.7:5432 refused\n",
                ContentClass::Log,
            ),
            ("crates/counters/src/content_class.rs\ncrates/counters/src/lib.rs\n", ContentClass::Log),
            ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", ContentClass::Sealed),
            ("iVBORw0KGgoAAAANSUhEUgAAAZAAAAEtCAYAAADRbBB5AAAgAElEQVR4nOy9eZQd", ContentClass::Sealed),
            ("我们决定保留这个接口，因为下游的服务依赖它。", ContentClass::OtherLanguage),
            ("Программа завершилась с ошибкой, проверьте журнал. ", ContentClass::OtherLanguage),
            ("Die Größenänderung wurde überprüft, sie können zurückgestellt werden. ", {
                ContentClass::OtherLanguage
            }),
            ("\n        \n\t\t\t\n   x", ContentClass::Blank),
        ];
        for (sample, class) in samples {
            assert_eq!(ContentClass::of(&sample.repeat(10)), class, "{sample}");
        }
        assert_eq!(ContentClass::of(""), ContentClass::Prose);
    }

    #[test]
    fn names_are_distinct_and_in_order() {
        let names: std::collections::BTreeSet<_> =
            ContentClass::ALL.iter().map(|class| class.as_str()).collect();
        assert_eq!(names.len(), ContentClass::ALL.len());
        assert!(ContentClass::ALL.iter().enumerate().all(|(at, class)| *class as usize == at));
    }
}
