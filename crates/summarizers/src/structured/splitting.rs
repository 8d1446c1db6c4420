//! Where a history is split into an old part and a tail, in linear time.

use epitome_loop::{Message, Role, TokenCount};

use super::estimate::MessageScale;
use super::pairing::Pairing;

/// The positions where a new turn starts: a message of the assistant, then one of the user or a tool.
#[must_use]
pub fn boundaries(messages: &[Message]) -> Vec<usize> {
    let roles = messages.iter().map(Message::role);
    let pairs = roles.clone().zip(roles.skip(1)).enumerate();
    let is_turn =
        |(before, after): (Role, Role)| before == Role::Assistant && matches!(after, Role::User | Role::Tool);
    pairs.filter(|&(_, pair)| is_turn(pair)).map(|(at, _)| at + 1).collect()
}

/// The split that keeps at least the last `preserve_recent` messages: the last boundary that parts no exchange; where
/// there is none, the latest cut that a boundary slides to; else 0, which splits nothing off. So it is for a history of
/// at most `min_messages`.
#[must_use]
pub fn split_by_count(
    messages: &[Message],
    pairing: &Pairing,
    min_messages: usize,
    preserve_recent: usize,
) -> usize {
    if messages.len() <= min_messages {
        return 0;
    }
    last_boundary(&boundaries(messages), pairing, messages.len().saturating_sub(preserve_recent))
}

fn last_boundary(boundaries: &[usize], pairing: &Pairing, upper: usize) -> usize {
    let within = || boundaries.iter().copied().filter(|&at| at <= upper);
    let safe = within().rev().find(|&at| pairing.slide(at) == at);
    safe.or_else(|| within().map(|at| pairing.slide(at)).max()).unwrap_or(0)
}

/// The split with the longest tail that is within a budget. The tail starts at a boundary, slid so that no exchange is
/// parted, and has at least `preserve_recent` messages. Where no tail fits, the shortest one is taken: a budget is a
/// goal, and keeping almost everything would get nowhere.
#[must_use]
pub fn split_by_budget(
    messages: &[Message],
    pairing: &Pairing,
    scale: &dyn MessageScale,
    min_messages: usize,
    preserve_recent: usize,
    tail_budget: TokenCount,
) -> usize {
    let weights = Weights::of(messages, scale);
    split_weighed(messages, pairing, scale, &weights, (min_messages, preserve_recent), tail_budget)
}

/// What each tail of a history weighs.
pub(super) struct Weights {
    /// By message, its own tokens.
    pub(super) single: Vec<TokenCount>,
    /// By position, the weight of what starts there.
    tails: Vec<u128>,
    /// By position, the sum of the single counts of what starts there.
    sums: Vec<TokenCount>,
}

impl Weights {
    pub(super) fn of(messages: &[Message], scale: &dyn MessageScale) -> Self {
        let weights: Vec<u128> = messages.iter().map(|message| scale.weight(message)).collect();
        let single: Vec<TokenCount> = weights.iter().map(|&weight| scale.tokens(weight)).collect();
        let mut tails = vec![0; messages.len() + 1];
        let mut sums = vec![TokenCount::ZERO; messages.len() + 1];
        let (mut weight, mut sum) = (0_u128, TokenCount::ZERO);
        let slots = tails.iter_mut().zip(&mut sums).take(messages.len());
        for ((tail, total), (one, tokens)) in slots.zip(weights.iter().zip(&single)).rev() {
            weight = weight.saturating_add(*one);
            sum = sum.saturating_add(*tokens);
            (*tail, *total) = (weight, sum);
        }
        Self { single, tails, sums }
    }

    /// Whether what starts at a position is within a budget, however it is rounded.
    fn fits(&self, at: usize, scale: &dyn MessageScale, budget: TokenCount) -> bool {
        let sum = self.sums.get(at).copied().unwrap_or_default();
        let exact = scale.tokens(self.tails.get(at).copied().unwrap_or_default());
        sum <= budget && exact <= budget
    }
}

pub(super) fn split_weighed(
    messages: &[Message],
    pairing: &Pairing,
    scale: &dyn MessageScale,
    weights: &Weights,
    (min_messages, preserve_recent): (usize, usize),
    tail_budget: TokenCount,
) -> usize {
    if messages.len() <= min_messages {
        return 0;
    }
    let upper = messages.len().saturating_sub(preserve_recent);
    let boundaries = boundaries(messages);
    if upper == 0 {
        return last_boundary(&boundaries, pairing, upper);
    }
    let mut last = None;
    for at in boundaries.iter().copied().take_while(|&at| at <= upper) {
        let cut = pairing.slide(at);
        if last == Some(cut) {
            continue;
        }
        last = Some(cut);
        if weights.fits(cut, scale, tail_budget) {
            return cut;
        }
    }
    last.unwrap_or_else(|| last_boundary(&boundaries, pairing, upper))
}
