//! Retires what later statements made void: two notes that both look current are the worst kind of summary.
//!
//! Only the user, the host and what a previous summary took over from them can retire each other's
//! statements. Two prohibitions in plain words never do, however alike they are: losing one is worse than
//! keeping one too many. Any other rule goes only when the same thing gets another value; [`super::standing`]
//! says when that is so.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use epitome_loop::Section;

use super::attributes::{ATTRIBUTES, Attribute};
use super::cues::Cues;
use super::fixed_point::{Score, rarity};
use super::mentions::{Mention, sorted};
use super::phrases::cues_in;
use super::reading::Reading;
use super::recognize::Content;
use super::scoring::assignment_key;
use super::standing::{Topics, carries_rule, rules_beside};
use super::statement::{Origin, Place, Statement, shared};
use super::values::{Value, ValueKind, ValueKinds};
use super::words::{Key, KeyMap, KeySet, is_light, is_scaffold, key, stem_key};

/// So many of the latest statements with a word, or of an attribute, are compared with a new one.
const LOOK_BACK: usize = 64;
/// So many of the latest statements with a word are compared in the generic rule, which is the loosest.
const GENERIC_LOOK_BACK: usize = 8;

/// A correction is worth so much less than what it corrects, unless its own words make it worth more.
const CORRECTION_DISCOUNT: Score = 1500;

/// Rules that stay of a statement that goes are worth so much at least.
const RULE_LEFT: Score = 4000;

/// What shows that a sentence is part of a plan.
const PLAN: Cues = Cues::DECISION.with(Cues::NEW_GOAL);

/// Stretches of work that the assistant gave up, by message index.
pub(crate) type AbandonedSpans = Vec<std::ops::Range<usize>>;

/// What no longer holds, beside the retired statements themselves.
#[derive(Default)]
pub(crate) struct Void {
    /// Stretches of work that the assistant gave up.
    pub(crate) abandoned: AbandonedSpans,
    /// Values that stand in retired statements of the user and in no other.
    pub(crate) values: KeySet,
}

/// Retires superseded statements. Returns what else no longer holds.
pub(crate) fn retire_superseded(reading: &mut Reading<'_>) -> Void {
    let mut rules = Rules {
        weights: Weights { frequency: &reading.frequency, statements: reading.statement_count },
        all: &mut reading.statements,
        with_word: KeyMap::default(),
        abandoned: Vec::new(),
        rules_left: Vec::new(),
    };
    rules.retractions();
    rules.take_up_rules_left();
    rules.assignments();
    rules.versions();
    let values = rules.void_values();
    rules.repetitions();
    Void { abandoned: rules.abandoned, values }
}

/// How much words say.
struct Weights<'r> {
    frequency: &'r KeyMap<u32>,
    statements: usize,
}

impl Weights<'_> {
    fn holding(&self, word: Key) -> u32 {
        self.frequency.get(&word).copied().unwrap_or(1)
    }

    fn of(&self, words: impl IntoIterator<Item = Key>) -> u64 {
        words.into_iter().map(|word| u64::from(rarity(self.holding(word), self.statements))).sum()
    }

    /// Whether the words that `part` shares with `whole` make up half of what `whole` says, two words at least.
    fn is_mostly_about(&self, whole: &[Key], part: &[Key]) -> bool {
        shared(whole, part).take(2).count() == 2
            && 2 * self.of(shared(whole, part)) >= self.of(whole.iter().copied())
    }
}

struct Rules<'r, 't> {
    weights: Weights<'r>,
    all: &'r mut Vec<Statement<'t>>,
    /// The statements with each word so far, by index.
    with_word: KeyMap<Vec<usize>>,
    abandoned: AbandonedSpans,
    /// Rules that stood beside plans that were taken back.
    rules_left: Vec<Statement<'t>>,
}

impl Rules<'_, '_> {
    fn is_live(&self, at: usize) -> bool {
        self.all.get(at).is_some_and(|statement| !statement.is_retired && statement.score > 0)
    }

    /// A user who takes back a plan retires it and what echoes it; an assistant who gives up a line of work
    /// retires the work.
    fn retractions(&mut self) {
        let mut plans: Vec<usize> = Vec::new();
        for at in 0..self.all.len() {
            if !self.is_live(at) {
                continue;
            }
            let this = &self.all[at];
            let takes_back = this.origin == Origin::User && this.overrides() && !this.is_question();
            if takes_back {
                self.take_back(at, &plans);
                plans = vec![at];
            } else if this.origin == Origin::Assistant && this.has(Cues::ABANDON) {
                self.give_up(at);
            } else if is_plan(this) {
                plans.push(at);
            }
            for &word in &self.all[at].words {
                self.with_word.entry(word).or_default().push(at);
            }
        }
        let last_plan = plans.into_iter().rev().find(|&at| {
            let plan = &self.all[at];
            plan.origin == Origin::User && plan.section == Section::Decisions && !plan.is_retired
        });
        if let Some(last_plan) = last_plan {
            self.all[last_plan].score += 1000;
        }
    }

    fn take_up_rules_left(&mut self) {
        if !self.rules_left.is_empty() {
            self.all.append(&mut self.rules_left);
            self.all.sort_by_key(|statement| statement.place);
        }
    }

    fn take_back(&mut self, at: usize, plans: &[usize]) {
        let open: Vec<usize> = plans.iter().copied().filter(|&plan| !self.all[plan].is_retired).collect();
        let this = &self.all[at];
        let mut hit: Vec<usize> = if this.has(Cues::RESET) {
            open.clone()
        } else {
            let about = |&plan: &usize| self.weights.is_mostly_about(&self.all[plan].words, &this.words);
            open.iter().copied().filter(about).collect()
        };
        if hit.is_empty()
            && let Some(&last) = open.last()
        {
            // `Scratch that` names nothing: it means the user's latest plan and whatever restates it.
            let by_user = |plan: &&usize| self.all[**plan].origin.has_authority();
            let base = open.iter().rev().find(by_user).copied().unwrap_or(last);
            let restates = |&plan: &usize| {
                let words = &self.all[plan].words;
                let common = shared(words, &self.all[base].words).count();
                plan == base || !words.is_empty() && 2 * common >= words.len()
            };
            hit = open.iter().copied().filter(restates).collect();
        }
        let first = hit.iter().map(|&plan| self.all[plan].place).min();
        let (mut dead_words, mut kept): (Vec<Key>, Vec<Key>) = (Vec::new(), self.all[at].words.to_vec());
        for &plan in &hit {
            let decides =
                |sentence: &str, _: &[Value]| cues_in(sentence.to_ascii_lowercase().as_bytes()).any(PLAN);
            let rest = rules_beside(&self.all[plan], &self.all[at].text, decides);
            // The plan stays as it was said: the goal may be found in it.
            self.all[plan].is_retired = true;
            dead_words.extend_from_slice(&self.all[plan].words);
            if let Some(rest) = rest {
                let mut rule = self.all[plan].clone();
                rule.is_retired = false;
                become_rule(&mut rule, rest);
                kept.extend_from_slice(&rule.words);
                self.rules_left.push(rule);
            }
        }
        dead_words = sorted(dead_words);
        kept.sort_unstable();
        dead_words.retain(|word| kept.binary_search(word).is_err());
        if let Some(first) = first {
            self.retire_echoes(at, first, &dead_words);
        }
        let this = &mut self.all[at];
        if !(this.section == Section::Constraints && this.prohibits()) {
            this.section = Section::Decisions;
        }
        this.score = this.score.max(4000) + 1500;
    }

    /// Retires earlier statements that are mostly about a plan that was taken back. Rules stay, and so does
    /// what the user said before the plan: that is what the plan was for.
    fn retire_echoes(&mut self, at: usize, plan: Place, dead_words: &[Key]) {
        let mut candidates: Vec<usize> = Vec::new();
        for word in dead_words {
            let holders = self.with_word.get(word).map_or(&[][..], Vec::as_slice);
            candidates.extend(holders.iter().rev().take(LOOK_BACK));
        }
        candidates.sort_unstable();
        candidates.dedup();
        let message = self.all[at].place.message;
        for candidate in candidates {
            let echo = &self.all[candidate];
            let is_before = echo.origin.has_authority() && echo.place < plan;
            if echo.place.message < message
                && !is_before
                && !echo.prohibits()
                && self.weights.is_mostly_about(&echo.words, dead_words)
            {
                self.all[candidate].is_retired = true;
            }
        }
    }

    /// Retires the work between the assistant's decision for something and its giving it up.
    fn give_up(&mut self, at: usize) {
        let abandon = stem_key(b"abandoned");
        let named: Vec<Key> = self.all[at].words.iter().copied().filter(|&word| word != abandon).collect();
        let Some(&rarest) = named.iter().min_by_key(|&&word| (self.weights.holding(word), word)) else {
            return;
        };
        let holders = self.with_word.get(&rarest).map_or(&[][..], Vec::as_slice);
        let base = holders.iter().rev().take(LOOK_BACK).copied().find(|&base| {
            let before = &self.all[base];
            let common = shared(&before.words, &named).count();
            let union = before.words.len() + named.len() - common;
            before.origin == Origin::Assistant
                && before.place.message < self.all[at].place.message
                && !before.is_retired
                && 10 * common >= 6 * union
        });
        let Some(base) = base else { return };
        let (first, last) = (self.all[base].place.message, self.all[at].place.message);
        let from = self.all.partition_point(|statement| statement.place.message < first);
        for statement in
            self.all.iter_mut().skip(from).take_while(|statement| statement.place.message <= last)
        {
            if matches!(statement.origin, Origin::Assistant | Origin::Tool | Origin::Pasted) {
                statement.is_retired = true;
            }
        }
        // A place counts messages from one.
        self.abandoned.push((first as usize).saturating_sub(1)..last as usize);
    }

    /// A later `key = value` retires the earlier one with the same key.
    fn assignments(&mut self) {
        let mut latest: HashMap<String, usize> = HashMap::new();
        for at in 0..self.all.len() {
            let this = &self.all[at];
            if this.is_retired || matches!(this.origin, Origin::Tool | Origin::Pasted) {
                continue;
            }
            let Some(name) = assignment_key(&this.text) else { continue };
            if let Some(earlier) = latest.insert(name.to_ascii_lowercase(), at)
                && self.all[earlier].text != self.all[at].text
                && (may_replace(this.origin, self.all[earlier].origin) || !carries_rule(&self.all[earlier]))
            {
                self.retire(earlier, at, |sentence, _| assignment_key(sentence).is_some());
            }
        }
    }

    /// The same statement with another value, the same attribute with another value, and the same topic with
    /// another value: the later one holds.
    fn versions(&mut self) {
        let mut by_words: HashMap<Box<[Key]>, usize> = HashMap::new();
        let mut by_attribute: [Vec<Mention>; ATTRIBUTES.len()] = Default::default();
        let mut by_word: KeyMap<Vec<usize>> = KeyMap::default();
        let mut topics = Topics::new(self.all.len());
        for at in 0..self.all.len() {
            let this = &self.all[at];
            if !self.is_live(at) || matches!(this.origin, Origin::Tool | Origin::Pasted) || this.is_question()
            {
                continue;
            }
            if this.words.len() >= 2 && !this.values.is_empty() {
                let earlier = by_words.insert(this.words.clone(), at);
                if let Some(earlier) = earlier
                    && may_replace(this.origin, self.all[earlier].origin)
                    && self.all[earlier].words == this.words
                    && value_keys(&self.all[earlier].values) != value_keys(&this.values)
                    && self.is_version(&topics, earlier, at)
                {
                    self.replace(&mut topics, earlier, at, &[]);
                }
            }
            if !self.all[at].origin.has_authority() {
                continue;
            }
            for (attribute, mentions) in ATTRIBUTES.iter().zip(&mut by_attribute) {
                if let Some(mention) = Mention::find(attribute, &self.all[at], at) {
                    self.replace_mentions(&mut topics, attribute, &mention, mentions);
                    mentions.push(mention);
                }
            }
            self.replace_generic(&mut topics, at, &mut by_word);
        }
    }

    /// Whether two statements with the same words are versions of one: they share more than an opening.
    fn is_version(&self, topics: &Topics, old: usize, new: usize) -> bool {
        if carries_rule(&self.all[old]) {
            return topics.is_version_of_rule(self.all, old, new);
        }
        self.all[new].words.iter().filter(|word| !is_scaffold(**word)).take(2).count() == 2
    }

    /// Retires a statement in favor of a later version. A correction is worth almost as much as what it
    /// corrects, and what corrects a rule is a rule. `gone` are the values that the later version replaces; if
    /// there are none, it replaces all that it does not repeat.
    fn replace(&mut self, topics: &mut Topics, old: usize, new: usize, gone: &[Key]) {
        let (section, score) = (self.all[old].section, self.all[old].score);
        self.replace_values(topics, old, new, gone);
        let heir = &mut self.all[new];
        heir.score = heir.score.max(score - CORRECTION_DISCOUNT);
        if section == Section::Constraints && heir.origin.has_authority() {
            heir.section = Section::Constraints;
        }
    }

    fn replace_values(&mut self, topics: &mut Topics, old: usize, new: usize, gone: &[Key]) {
        let repeated = value_keys(&self.all[new].values);
        self.retire(old, new, |_, values| {
            values.iter().any(|value| match gone {
                [] => repeated.binary_search(&value.key).is_err(),
                gone => gone.contains(&value.key),
            })
        });
        topics.forget(old);
    }

    /// Retires a statement for `heir`, but for rules in it that stand beside the sentences that are void.
    fn retire(&mut self, old: usize, heir: usize, is_void: impl Fn(&str, &[Value]) -> bool) {
        match rules_beside(&self.all[old], &self.all[heir].text, is_void) {
            Some(rest) => become_rule(&mut self.all[old], rest),
            None => self.all[old].is_retired = true,
        }
    }

    fn replace_mentions(
        &mut self,
        topics: &mut Topics,
        attribute: &Attribute,
        new: &Mention,
        mentions: &[Mention],
    ) {
        for old in mentions.iter().rev().take(LOOK_BACK) {
            if new.replaces(&self.all[new.at], attribute, old, &self.all[old.at]) {
                self.replace(topics, old.at, new.at, &old.values);
            }
        }
    }

    /// The loosest rule: same kind of value, other value, a rare word in common, and nothing left over on one
    /// of the sides that could tell the two apart (primary and backup, staging and production).
    fn replace_generic(&mut self, topics: &mut Topics, at: usize, by_word: &mut KeyMap<Vec<usize>>) {
        let this = &self.all[at];
        if this.values.is_empty() {
            return;
        }
        let rare = (self.weights.statements / 20).max(8);
        let mut candidates: Vec<usize> = Vec::new();
        for word in this.words.iter().filter(|&&word| self.weights.holding(word) as usize <= rare) {
            let holders = by_word.get(word).map_or(&[][..], Vec::as_slice);
            candidates.extend(holders.iter().rev().take(GENERIC_LOOK_BACK));
        }
        candidates.sort_unstable();
        candidates.dedup();
        let replaced: Vec<usize> =
            candidates.into_iter().filter(|&old| self.is_other_version(topics, old, at)).collect();
        for old in replaced {
            self.replace_values(topics, old, at, &[]);
        }
        for &word in &self.all[at].words {
            by_word.entry(word).or_default().push(at);
        }
    }

    fn is_other_version(&self, topics: &Topics, before: usize, after: usize) -> bool {
        let (old, new) = (&self.all[before], &self.all[after]);
        if old.is_retired || !has_other_value(&old.values, &new.values) {
            return false;
        }
        if carries_rule(old) {
            return topics.is_version_of_rule(self.all, before, after);
        }
        let has_rest = |one: &Statement<'_>, other: &Statement<'_>| {
            one.words.iter().any(|word| !is_light(*word) && other.words.binary_search(word).is_err())
        };
        if has_rest(old, new) && has_rest(new, old) {
            return false;
        }
        let common = self.weights.of(shared(&old.words, &new.words).filter(|word| !is_scaffold(*word)));
        let whole =
            self.weights.of(old.words.iter().copied()).min(self.weights.of(new.words.iter().copied()));
        let share_needed = if new.has(Cues::UPDATE) { 34 } else { 50 };
        common > 0 && 100 * common >= share_needed * whole
    }

    /// The values that only retired statements of the user have.
    fn void_values(&self) -> KeySet {
        let values_of = |is_retired: bool| {
            let statements = self.all.iter().filter(move |one| {
                one.is_retired == is_retired && (!is_retired || one.origin.has_authority())
            });
            statements.flat_map(|one| one.values.iter().map(|value| value.key))
        };
        let mut void: KeySet = values_of(true).collect();
        for value in values_of(false) {
            void.remove(&value);
        }
        void
    }

    /// Of statements with the same words and values the best one stays, of equal ones the latest.
    fn repetitions(&mut self) {
        let mut order: Vec<usize> = (0..self.all.len()).filter(|&at| self.is_live(at)).collect();
        order.sort_by_key(|&at| std::cmp::Reverse((self.all[at].score, self.all[at].place)));
        let mut seen: HashSet<(Box<[Key]>, Vec<Key>)> = HashSet::new();
        for at in order {
            let this = &self.all[at];
            let mut values = value_keys(&this.values);
            if this.words.is_empty() && values.is_empty() {
                values.push(key(this.text.to_ascii_lowercase().as_bytes()));
            }
            if !seen.insert((this.words.clone(), values)) {
                self.all[at].is_retired = true;
            }
        }
    }
}

/// The statement as nothing but the rules that were left of it.
fn become_rule(statement: &mut Statement<'_>, rules: String) {
    let lower = rules.to_ascii_lowercase();
    let mut content = Content::default();
    content.read(&rules, lower.as_bytes());
    statement.cues = cues_in(lower.as_bytes());
    statement.values = content.values.as_slice().into();
    statement.words = content.words.as_slice().into();
    statement.first_word = content.first_word;
    statement.text = Cow::Owned(rules);
    statement.section = Section::Constraints;
    statement.score = statement.score.max(RULE_LEFT);
    statement.is_opening = false;
}

/// Whether a statement is a plan that can be taken back.
fn is_plan(statement: &Statement<'_>) -> bool {
    let decides = statement.has(Cues::DECISION) && !statement.has(Cues::PROHIBITION);
    (decides || matches!(statement.section, Section::Decisions | Section::Goal))
        && matches!(statement.origin, Origin::User | Origin::Assistant | Origin::Previous(_))
        && !statement.prohibits()
        && statement.words.len() >= 2
}

/// Only authority replaces authority; the assistant replaces what it said itself.
fn may_replace(new: Origin, old: Origin) -> bool {
    new.has_authority() || !old.has_authority()
}

/// Whether both have a value of one kind and share none of that kind.
fn has_other_value(old: &[Value], new: &[Value]) -> bool {
    const VAGUE: ValueKinds =
        ValueKinds::of(&[ValueKind::Number, ValueKind::Quoted, ValueKind::Identifier, ValueKind::Language]);
    new.iter().filter(|value| !VAGUE.has(value.kind)).any(|value| {
        let same_kind = |values: &[Value]| -> Vec<Key> {
            sorted(values.iter().filter(|other| other.kind == value.kind).map(|other| other.key).collect())
        };
        let (before, after) = (same_kind(old), same_kind(new));
        !before.is_empty() && shared(&before, &after).next().is_none()
    })
}

fn value_keys(values: &[Value]) -> Vec<Key> {
    sorted(values.iter().map(|value| value.key).collect())
}
