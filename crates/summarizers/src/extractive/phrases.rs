//! Finds the cue phrases of a statement: all of them, in one pass over its bytes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, packed};

use super::cues::{CUE_TABLE, Cues};
use super::words::is_word_byte;

/// Cue phrases by class, in the notation that [`super::cues`] explains.
pub(crate) type CueTable = &'static [(Cues, &'static [&'static str])];

/// Where a phrase may stand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Anywhere,
    SentenceStart,
    StatementStart,
}

/// How one use of a phrase is judged once its bytes are found.
struct Rule {
    classes: Cues,
    place: Place,
    /// Whether the last word may go on after the phrase.
    open_end: bool,
    /// What must follow after one free word; empty when nothing must.
    after_gap: String,
}

/// The compiled cue table.
struct Phrases {
    automaton: Option<AhoCorasick>,
    /// The rules of each phrase of the automaton.
    rules: Vec<Vec<Rule>>,
}

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(CUE_TABLE));

/// Finds the shortest parts of the phrases that report how something ended.
static REPORTS: LazyLock<Option<packed::Searcher>> =
    LazyLock::new(|| packed::Searcher::new(reports(CUE_TABLE)));

/// Fills `starts` with where in text in ASCII lower case a cue of an error or an outcome may start; elsewhere none
/// does. Most text of tools holds none, and this tells so much faster than looking for all cues.
pub(crate) fn find_reports(lower: &[u8], starts: &mut Vec<usize>) {
    starts.clear();
    match &*REPORTS {
        Some(searcher) => starts.extend(searcher.find_iter(lower).map(|found| found.start())),
        // This processor has no such search: they may start anywhere.
        None => starts.extend(0..lower.len()),
    }
}

/// The phrases of errors and outcomes, without those that hold another one.
fn reports(table: CueTable) -> Vec<String> {
    let wanted = table.iter().filter(|(classes, _)| classes.any(Cues::ERROR.with(Cues::OUTCOME)));
    let notations =
        wanted.flat_map(|(classes, notations)| notations.iter().map(|notation| (*classes, *notation)));
    let mut literals: Vec<String> = notations
        .flat_map(|(classes, notation)| {
            expand(notation).into_iter().map(move |phrase| Rule::parse(&phrase, classes).0)
        })
        .collect();
    literals.sort_unstable_by_key(String::len);
    let mut shortest: Vec<String> = Vec::new();
    for literal in literals {
        if !shortest.iter().any(|part| literal.contains(part.as_str())) {
            shortest.push(literal);
        }
    }
    shortest
}

/// The classes of all cues in a statement, given in ASCII lower case.
pub(crate) fn cues_in(lower: &[u8]) -> Cues {
    let mut found = Cues::NONE;
    each_cue(lower, |classes, _| found = found.with(classes));
    found
}

/// Calls back with the classes and the byte offset of every cue in a statement given in ASCII lower case.
pub(crate) fn each_cue(lower: &[u8], mut seen: impl FnMut(Cues, usize)) {
    let Some(automaton) = &PHRASES.automaton else { return };
    for found in automaton.find_overlapping_iter(lower) {
        let (start, end) = (found.start(), found.end());
        if start > 0 && starts_with_word(lower, start) && is_word_byte(byte_at(lower, start - 1)) {
            continue;
        }
        for rule in PHRASES.rules.get(found.pattern().as_usize()).into_iter().flatten() {
            if rule.holds(lower, start, end) {
                seen(negation_judged(rule.classes, lower, start), start);
            }
        }
    }
}

impl Phrases {
    fn new(table: CueTable) -> Self {
        let mut rules: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
        for (classes, notations) in table {
            for notation in *notations {
                for phrase in expand(notation) {
                    let (literal, rule) = Rule::parse(&phrase, *classes);
                    let known = rules.entry(literal).or_default();
                    match known.iter_mut().find(|other| other.same_place(&rule)) {
                        Some(other) => other.classes = other.classes.with(rule.classes),
                        None => known.push(rule),
                    }
                }
            }
        }
        let (literals, rules): (Vec<_>, Vec<_>) = rules.into_iter().unzip();
        // The table is our own; an automaton that cannot be built would show in every test.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .prefilter(false)
            .build(literals)
            .ok();
        Self { automaton, rules }
    }
}

impl Rule {
    /// The bytes to look for and how to judge them.
    fn parse(phrase: &str, classes: Cues) -> (String, Self) {
        let (place, rest) = match phrase.strip_prefix('^') {
            Some(rest) => (Place::StatementStart, rest),
            None => match phrase.strip_prefix('.') {
                Some(rest) => (Place::SentenceStart, rest),
                None => (Place::Anywhere, phrase),
            },
        };
        let (literal, after_gap) = match rest.split_once('_') {
            Some((literal, after)) => (literal, after),
            None => (rest, ""),
        };
        let (literal, open_end) = match literal.strip_suffix('*') {
            Some(literal) => (literal, true),
            None => (literal, false),
        };
        (literal.to_owned(), Self { classes, place, open_end, after_gap: after_gap.to_owned() })
    }

    fn same_place(&self, other: &Self) -> bool {
        (self.place, self.open_end, &self.after_gap) == (other.place, other.open_end, &other.after_gap)
    }

    fn holds(&self, lower: &[u8], start: usize, end: usize) -> bool {
        let placed = match self.place {
            Place::Anywhere => true,
            Place::SentenceStart => is_sentence_start(lower, start),
            Place::StatementStart => start == 0,
        };
        placed
            && (self.open_end || !ends_with_word(lower, end) || !is_word_byte(byte_at(lower, end)))
            && (self.after_gap.is_empty() || follows_after_word(lower, end, &self.after_gap))
    }
}

/// Takes `do not` for a prohibition, except where a speaker says it of themselves or of a thing.
fn negation_judged(classes: Cues, lower: &[u8], start: usize) -> Cues {
    if classes.any(Cues::NEGATION) && !is_said_of_someone(lower.get(..start).unwrap_or_default()) {
        classes.with(Cues::PROHIBITION)
    } else {
        classes
    }
}

/// Whether one of the last two words is a subject, auxiliaries aside: `I (really) don't`, `it does not`.
fn is_said_of_someone(before: &[u8]) -> bool {
    const AUXILIARIES: [&[u8]; 5] = [b"", b"do", b"does", b"did", b"will"];
    const SUBJECTS: [&[u8]; 10] =
        [b"i", b"you", b"they", b"it", b"that", b"this", b"he", b"she", b"which", b"who"];
    before
        .rsplit(|&byte| byte == b' ')
        .skip_while(|word| AUXILIARIES.contains(word))
        .take(2)
        .take_while(|word| !word.last().is_some_and(|last| b".!?;:,".contains(last)))
        .any(|word| {
            let subject = word.split(|&byte| byte == b'\'').next().unwrap_or_default();
            SUBJECTS.contains(&subject)
        })
}

/// Whether a statement or a sentence inside it starts here.
fn is_sentence_start(lower: &[u8], start: usize) -> bool {
    let before = lower.get(..start).unwrap_or_default();
    match before {
        [] => true,
        [.., end, b' '] => b".!?;".contains(end),
        _ => false,
    }
}

/// Whether `tail` stands after exactly one word. `tail` starts with what separates it from that word.
fn follows_after_word(lower: &[u8], end: usize, tail: &str) -> bool {
    let rest = lower.get(end..).unwrap_or_default();
    let word = rest.iter().take_while(|&&byte| is_word_byte(byte)).count();
    word > 0
        && rest.get(word..).is_some_and(|after| {
            after.starts_with(tail.as_bytes())
                && !after.get(tail.len()).is_some_and(|&byte| is_word_byte(byte))
        })
}

fn starts_with_word(lower: &[u8], start: usize) -> bool {
    is_word_byte(byte_at(lower, start))
}

fn ends_with_word(lower: &[u8], end: usize) -> bool {
    end > 0 && is_word_byte(byte_at(lower, end - 1))
}

/// The byte at an offset; a space beyond the end.
fn byte_at(lower: &[u8], at: usize) -> u8 {
    lower.get(at).copied().unwrap_or(b' ')
}

/// All spellings of a notation: alternatives, digits and both apostrophes.
fn expand(notation: &str) -> Vec<String> {
    let mut spellings = vec![String::new()];
    let mut rest = notation;
    while let Some((literal, group)) = rest.split_once('(') {
        let (alternatives, after) = group.split_once(')').unwrap_or((group, ""));
        spellings = each_followed_by(&spellings, literal, alternatives.split('|'));
        rest = after;
    }
    spellings = each_followed_by(&spellings, rest, [""].into_iter());
    let with_digit = spellings.into_iter().flat_map(|spelling| {
        let digits = if spelling.contains('#') { 0..10 } else { 0..1 };
        digits.map(move |digit| spelling.replace('#', &digit.to_string())).collect::<Vec<_>>()
    });
    with_digit
        .flat_map(|spelling| {
            let typographic = spelling.contains('\'').then(|| spelling.replace('\'', "\u{2019}"));
            std::iter::once(spelling).chain(typographic)
        })
        .collect()
}

fn each_followed_by<'a>(
    spellings: &[String],
    literal: &str,
    alternatives: impl Iterator<Item = &'a str> + Clone,
) -> Vec<String> {
    spellings
        .iter()
        .flat_map(|spelling| {
            alternatives.clone().map(move |alternative| format!("{spelling}{literal}{alternative}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation_expands() {
        assert_eq!(expand("(a|b|)c d"), ["ac d", "bc d", "c d"]);
        assert_eq!(expand("don't"), ["don't", "don\u{2019}t"]);
        assert_eq!(expand("step #").len(), 10);
    }

    fn has(text: &str, class: Cues) -> bool {
        cues_in(text.as_bytes()).any(class)
    }

    #[test]
    fn cues_are_whole_words_unless_open() {
        assert!(has("never push", Cues::PROHIBITION));
        assert!(!has("nevertheless we push", Cues::PROHIBITION));
        assert!(has("this is forbidden", Cues::PROHIBITION));
        assert!(has("don\u{2019}t push", Cues::PROHIBITION));
        assert!(has("(never)", Cues::PROHIBITION));
    }

    #[test]
    fn places_are_respected() {
        assert!(has("no emojis", Cues::PROHIBITION));
        assert!(has("be brief. no emojis", Cues::PROHIBITION));
        assert!(!has("there is no file", Cues::PROHIBITION));
        assert!(has("ok, next", Cues::ACKNOWLEDGEMENT));
        assert!(!has("that is ok", Cues::ACKNOWLEDGEMENT));
    }

    #[test]
    fn what_reports_is_not_passed_over() {
        assert!(reports(CUE_TABLE).iter().any(|phrase| phrase == "error"));
        let mut starts = Vec::new();
        for (classes, notations) in CUE_TABLE {
            for phrase in notations.iter().flat_map(|notation| expand(notation)) {
                let (literal, _) = Rule::parse(&phrase, *classes);
                let reports = has(&literal, Cues::ERROR.with(Cues::OUTCOME));
                find_reports(literal.as_bytes(), &mut starts);
                assert!(!reports || !starts.is_empty(), "{literal}");
            }
        }
        find_reports(b"let queue = self.load(window, 12)?; // panics", &mut starts);
        assert!(starts == [39] || !cfg!(target_arch = "x86_64"));
    }

    #[test]
    fn one_free_word() {
        assert!(has("forget mysql and use postgres", Cues::RESET));
        assert!(!has("forget and forgive", Cues::RESET));
        assert!(has("go with redis instead", Cues::OVERRIDE));
        assert!(!has("go with the redis instead", Cues::OVERRIDE));
    }

    #[test]
    fn negations_of_oneself_forbid_nothing() {
        assert!(!has("i don't have the file", Cues::PROHIBITION));
        assert!(!has("it really does not do that", Cues::PROHIBITION));
        assert!(has("please do not edit it", Cues::PROHIBITION));
        assert!(has("you must not edit it", Cues::PROHIBITION));
        assert!(has("as i said, do not edit it", Cues::PROHIBITION));
    }
}
