//! Whole exchanges with durable results, pulled out of the part that is given up.

use epitome_loop::{Message, TokenCount};

use super::estimate::MessageScale;
use super::notes::{ResultNotes, Retention};
use super::pairing::Pairing;
use super::splitting::Weights;

/// The messages before a split that are kept because they hold a durable result, in order.
///
/// An exchange is everything that pairs of calls and results tie together, and it is kept whole or not at all: half of
/// it no provider would take. One in which a call or a result stands alone is not kept. From the newest to the oldest,
/// an exchange is kept if the sum of its messages' counts is within what is left of the budget. Linear.
#[must_use]
pub fn durable_exchanges(
    messages: &[Message],
    pairing: &Pairing,
    notes: &dyn ResultNotes,
    scale: &dyn MessageScale,
    split: usize,
    budget: TokenCount,
) -> Vec<usize> {
    let is_durable = durable_messages(messages, pairing, notes);
    pull(&is_durable, pairing, &Weights::of(messages, scale), split, budget)
}

/// By message, whether it holds a durable result.
pub(super) fn durable_messages(
    messages: &[Message],
    pairing: &Pairing,
    notes: &dyn ResultNotes,
) -> Vec<bool> {
    let holds = |at| pairing.notes(at, messages, notes).any(|(_, note)| note.retention == Retention::Durable);
    (0..messages.len()).map(holds).collect()
}

pub(super) fn pull(
    is_durable: &[bool],
    pairing: &Pairing,
    weights: &Weights,
    split: usize,
    budget: TokenCount,
) -> Vec<usize> {
    let mut left = budget.get();
    let mut seen = vec![false; split];
    let mut pulled = Vec::new();
    for start in (0..split).rev() {
        if !is_durable.get(start).copied().unwrap_or(false) || seen.get(start).copied().unwrap_or(true) {
            continue;
        }
        let exchange = exchange_of(start, pairing, &mut seen);
        let count = |&at: &usize| weights.single.get(at).copied().unwrap_or_default();
        let cost = exchange.iter().map(count).sum::<TokenCount>().get();
        let is_whole = exchange.iter().all(|&at| pairing.is_complete(at));
        if is_whole && cost <= left {
            left -= cost;
            pulled.extend(exchange);
        }
    }
    pulled.sort_unstable();
    pulled
}

/// Everything before the split that is tied to a message by pairs; each message is in one exchange.
fn exchange_of(start: usize, pairing: &Pairing, seen: &mut [bool]) -> Vec<usize> {
    let mut exchange = Vec::new();
    let mut waiting = vec![start];
    while let Some(at) = waiting.pop() {
        match seen.get_mut(at) {
            Some(was_seen) if !*was_seen => *was_seen = true,
            _ => continue,
        }
        exchange.push(at);
        waiting.extend(pairing.partners(at));
    }
    exchange
}
