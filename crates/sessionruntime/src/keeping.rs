//! Which messages of a session stay verbatim, given a cut.

use std::ops::Range;

use epitome_loop::Message;
use epitome_loopruntime::TailCut;

use crate::standing::Standing;

/// A session with what stays of it wherever it is cut.
pub(crate) struct Keeping<'a> {
    pub(crate) messages: &'a [Message],
    /// How many messages at the front are the system's; cuts are counted behind them.
    pub(crate) lead: usize,
    pub(crate) standing: Standing,
}

impl Keeping<'_> {
    /// The messages that stay, ascending; without a cut, those that stay in any event.
    pub(crate) fn kept(&self, cut: Option<TailCut>) -> Vec<usize> {
        let body = self.messages.len().saturating_sub(self.lead);
        let tail = cut.into_iter().flat_map(|cut| cut.kept(body)).map(|at| self.lead + at);
        let mut kept = self.standing.kept.clone();
        kept.extend(tail.filter(|at| !self.standing.superseded.contains(at)));
        kept.into_iter().collect()
    }

    /// The messages of a stretch that a summary has to speak for.
    pub(crate) fn to_summarize(&self, stretch: Range<usize>) -> Vec<usize> {
        let Standing { kept, superseded } = &self.standing;
        stretch.filter(|at| !kept.contains(at) && !superseded.contains(at)).collect()
    }

    /// All but the kept ones, ascending.
    pub(crate) fn replaced(&self, kept: &[usize]) -> Vec<usize> {
        (0..self.messages.len()).filter(|at| kept.binary_search(at).is_err()).collect()
    }

    pub(crate) fn messages_at(&self, kept: &[usize]) -> Vec<Message> {
        kept.iter().filter_map(|&at| self.messages.get(at).cloned()).collect()
    }
}
