//! Messages that a user wants to keep as they are, wherever the session is cut.

use std::collections::BTreeSet;

use epitome_loop::Message;
use epitome_loopruntime::whole_exchanges;

use crate::outcome::RefusalReason;

/// The pinned messages of a session, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pinned {
    /// What was asked for, and what that needs to be legal: a result its call, a call its results.
    pub(crate) kept: BTreeSet<usize>,
}

impl Pinned {
    /// `lead` messages at the front are the system's and stay anyway; the `derived_prefix` behind them stems from
    /// an earlier summary, whose place the new one takes.
    pub(crate) fn of(
        messages: &[Message],
        lead: usize,
        derived_prefix: usize,
        pins: &BTreeSet<usize>,
    ) -> Result<Self, RefusalReason> {
        let is_earlier_summary = |at: usize| (lead..lead + derived_prefix).contains(&at);
        if let Some(&message) = pins.iter().find(|&&at| at >= messages.len() || is_earlier_summary(at)) {
            return Err(RefusalReason::PinInvalid { message });
        }
        if pins.is_empty() {
            return Ok(Self::default());
        }
        let kept = whole_exchanges(messages, pins).map_err(RefusalReason::TailInvalid)?;
        match kept.iter().find(|&&at| is_earlier_summary(at)) {
            Some(&message) => Err(RefusalReason::PinInvalid { message }),
            None => Ok(Self { kept }),
        }
    }
}
