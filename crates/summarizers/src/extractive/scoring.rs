//! Decides which section a statement belongs to and what it is worth there.
//!
//! The first rule that fits wins, and who speaks decides which rules there are: tools can only add to the
//! state, and the assistant states rules only weakly. Rules do not age; everything the assistant or a tool
//! says does.

use epitome_loop::Section;

use super::cues::Cues;
use super::fixed_point::{Score, recency, weighted};
use super::standing::opens_rule;
use super::statement::{Origin, Statement, shared};
use super::statements::{LONG_LINE, Label, count_words};
use super::values::{ValueKind, ValueKinds};
use super::words::{Key, Known};

/// What scoring needs to know about the conversation.
pub(crate) struct Conversation {
    /// How many messages there are.
    pub(crate) messages: usize,
    /// The last message of the user, by index.
    pub(crate) last_user: Option<usize>,
    /// The keys of the content words of the host's instructions, sorted.
    pub(crate) emphasis: Vec<Key>,
}

/// Section and score of one statement.
type Verdict = (Section, Score);

/// Values that say who or what a statement is about.
const ABOUT_SOMEBODY: ValueKinds =
    ValueKinds::of(&[ValueKind::Proper, ValueKind::Name, ValueKind::Email, ValueKind::Code]);

impl Conversation {
    /// Sets section and score of a statement.
    pub(crate) fn judge(&self, statement: &mut Statement<'_>) {
        let (section, score) = self.verdict(statement);
        statement.section = section;
        statement.score = score + self.emphasis_on(statement, score);
    }

    /// How fresh a statement is, in thousandths.
    pub(crate) fn recency(&self, statement: &Statement<'_>) -> Score {
        recency(self.messages.saturating_sub(statement.place.message as usize), self.messages)
    }

    fn is_in_last_user_message(&self, statement: &Statement<'_>) -> bool {
        self.last_user.is_some_and(|last| statement.place.message as usize == last + 1)
    }

    /// What the host's instructions add: one point for the first content word they share with a statement,
    /// half a point for each further one, at most two.
    fn emphasis_on(&self, statement: &Statement<'_>, score: Score) -> Score {
        if self.emphasis.is_empty() || score <= 0 {
            return 0;
        }
        match shared(&statement.words, &self.emphasis).take(3).count() {
            0 => 0,
            words => 500 + 500 * words as Score,
        }
    }

    fn verdict(&self, statement: &Statement<'_>) -> Verdict {
        if let Origin::Previous(section) = statement.origin {
            // Items of the previous summary keep their section.
            return (section, if section == Section::State { 3200 } else { 4500 });
        }
        let (section, score) = match statement.origin {
            Origin::Tool => self.tool_verdict(statement),
            Origin::Pasted => self.pasted_verdict(statement),
            Origin::Assistant => self.aged(statement, labelled(statement, self.assistant_verdict(statement))),
            Origin::User | Origin::System | Origin::Previous(_) => {
                labelled(statement, self.user_verdict(statement))
            }
        };
        (section, weakened(statement, section, score))
    }

    /// What the assistant announced as its next step is open for a while; long after, it has been done or
    /// dropped, and only what happened tells which.
    fn aged(&self, statement: &Statement<'_>, (section, score): Verdict) -> Verdict {
        match statement.label {
            Some(Label::Section(Section::OpenItems)) => (section, weighted(score, self.recency(statement))),
            _ => (section, score),
        }
    }

    fn user_verdict(&self, statement: &Statement<'_>) -> Verdict {
        let has = |cues| statement.has(cues);
        let prohibits = has(Cues::PROHIBITION);
        let standing = prohibits || has(Cues::SCOPE);
        let is_last = self.is_in_last_user_message(statement);
        let asks = has(Cues::REQUEST);
        let (prefers, decides, is_open) = (has(Cues::PREFERENCE), has(Cues::DECISION), has(Cues::OPEN));
        let commands = statement.first_word.any(Known::IMPERATIVE);
        let is_convention = statement.first_word.any(Known::CONVENTION);
        let (mut section, mut score) = if statement.is_question() && !standing {
            (Section::OpenItems, if is_last { 3100 } else { 600 })
        } else if standing || has(Cues::OBLIGATION) && !asks {
            (Section::Constraints, rule_score(statement, prohibits, prefers, commands))
        } else if decides {
            (Section::Decisions, 3000 + 500 * Score::from(prefers))
        } else if asks || commands && !is_convention {
            if is_last {
                (Section::OpenItems, 2800)
            } else {
                (Section::State, 1500 + weighted(700, self.recency(statement)))
            }
        } else if prefers || commands {
            (Section::Constraints, 2600)
        } else if is_open {
            (Section::OpenItems, 2600)
        } else if has(Cues::OWNER) && statement.has_value(ABOUT_SOMEBODY) {
            (Section::State, 2600)
        } else if has(Cues::STATE) || !statement.values.is_empty() {
            (Section::State, 1200 + 800 * Score::from(has(Cues::STATE)))
        } else {
            (Section::State, 300)
        };
        if decides && section == Section::Constraints && !standing {
            (section, score) = (Section::Decisions, score.max(3200));
        }
        if is_open && matches!(section, Section::Decisions | Section::State) {
            score += 600;
            if !decides {
                section = Section::OpenItems;
            }
        }
        (section, score + specificity(statement))
    }

    fn assistant_verdict(&self, statement: &Statement<'_>) -> Verdict {
        let has = |cues| statement.has(cues);
        let recency = self.recency(statement);
        let (section, score) = if statement.is_question() {
            let is_unanswered = self.last_user.is_none_or(|last| statement.place.message as usize > last);
            (Section::OpenItems, 300 + if is_unanswered { weighted(1200, recency) } else { 0 })
        } else if is_assignment(&statement.text) {
            (Section::State, 2000)
        } else if has(Cues::PROHIBITION) && !has(Cues::DECISION) {
            (Section::Constraints, 1200 + weighted(800, recency))
        } else if has(Cues::OPEN) {
            (Section::OpenItems, 1400 + weighted(1400, recency))
        } else if has(Cues::DECISION) {
            // A change of course matters more than one more step on it.
            let turns = if has(Cues::OVERRIDE) { 900 } else { 0 };
            (Section::Decisions, 1600 + turns + weighted(800, recency))
        } else if has(Cues::STATE) {
            (Section::State, 1000 + weighted(1400, recency))
        } else if !statement.values.is_empty() {
            (Section::State, 700 + weighted(600, recency))
        } else {
            (Section::State, 300)
        };
        (section, score + weighted(specificity(statement), 450))
    }

    fn tool_verdict(&self, statement: &Statement<'_>) -> Verdict {
        let recency = self.recency(statement);
        let score = if statement.has(Cues::ERROR) {
            1000 + weighted(1500, recency)
        } else {
            500 + weighted(600, recency)
        };
        (Section::State, score + weighted(specificity(statement), 300))
    }

    fn pasted_verdict(&self, statement: &Statement<'_>) -> Verdict {
        let error = if statement.has(Cues::ERROR) { weighted(900, self.recency(statement)) } else { 0 };
        (Section::State, 400 + weighted(specificity(statement), 300) + error)
    }
}

fn rule_score(statement: &Statement<'_>, prohibits: bool, prefers: bool, commands: bool) -> Score {
    let scope = match (statement.has(Cues::SCOPE), statement.has(Cues::SESSION)) {
        (false, _) => 0,
        (true, false) => 2200,
        (true, true) => 3200,
    };
    2000 + scope
        + 2200 * Score::from(prohibits)
        + 1200 * Score::from(statement.has(Cues::OBLIGATION))
        + 600 * Score::from(prefers)
        + 500 * Score::from(commands)
}

/// A label says which section is meant, but for a rule: what the user forbids or wants from now on outlives the
/// task or the step it was said with. The assistant cannot make rules by labelling them.
fn labelled(statement: &Statement<'_>, (section, score): Verdict) -> Verdict {
    let Some(label) = statement.label else { return (section, score) };
    let section = match label {
        Label::Section(section) => section,
        Label::Attention => section,
    };
    let section =
        if section == Section::State && statement.has(Cues::OPEN) { Section::OpenItems } else { section };
    let passes = matches!(section, Section::Goal | Section::State | Section::OpenItems);
    let section = if passes && statement.origin.has_authority() && opens_rule(statement) {
        Section::Constraints
    } else {
        section
    };
    if statement.origin == Origin::Assistant && matches!(section, Section::Constraints | Section::Goal) {
        return (Section::Constraints, score.max(2000));
    }
    (section, score.max(4000) + 1000)
}

/// Takes away what small talk, offers and overlong text do not deserve.
fn weakened(statement: &Statement<'_>, section: Section, score: Score) -> Score {
    let is_convention = section == Section::Constraints && says_convention(statement);
    let is_rule = statement.has(Cues::PROHIBITION.with(Cues::SCOPE)) || is_convention;
    let has_values = !statement.values.is_empty();
    let is_offer = statement.origin == Origin::Assistant && statement.has(Cues::OFFER) && !has_values;
    let is_noise = statement.is_acknowledgement() && !has_values && !is_rule;
    if is_offer || is_noise {
        return 0;
    }
    let mut score = score;
    if statement.has(Cues::TANGENT) && statement.label.is_none() && !statement.prohibits() {
        score = weighted(score, 150);
    }
    if !has_values && count_words(&statement.text) <= 2 {
        score = weighted(score, 300);
    }
    if statement.text.len() > LONG_LINE {
        score -= 500;
    }
    score
}

/// Whether the user says what is to be kept to, and not only that something was heard.
fn says_convention(statement: &Statement<'_>) -> bool {
    let prefers =
        || statement.has(Cues::PREFERENCE) && statement.text.to_ascii_lowercase().contains("prefer");
    statement.origin.has_authority()
        && (statement.has(Cues::OBLIGATION) || statement.first_word.any(Known::CONVENTION) || prefers())
}

/// What exact values add: half a point each, at most two.
fn specificity(statement: &Statement<'_>) -> Score {
    let points = statement.values.iter().map(|value| match value.kind {
        ValueKind::Style => 0,
        ValueKind::Proper => 250,
        _ => 500,
    });
    points.take(16).sum::<Score>().min(2000)
}

/// `key = value`
pub(crate) fn is_assignment(text: &str) -> bool {
    assignment_key(text).is_some()
}

/// The left side of `key = value`, `key := value` or `key <- value`.
pub(crate) fn assignment_key(text: &str) -> Option<&str> {
    let at = text.bytes().take(44).position(|byte| byte == b'=' || byte == b'<')?;
    let (left, right) = text.split_at_checked(at)?;
    let (left, value) = match (left.strip_suffix(':'), right.strip_prefix('='), right.strip_prefix("<-")) {
        (Some(left), Some(value), _) => (left, value),
        (None, Some(value), _) => (left, value),
        (_, None, Some(value)) => (left, value),
        _ => return None,
    };
    let (key, value) = (left.trim(), value.trim());
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_. -".contains(&byte);
    let is_key = key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && key.len() <= 41
        && key.bytes().all(is_name);
    (is_key && (1..=101).contains(&value.len()) && !value.starts_with('=')).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_recognized() {
        assert_eq!(assignment_key("max_retries = 5"), Some("max_retries"));
        assert_eq!(assignment_key("build id := x1"), Some("build id"));
        assert_eq!(assignment_key("owner <- Kim"), Some("owner"));
        assert_eq!(assignment_key("a == b"), None);
        assert_eq!(assignment_key("no assignment here"), None);
        assert_eq!(assignment_key("a ="), None);
    }
}
