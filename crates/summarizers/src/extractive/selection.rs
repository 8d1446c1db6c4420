//! Chooses what goes into the summary: greedily by worth per byte, within a share for each section.

use std::cell::OnceCell;

use epitome_loop::{SUMMARY_FRAME_BYTES, Section, SharedText, SummarySections, rendered_item_len};

use super::fixed_point::Score;
use super::fixed_point::{rank, rank_when_tight};
use super::goal::{Goal, NO_GOAL, says_goal};
use super::ledger::{ITEM_BYTES, ledger_lines};
use super::pool::{WORTH_SELECTING, index_of};
use super::reading::{EMPTY_ITEM, Reading};
use super::shortening::{Pressure, fit_rendered, says_something, shortened};
use super::statement::{Origin, Place, Statement};
use super::statements::sentences;
use super::supersession::Void;
use super::words::{Key, KeySet, Known, key, known};

/// Shares of the budget, in percent, that a section may take while others still wait, in the order of
/// [`Section::ALL`].
const SHARES: [usize; 5] = [20, 46, 26, 34, 16];
/// The share for constraints of [`STRONG_RULE`] or more.
const STRONG_RULES_SHARE: usize = 62;
const STRONG_RULE: i32 = 4000;
/// One message may fill this part, in percent, of the constraints' share while other messages' rules wait.
const ONE_MESSAGE_SHARE: usize = 40;
/// If the statements of this score or more do not all fit, the budget is tight.
const MUST_HAVE: i32 = 3500;
/// What is left after everything else goes to statements of at least this score.
const WORTH_FILLING: i32 = 900;

/// Everything that can be selected.
pub(crate) struct Candidates<'r, 't> {
    reading: &'r Reading<'t>,
    void: &'r Void,
    goal: &'r Goal<'t>,
    all: Vec<Candidate<'r, 't>>,
}

struct Candidate<'r, 't> {
    statement: &'r Statement<'t>,
    normal: OnceCell<Shaped>,
    tight: OnceCell<Shaped>,
}

/// A statement's item and the bytes it takes without list mark and line break.
struct Shaped {
    text: String,
    bytes: usize,
}

/// A selection.
pub(crate) struct Selection {
    pub(crate) sections: SummarySections,
    /// How many candidates did not fit, by section.
    pub(crate) left_out: [u64; 5],
}

impl<'r, 't> Candidates<'r, 't> {
    /// Takes the statements that are worth selecting.
    pub(crate) fn new(reading: &'r Reading<'t>, void: &'r Void, goal: &'r Goal<'t>) -> Self {
        let is_goal = |statement: &Statement<'_>| {
            goal.is_moved && goal.statements.iter().any(|one| one.place == statement.place)
        };
        let all: Vec<_> = reading
            .statements
            .iter()
            .filter(|one| !one.is_retired && one.score >= least_score(one) && !is_goal(one))
            .map(|statement| Candidate { statement, normal: OnceCell::new(), tight: OnceCell::new() })
            .collect();
        Self { reading, void, goal, all }
    }

    /// The candidates, best first; of equal ones the newer message first, in a message the earlier line.
    fn ranked(&self, pressure: Pressure) -> Vec<&Candidate<'r, 't>> {
        let mut ranked: Vec<_> = self.all.iter().collect();
        ranked.sort_by_cached_key(|one| {
            let (score, place) = (one.statement.score, one.statement.place);
            let worth = match pressure {
                Pressure::Normal => rank(score, one.statement.text.len()),
                Pressure::Tight => rank_when_tight(score, one.shaped(pressure).bytes),
            };
            (std::cmp::Reverse(worth), std::cmp::Reverse(place.message), place.line)
        });
        ranked
    }

    /// Selects for a rendered summary of at most `bytes` bytes, which must hold the frame and two bytes.
    pub(crate) fn select(&self, bytes: usize) -> Selection {
        let room = bytes.saturating_sub(SUMMARY_FRAME_BYTES);
        let must_haves = self.all.iter().filter(|one| one.statement.score >= MUST_HAVE);
        let needed: usize = must_haves.map(|one| one.shaped(Pressure::Normal).bytes).sum();
        let pressure = if needed > room { Pressure::Tight } else { Pressure::Normal };
        let mut draft = Draft::new(room, pressure);
        draft.add_goal(self.goal);
        let ledger_room = if self.reading.uses_tools { ledger_room(room) } else { 0 };
        let waiting = draft.add_by_share(self.ranked(pressure), room.saturating_sub(ledger_room));
        if ledger_room > 40 {
            let left = room.saturating_sub(draft.used + draft.marks_owed(Section::State));
            let extra = left.saturating_sub(ledger_room) / 2;
            let lines = ledger_lines(self.reading, self.void, &draft.text(), left.min(ledger_room + extra));
            lines.into_iter().for_each(|line| draft.add_ledger_line(line));
        }
        let (worthy, rest): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|one| one.statement.score >= WORTH_FILLING.min(least_score(one.statement)));
        let mut left_out = self.reading.overflow;
        for one in worthy {
            if !draft.add(one, room) {
                left_out[index_of(one.statement.section)] += 1;
            }
        }
        for one in rest {
            left_out[index_of(one.statement.section)] += 1;
        }
        draft.ensure_state(&self.reading.statements);
        Selection { sections: draft.into_sections(), left_out }
    }
}

/// The least score that is worth selecting. The cues are English: of what the user says in another language
/// they cannot tell what it is, so it is worth keeping if there is room.
fn least_score(statement: &Statement<'_>) -> Score {
    const UNJUDGED: Score = 300;
    if statement.origin == Origin::User && !has_known_word(&statement.text) {
        UNJUDGED
    } else {
        WORTH_SELECTING
    }
}

/// Whether any word of the text is one that English sentences are held together by.
fn has_known_word(text: &str) -> bool {
    let mut words = text.split(|character: char| !character.is_alphanumeric() && character != '\'');
    words
        .any(|word| known(key(word.to_ascii_lowercase().as_bytes())).any(Known::STOP.with(Known::IMPERATIVE)))
}

impl Candidate<'_, '_> {
    fn shaped(&self, pressure: Pressure) -> &Shaped {
        let cell = match pressure {
            Pressure::Normal => &self.normal,
            Pressure::Tight => &self.tight,
        };
        cell.get_or_init(|| {
            let text = shortened(self.statement, pressure);
            let bytes = rendered_item_len(&text);
            Shaped { text, bytes }
        })
    }
}

/// A summary in the making.
struct Draft {
    room: usize,
    pressure: Pressure,
    items: Vec<Item>,
    /// Exactly the bytes that the items take in the rendered form.
    used: usize,
    used_by: [usize; 5],
    count_by: [usize; 5],
    /// Bytes that the rules of each message take, by the message's number.
    rules_of: std::collections::BTreeMap<u32, usize>,
    /// Words and values that are said.
    said: KeySet,
}

struct Item {
    section: Section,
    place: Place,
    text: String,
}

impl Draft {
    fn new(room: usize, pressure: Pressure) -> Self {
        Self {
            room,
            pressure,
            items: Vec::new(),
            used: 0,
            used_by: [0; 5],
            count_by: [0; 5],
            rules_of: std::collections::BTreeMap::new(),
            said: KeySet::default(),
        }
    }

    /// The goal comes first and gets what it needs, or a part of it that makes sense.
    fn add_goal(&mut self, goal: &Goal<'_>) {
        for statement in &goal.statements {
            let text = self.goal_text(statement);
            let cost = self.cost(Section::Goal, rendered_item_len(&text));
            if self.items.is_empty() || self.used + cost < self.room {
                self.push(Section::Goal, statement.place, text);
            }
        }
        if goal.statements.is_empty() {
            let text = fit_rendered(NO_GOAL, self.room.saturating_sub(1));
            self.push(Section::Goal, Place::in_previous(0), text);
        }
    }

    fn goal_text(&self, statement: &Statement<'_>) -> String {
        /// The least that a goal is cut to.
        const SHORTEST: usize = 24;
        let share = |percent: usize| (self.room * percent / 100).max(SHORTEST);
        // The state needs a byte as well.
        let room = self.room.saturating_sub(self.used + 1);
        let tight = shortened(statement, Pressure::Tight);
        let vague = share(if self.pressure == Pressure::Tight { 5 } else { 8 });
        let text = if !says_goal(statement) && rendered_item_len(&tight) > vague {
            fit_rendered(&tight, vague.min(room))
        } else if self.pressure == Pressure::Tight
            && rendered_item_len(&tight) > share(30)
            && !matches!(statement.origin, Origin::Previous(_))
        {
            let first = sentences(&tight).first().copied().unwrap_or(&tight).to_owned();
            fit_rendered(&first, share(40).min(room))
        } else {
            shortened(statement, self.pressure)
        };
        fit_rendered(&text, room)
    }

    /// What an item takes in the rendered form: its text, a line break unless it is the section's first, and
    /// a list mark, unless it stands alone in a required section. A second one there brings the mark that
    /// the first then needs.
    fn cost(&self, section: Section, text: usize) -> usize {
        const MARK: usize = 2;
        const BREAK: usize = 1;
        let around = match (self.count_by[index_of(section)], section.is_required()) {
            (0, true) => 0,
            (0, false) => MARK,
            (1, true) => BREAK + 2 * MARK,
            _ => BREAK + MARK,
        };
        text + around
    }

    /// What the next item of a section takes more than the ones after it.
    fn marks_owed(&self, section: Section) -> usize {
        self.cost(section, 0).saturating_sub(ITEM_BYTES)
    }

    /// What must stay free for the state to say something.
    fn reserve(&self, section: Section) -> usize {
        if section == Section::State || self.count_by[index_of(Section::State)] > 0 {
            0
        } else {
            EMPTY_ITEM.len()
        }
    }

    /// Adds candidates in order, each section within its share, and returns those that wait.
    fn add_by_share<'c, 'r, 't>(
        &mut self,
        candidates: Vec<&'c Candidate<'r, 't>>,
        limit: usize,
    ) -> Vec<&'c Candidate<'r, 't>> {
        let (mut waiting, mut crowded) = (Vec::new(), Vec::new());
        for one in candidates {
            if self.is_crowding(one) {
                crowded.push(one);
            } else if self.is_covered(one.statement) || !self.is_within_share(one) || !self.add(one, limit) {
                waiting.push(one);
            }
        }
        // What other messages left of the rules' share goes to the message that asked for more than its part.
        for one in crowded {
            if !self.is_within_share(one) || !self.add(one, limit) {
                waiting.push(one);
            }
        }
        waiting
    }

    fn is_within_share(&self, one: &Candidate<'_, '_>) -> bool {
        let section = one.statement.section;
        let used = self.used_by[index_of(section)];
        used == 0
            || used + self.cost(section, one.shaped(self.pressure).bytes)
                <= self.share_of(section, one.statement.score)
    }

    fn share_of(&self, section: Section, score: i32) -> usize {
        let is_strong_rule = section == Section::Constraints && score >= STRONG_RULE;
        let percent = if is_strong_rule { STRONG_RULES_SHARE } else { SHARES[index_of(section)] };
        self.room * percent / 100
    }

    /// Whether a rule would take its message over the part of the rules' share that one message gets.
    fn is_crowding(&self, one: &Candidate<'_, '_>) -> bool {
        let statement = one.statement;
        // The previous summary and the host's instructions hold many rules by nature.
        if statement.section != Section::Constraints
            || matches!(statement.origin, Origin::Previous(_) | Origin::System)
        {
            return false;
        }
        let used = self.rules_of.get(&statement.place.message).copied().unwrap_or(0);
        let part = self.share_of(statement.section, statement.score) * ONE_MESSAGE_SHARE / 100;
        used > 0 && used + one.shaped(self.pressure).bytes > part
    }

    /// Whether nearly all words and values of a statement are said already. Prohibitions are never covered.
    fn is_covered(&self, statement: &Statement<'_>) -> bool {
        let keys = || keys_of(statement);
        let (all, said) = (keys().count(), keys().filter(|key| self.said.contains(key)).count());
        all > 0 && 100 * said >= 85 * all && !statement.prohibits()
    }

    fn add(&mut self, one: &Candidate<'_, '_>, limit: usize) -> bool {
        let shaped = one.shaped(self.pressure);
        let statement = one.statement;
        let section = statement.section;
        let needed = self.cost(section, shaped.bytes) + self.reserve(section);
        if !says_something(&shaped.text) || self.used + needed > limit {
            return false;
        }
        if section == Section::Constraints {
            *self.rules_of.entry(statement.place.message).or_default() += shaped.bytes;
        }
        self.said.extend(keys_of(statement));
        self.push(section, statement.place, shaped.text.clone());
        true
    }

    fn add_ledger_line(&mut self, line: String) {
        let at = self.items.len();
        self.push(Section::State, Place { message: u32::MAX, line: at as u32 }, line);
    }

    fn push(&mut self, section: Section, place: Place, text: String) {
        let bytes = self.cost(section, rendered_item_len(&text));
        self.used += bytes;
        self.used_by[index_of(section)] += bytes;
        self.count_by[index_of(section)] += 1;
        self.items.push(Item { section, place, text });
    }

    /// The state must say something: the assistant's last words, or that there is nothing.
    fn ensure_state(&mut self, statements: &[Statement<'_>]) {
        if self.items.iter().any(|item| item.section == Section::State) {
            return;
        }
        const LONGEST: usize = 160;
        let room = self.room.saturating_sub(self.used);
        let is_said = |one: &Statement<'_>| self.items.iter().any(|item| item.place == one.place);
        let last = statements.iter().rev().find(|one| one.origin == Origin::Assistant && !is_said(one));
        let text = match last {
            Some(last) if room > 60 => fit_rendered(&shortened(last, Pressure::Tight), LONGEST.min(room)),
            _ => fit_rendered(EMPTY_ITEM, room),
        };
        self.push(Section::State, Place::in_previous(0), text);
    }

    fn text(&self) -> String {
        self.items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn into_sections(mut self) -> SummarySections {
        self.items.sort_by_key(|item| item.place);
        let mut sections = SummarySections::default();
        for item in self.items {
            sections.items_mut(item.section).push(SharedText::from(item.text));
        }
        sections
    }
}

/// What the ledger gets of the room: in a small summary statements come first, in a larger one the ledger
/// grows to two fifths.
fn ledger_room(room: usize) -> usize {
    const BEFORE_LEDGER: usize = 80;
    (room.saturating_sub(BEFORE_LEDGER) * 45 / 100).min(room * 40 / 100)
}

fn keys_of<'s>(statement: &'s Statement<'_>) -> impl Iterator<Item = Key> + 's {
    statement.words.iter().copied().chain(statement.values.iter().map(|value| value.key))
}
