//! Which messages of a session stay verbatim, given a cut.

use std::ops::Range;

use epitome_loop::Message;
use epitome_loopruntime::TailCut;

use crate::pinning::Pinned;
use crate::standing::Standing;

/// A session with what stays of it wherever it is cut.
pub(crate) struct Keeping<'a> {
    pub(crate) messages: &'a [Message],
    /// How many messages at the front are the system's; cuts are counted behind them.
    pub(crate) lead: usize,
    pub(crate) standing: Standing,
    pub(crate) pinned: Pinned,
}

impl Keeping<'_> {
    /// The same session with nothing pinned.
    pub(crate) fn without_pins(&self) -> Self {
        Self { pinned: Pinned::default(), standing: self.standing.clone(), ..*self }
    }

    /// The messages that stay, ascending; without a cut, those that stay in any event.
    pub(crate) fn kept(&self, cut: Option<TailCut>) -> Vec<usize> {
        let body = self.messages.len().saturating_sub(self.lead);
        let tail = cut.into_iter().flat_map(|cut| cut.kept(body)).map(|at| self.lead + at);
        let mut kept = self.standing.kept.clone();
        kept.extend(&self.pinned.kept);
        kept.extend(tail.filter(|at| !self.standing.superseded.contains(at)));
        kept.into_iter().collect()
    }

    /// The messages of a stretch that a summary has to speak for. What the user said is among them even where it
    /// is pinned: it tells what the rest is for.
    pub(crate) fn to_summarize(&self, stretch: Range<usize>) -> Vec<usize> {
        let Standing { kept, superseded } = &self.standing;
        let speaks_for_itself = |at: &usize| {
            let is_users = matches!(self.messages.get(*at), Some(Message::User { .. }));
            self.pinned.kept.contains(at) && !is_users
        };
        stretch
            .filter(|at| !kept.contains(at) && !superseded.contains(at) && !speaks_for_itself(at))
            .collect()
    }

    /// Whether anything of what is to be summarized goes from the session, an earlier summary left aside.
    pub(crate) fn replaces_any(&self, head: &[usize], derived_until: usize) -> bool {
        head.iter().any(|at| *at >= derived_until && !self.pinned.kept.contains(at))
    }

    /// All but the kept ones, ascending.
    pub(crate) fn replaced(&self, kept: &[usize]) -> Vec<usize> {
        (0..self.messages.len()).filter(|at| kept.binary_search(at).is_err()).collect()
    }

    pub(crate) fn messages_at(&self, kept: &[usize]) -> Vec<Message> {
        kept.iter().filter_map(|&at| self.messages.get(at).cloned()).collect()
    }
}
