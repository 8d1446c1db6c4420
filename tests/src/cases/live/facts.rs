//! What a live session showed, and what cases expect of that.

use serde_json::Value;

use super::super::CaseError;
use super::super::scenario::Named;

/// What a live session showed.
pub(in super::super) struct LiveFacts {
    /// Whether the context is what it was before the first pass, but for what was appended since.
    pub(in super::super) is_unchanged: bool,
    /// Whether what failed changed nothing.
    pub(in super::super) survived_failures: bool,
    /// Laws of every session that were broken.
    pub(in super::super) broken_laws: Vec<String>,
    /// What each pass came to.
    pub(super) outcomes: Vec<&'static str>,
    /// How many attempts began.
    pub(super) attempts: usize,
    /// How many were committed.
    pub(super) commits: usize,
    /// How many commits the time line asked for.
    pub(super) commits_asked: usize,
    /// Whether the summarizer was asked the very same again.
    pub(super) was_asked_twice: bool,
    /// Whether something was summarized, the request shrank, and it was left alone then.
    pub(super) made_progress: bool,
    /// Why it was refused, for people.
    pub(super) reason: String,
}

impl LiveFacts {
    /// Holds one expectation that only a live session can show against the facts.
    ///
    /// # Errors
    /// [`CaseError::Expectation`] when no check exists for it.
    pub(in super::super) fn check(
        &self,
        name: &str,
        wanted: &Value,
        after: &[Named],
    ) -> Result<Option<String>, CaseError> {
        let holds = match name {
            "second_pass" => self.outcomes.get(1).is_some_and(|outcome| *wanted == *outcome),
            "second_commit" if *wanted == "refused" => self.commits >= 1 && self.commits < self.commits_asked,
            "second_commit" => self.commits >= 2,
            "no_identical_retry" => self.was_asked_twice != (*wanted == true),
            "max_passes" => wanted.as_u64().is_some_and(|most| self.attempts as u64 <= most),
            "progress" => {
                // A refusal is progress as well, when it is given once and names its reason.
                let is_refused_once = self.commits == 0 && self.attempts <= 1 && !self.reason.is_empty();
                (self.made_progress || is_refused_once) == (*wanted == true)
            }
            "effective_from" => {
                let first = after.iter().find(|named| {
                    // A system prompt is no part of the conversation.
                    !matches!(named.message, epitome_loop::Message::System { .. }) || *wanted == *named.name
                });
                first.is_some_and(|named| *wanted == *named.name)
            }
            other => return Err(CaseError::Expectation(other.to_owned())),
        };
        Ok((!holds).then(|| {
            format!(
                "not {wanted}: passes {:?}, {} attempt(s), {} commit(s) of {} asked for, asked twice: {}",
                self.outcomes, self.attempts, self.commits, self.commits_asked, self.was_asked_twice
            )
        }))
    }
}
