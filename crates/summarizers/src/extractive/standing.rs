//! What standing rules are about: a rule goes only when a later statement gives the same thing another value.
//!
//! Two rules that share no more than an opening (`Next task.`, `Part 2:`, `Thanks a lot.`) or a general verb
//! (`always use`) are two rules, whatever values stand in them. And of a line that states more than one thing,
//! the rules stay when another part of it no longer holds.

use std::cell::OnceCell;

use epitome_loop::Section;

use super::cues::Cues;
use super::phrases::{cues_in, each_cue};
use super::recognize::Content;
use super::statement::{Statement, shared};
use super::statements::{count_words, sentences_apart};
use super::values::{Value, ValueKind, ValueKinds};
use super::words::{Key, Known, is_general, is_light, is_scaffold, key, known};

/// The words by which a sentence shows that it states a rule.
const RULE: Cues = Cues::PROHIBITION.with(Cues::SCOPE).with(Cues::OBLIGATION);

/// The signs that may end a sentence inside a statement.
const ENDS_SENTENCE: [char; 7] = ['.', '!', '?', ';', '。', '！', '？'];

/// Values of which a rule has one at a time: another one takes its place.
const SINGLE: ValueKinds = ValueKinds::of(&[
    ValueKind::Money,
    ValueKind::Date,
    ValueKind::Ratio,
    ValueKind::TimeZone,
    ValueKind::Weekday,
    ValueKind::Language,
    ValueKind::Style,
    ValueKind::Name,
    ValueKind::Proper,
    ValueKind::Number,
]);

/// Values that are the measure of a prohibition. Any other value is the thing that is forbidden, and to forbid
/// one thing does not allow another.
const MEASURES: ValueKinds =
    ValueKinds::of(&[ValueKind::Money, ValueKind::Date, ValueKind::Ratio, ValueKind::Number]);

/// Whether a statement of somebody with authority holds a standing rule: something forbidden, something that is
/// always or only so, a preference.
pub(crate) fn carries_rule(statement: &Statement<'_>) -> bool {
    statement.origin.has_authority() && (statement.section == Section::Constraints || statement.has(RULE))
}

/// Whether a clause of the statement opens with a rule for more than one task: `...; do not push`, `always ...`.
pub(crate) fn opens_rule(statement: &Statement<'_>) -> bool {
    const STANDING: Cues = Cues::PROHIBITION.with(Cues::SESSION);
    const JOINING: [&str; 7] = ["and", "but", "please", "also", "then", "so", "just"];
    if !statement.has(STANDING) {
        return false;
    }
    let lower = statement.text.to_ascii_lowercase();
    let mut opens = false;
    each_cue(lower.as_bytes(), |cues, start| {
        let before = lower.get(..start).unwrap_or_default().trim_end();
        let word = before.rsplit(' ').next().unwrap_or_default();
        opens |= cues.any(STANDING)
            && (before.is_empty()
                || before.ends_with([',', ';', ':', '.', '!', '?', '-'])
                || JOINING.contains(&word));
    });
    opens
}

/// What is known about the topics of statements, by index. Each is looked at once, and only if it is asked for.
pub(crate) struct Topics(Vec<OnceCell<Topic>>);

struct Topic {
    /// The words, sorted, that say what its values are values of, without openers and general verbs.
    words: Box<[Key]>,
    /// Whether it says that something changes. `Now` and `new` alone do not: they open new rules as well.
    changes: bool,
}

impl Topics {
    /// Of so many statements.
    pub(crate) fn new(statements: usize) -> Self {
        Self((0..statements).map(|_| OnceCell::new()).collect())
    }

    /// Whether the statement `new` is a later version of the rule `old`: it is about the same thing and has
    /// another value of the same kind.
    pub(crate) fn is_version_of_rule(&self, all: &[Statement<'_>], old: usize, new: usize) -> bool {
        let (Some(before), Some(after)) = (all.get(old), all.get(new)) else { return false };
        let has = |value: &Value| after.values.iter().any(|other| other.key == value.key);
        let gone = || before.values.iter().filter(|value| !has(value));
        let is_replaced = |gone: &Value| after.values.iter().any(|value| value.kind == gone.kind);
        let single = if before.prohibits() { MEASURES } else { SINGLE };
        let may_be_single = after.has(Cues::UPDATE) || gone().all(|value| single.has(value.kind));
        let says_topic = |word: &Key| !is_scaffold(*word) && !is_general(*word);
        let may_be_same = || shared(&before.words, &after.words).any(|word| says_topic(&word));
        if gone().next().is_none() || !may_be_single || !gone().all(is_replaced) || !may_be_same() {
            return false;
        }
        let (Some(topic), Some(later)) = (self.of(all, old), self.of(all, new)) else { return false };
        let is_same = if after.has(Cues::UPDATE) {
            let heavy = |words: &[Key]| -> Vec<Key> {
                words.iter().copied().filter(|word| !is_light(*word)).collect()
            };
            shared(&topic.words, &later.words).next().is_some() && heavy(&topic.words) == heavy(&later.words)
        } else {
            !topic.words.is_empty() && topic.words == later.words
        };
        is_same && (later.changes || gone().all(|value| single.has(value.kind)))
    }

    /// Looks at a statement again when it is asked for: its words have changed.
    pub(crate) fn forget(&mut self, at: usize) {
        if let Some(topic) = self.0.get_mut(at) {
            topic.take();
        }
    }

    fn of(&self, all: &[Statement<'_>], at: usize) -> Option<&Topic> {
        let statement = all.get(at)?;
        self.0.get(at).map(|topic| topic.get_or_init(|| Topic::of(statement)))
    }
}

impl Topic {
    fn of(statement: &Statement<'_>) -> Self {
        let mut words = words_around(statement, |_| true);
        words.retain(|word| !is_scaffold(*word) && !is_general(*word));
        let lower = statement.text.to_ascii_lowercase();
        let mut changes = false;
        each_cue(lower.as_bytes(), |cues, start| {
            let is_vague =
                lower.get(start..).is_some_and(|cue| cue.starts_with("now") || cue.starts_with("new"));
            changes |= cues.any(Cues::UPDATE) && !is_vague;
        });
        Self { words: words.into(), changes }
    }
}

/// The content words, sorted, of those sentences of a statement that hold one of the wanted values; of all of
/// it, if such a sentence refers to another one. A short clause before a comma or an opener before a colon says
/// nothing about what follows.
pub(crate) fn words_around(statement: &Statement<'_>, is_wanted: impl Fn(&Value) -> bool) -> Vec<Key> {
    let body = statement.text.trim_end_matches(['.', '!', ';']);
    if !body.contains(ENDS_SENTENCE) && !body.contains([',', ':']) {
        return if statement.values.iter().any(is_wanted) { statement.words.to_vec() } else { Vec::new() };
    }
    let clauses = |sentence| clauses_of(sentence, &["; ", ", but ", ", and "]);
    let sentences: Vec<&str> = sentences_apart(&statement.text).into_iter().flat_map(clauses).collect();
    let mut content = Content::default();
    let mut words = Vec::new();
    for sentence in &sentences {
        let sentence = without_opening(sentence);
        let lower = sentence.to_ascii_lowercase();
        content.read(sentence, lower.as_bytes());
        let holds_value = content
            .values
            .iter()
            .any(|value| is_wanted(value) && statement.values.iter().any(|wanted| wanted.key == value.key));
        if holds_value {
            if sentences.len() > 1 && refers_back(&lower) {
                return statement.words.to_vec();
            }
            words.extend_from_slice(&content.words);
        }
    }
    words.sort_unstable();
    words.dedup();
    words
}

fn clauses_of<'t>(sentence: &'t str, joints: &[&str]) -> Vec<&'t str> {
    joints.iter().fold(vec![sentence], |clauses, joint| {
        clauses.into_iter().flat_map(|clause| clause.split(joint)).collect()
    })
}

/// What a statement goes on with after first sentences and clauses of a few words that only lead over to it:
/// `Great.`, `Thanks a lot,`, `Next task:`.
pub(crate) fn after_openings(text: &str) -> &str {
    /// Openings are short; what is longer is not looked through.
    const LONGEST: usize = 40;
    const MOST_WORDS: usize = 4;
    let mut rest = text;
    while let Some(end) = opening_end(rest.as_bytes().get(..LONGEST).unwrap_or(rest.as_bytes())) {
        let Some((opening, after)) = rest.split_at_checked(end) else { break };
        let Some(after) = after.get(1..).filter(|after| after.starts_with(' ')) else { break };
        let leads_over = || {
            let lower = opening.to_ascii_lowercase();
            lower.split_ascii_whitespace().any(|word| is_scaffold(key(word.as_bytes())))
                && !first_word_of(opening).any(Known::IMPERATIVE)
        };
        if count_words(opening) > MOST_WORDS || !leads_over() {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

fn opening_end(bytes: &[u8]) -> Option<usize> {
    let end = memchr::memchr3(b'.', b',', b':', bytes);
    memchr::memchr(b'!', end.and_then(|end| bytes.get(..end)).unwrap_or(bytes)).or(end)
}

/// What the first word of a text is known for that is no opener such as `please`.
pub(crate) fn first_word_of(text: &str) -> Known {
    let words = text.split(|character: char| !character.is_alphanumeric() && character != '\'');
    let mut known_words = words
        .filter(|word| !word.is_empty())
        .take(3)
        .map(|word| known(key(word.to_ascii_lowercase().as_bytes())));
    known_words.find(|known| !known.any(Known::OPENER)).unwrap_or_default()
}

/// The sentence without a first clause of at most four words that ends with a comma, or with a colon if it does
/// nothing but count tasks: `Thanks a lot, ...`, `Next part 1: ...`.
fn without_opening(sentence: &str) -> &str {
    const LONGEST: usize = 4;
    let Some((opening, rest)) = sentence.split_once([',', ':']) else { return sentence };
    let ends_with_colon = sentence.get(opening.len()..).is_some_and(|rest| rest.starts_with(':'));
    let lower = opening.to_ascii_lowercase();
    let mut words = lower.split_ascii_whitespace();
    let counts = |word: &str| {
        let word = word.as_bytes();
        word.iter().all(u8::is_ascii_digit) || known(key(word)).any(Known::STOP) || is_scaffold(key(word))
    };
    if words.clone().count() <= LONGEST && rest.starts_with(' ') && (!ends_with_colon || words.all(counts)) {
        rest.trim_start()
    } else {
        sentence
    }
}

/// Whether a sentence, in lower case, means something that another sentence names.
fn refers_back(lower: &str) -> bool {
    const PRONOUNS: [&str; 8] = ["it", "its", "that", "this", "them", "these", "those", "they"];
    lower.split(|character: char| !character.is_alphanumeric()).any(|word| PRONOUNS.contains(&word))
}

/// The sentences of a statement's text that show by their words that they state a rule; all of it if none does.
pub(crate) fn rule_sentences(text: &str) -> Vec<&str> {
    let sentences = sentences_apart(text);
    let is_rule = |sentence: &&str| cues_in(sentence.to_ascii_lowercase().as_bytes()).any(RULE);
    let rules: Vec<&str> = sentences.into_iter().filter(is_rule).collect();
    if rules.is_empty() { vec![text] } else { rules }
}

/// What is left of a statement when the sentences go that hold what no longer holds: its other rules, if they
/// stand for themselves and `heir`, which takes the statement's place, does not repeat them.
pub(crate) fn rules_beside(
    statement: &Statement<'_>,
    heir: &str,
    is_void: impl Fn(&str, &[Value]) -> bool,
) -> Option<String> {
    let body = statement.text.trim_end_matches(['.', '!', '?', ';']);
    if !statement.origin.has_authority() || !statement.has(RULE) || !body.contains(ENDS_SENTENCE) {
        return None;
    }
    let sentences = sentences_apart(&statement.text);
    if sentences.len() < 2 {
        return None;
    }
    let mut content = Content::default();
    let mut stays = |sentence: &&str| {
        let lower = sentence.to_ascii_lowercase();
        let cues = cues_in(lower.as_bytes());
        if !cues.any(RULE) || refers_back(&lower) || heir.contains(*sentence) {
            return false;
        }
        content.read(sentence, lower.as_bytes());
        content.words.iter().any(|word| !is_light(*word)) && !is_void(sentence, &content.values)
    };
    let kept: Vec<&str> = sentences.into_iter().filter(|sentence| stays(sentence)).collect();
    (!kept.is_empty()).then(|| kept.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_over_is_told_from_what_is_said() {
        for (text, rest) in [
            ("Great. Keep it small.", "Keep it small."),
            ("Thanks a lot, use tabs", "use tabs"),
            ("OK, good. Next task: use tabs", "use tabs"),
            ("Next part 2. Use tabs", "Use tabs"),
            ("Port part 2. Use tabs", "Port part 2. Use tabs"),
            ("Use tabs, please", "Use tabs, please"),
            ("Next.", "Next."),
            ("step 1.5 is done", "step 1.5 is done"),
        ] {
            assert_eq!(after_openings(text), rest);
        }
    }

    #[test]
    fn openings_go_but_labels_that_name_a_topic_stay() {
        for (sentence, rest) in [
            ("Thanks a lot, always use tabs", "always use tabs"),
            ("Next part 1: always use tabs", "always use tabs"),
            ("Budget: at most $500", "Budget: at most $500"),
            ("The rotation is done: never reveal it", "The rotation is done: never reveal it"),
            ("Whatever else you may do today, use tabs", "Whatever else you may do today, use tabs"),
            ("at 12:30", "at 12:30"),
        ] {
            assert_eq!(without_opening(sentence), rest);
        }
    }
}
