//! Which messages of a session stay verbatim, given a cut.

use std::collections::BTreeSet;

use epitome_loop::Message;
use epitome_loopruntime::TailCut;

use crate::lengths::Lengths;
use crate::pinning::Pinned;
use crate::standing::Standing;

/// A session with what stays of it wherever it is cut.
pub(crate) struct Keeping<'a> {
    pub(crate) messages: &'a [Message],
    /// How many messages at the front are the system's; cuts are counted behind them.
    pub(crate) lead: usize,
    pub(crate) standing: Standing,
    pub(crate) pinned: Pinned,
    /// Messages of the tail that answer nothing in it. They stay only where they are pinned.
    pub(crate) astray: BTreeSet<usize>,
    pub(crate) lengths: &'a Lengths<'a>,
}

impl Keeping<'_> {
    /// The same session with nothing pinned.
    pub(crate) fn without_pins(&self) -> Self {
        let (standing, astray) = (self.standing.clone(), self.astray.clone());
        Self { pinned: Pinned::default(), standing, astray, ..*self }
    }

    /// The messages that stay, ascending; without a cut, those that stay in any event.
    pub(crate) fn kept(&self, cut: Option<TailCut>) -> Vec<usize> {
        let body = self.messages.len().saturating_sub(self.lead);
        let tail = cut.into_iter().flat_map(|cut| cut.kept(body)).map(|at| self.lead + at);
        let mut kept = self.standing.kept.clone();
        kept.extend(&self.pinned.kept);
        kept.extend(tail.filter(|at| !self.standing.superseded.contains(at) && !self.astray.contains(at)));
        kept.into_iter().collect()
    }

    /// The messages that a summary has to speak for: of those up to the tail, and of those in it that answer nothing.
    /// What the user said is among them even where it is pinned: it tells what the rest is for.
    pub(crate) fn to_summarize(&self, cut: TailCut) -> Vec<usize> {
        let Standing { kept, superseded } = &self.standing;
        let speaks_for_itself = |at: &usize| {
            let is_users = matches!(self.messages.get(*at), Some(Message::User { .. }));
            self.pinned.kept.contains(at) && !is_users
        };
        let head = self.lead..self.lead + cut.tail_start();
        head.chain(self.astray.iter().copied())
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

    /// How many bytes these messages take in a request.
    pub(crate) fn bytes_at(&self, kept: &[usize]) -> u64 {
        kept.iter().fold(0, |sum, &at| sum.saturating_add(self.lengths.of(at)))
    }

    pub(crate) fn messages_at(&self, kept: &[usize]) -> Vec<Message> {
        kept.iter().filter_map(|&at| self.messages.get(at).cloned()).collect()
    }
}
