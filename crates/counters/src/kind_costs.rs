//! What content costs by kind of block, packed so that it can be kept for each message of a long session.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error_band::Amount;

/// The kinds under which content is charged.
const KINDS: [&str; 10] = [
    "text",
    "refusal",
    "image",
    "audio",
    "document",
    "thinking",
    "tool_use",
    "tool_result",
    "opaque",
    "other",
];

pub(crate) const THINKING: &str = "thinking";

/// A table of costs in the making.
#[derive(Debug, Default)]
pub(crate) struct KindCosts {
    /// In the order of [`KINDS`].
    by_kind: [Amount; KINDS.len()],
}

impl KindCosts {
    pub(crate) fn charge(&mut self, kind: &'static str, amount: Amount) {
        let known = KINDS.iter().position(|&name| name == kind).unwrap_or(KINDS.len() - 1);
        if let Some(sum) = self.by_kind.get_mut(known) {
            *sum = sum.plus(amount);
        }
    }

    pub(crate) fn packed(&self) -> ContentCost {
        let all = KINDS.iter().copied().zip(self.by_kind);
        let mut costs = all.filter(|&(_, amount)| amount != Amount::default());
        match (costs.next(), costs.next()) {
            (None, _) => ContentCost::default(),
            (Some((kind, amount)), None) => ContentCost::One(kind, amount),
            (Some(first), Some(second)) => {
                ContentCost::Several([first, second].into_iter().chain(costs).collect())
            }
        }
    }
}

/// Tokens of some content, split by the kind of block they come from. Most messages hold blocks of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContentCost {
    One(&'static str, Amount),
    Several(Arc<[(&'static str, Amount)]>),
}

impl Default for ContentCost {
    fn default() -> Self {
        Self::One("text", Amount::default())
    }
}

impl ContentCost {
    /// The sum over all kinds, with its doubt; `reasoning` says whether that is among them.
    pub(crate) fn amount(&self, reasoning: bool) -> Amount {
        self.kinds(reasoning).map(|(_, amount)| amount).fold(Amount::default(), Amount::plus)
    }

    /// Adds the kinds that cost something to a table.
    pub(crate) fn add_to(&self, table: &mut BTreeMap<&'static str, u64>, reasoning: bool) {
        for (kind, amount) in self.kinds(reasoning).filter(|(_, amount)| amount.tokens > 0) {
            let sum = table.entry(kind).or_default();
            *sum = sum.saturating_add(amount.tokens);
        }
    }

    fn kinds(&self, reasoning: bool) -> impl Iterator<Item = (&'static str, Amount)> {
        let (one, several) = match self {
            Self::One(kind, amount) => (Some((*kind, *amount)), &[][..]),
            Self::Several(kinds) => (None, &**kinds),
        };
        let all = one.into_iter().chain(several.iter().copied());
        all.filter(move |&(kind, _)| reasoning || kind != THINKING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_packed_and_reasoning_can_be_left_out() {
        let mut costs = KindCosts::default();
        assert_eq!(costs.packed(), ContentCost::default());
        assert_eq!(ContentCost::default().amount(true), Amount::default());
        costs.charge("text", Amount { tokens: 5, below: 1, above: 2 });
        costs.charge("text", Amount::exact(2));
        let text = Amount { tokens: 7, below: 1, above: 2 };
        assert_eq!(costs.packed(), ContentCost::One("text", text));
        costs.charge(THINKING, Amount { tokens: 3, below: 4, above: 4 });
        costs.charge("a kind of tomorrow", Amount::exact(1));
        let packed = costs.packed();
        assert_eq!(packed.amount(true), Amount { tokens: 11, below: 5, above: 6 });
        assert_eq!(packed.amount(false), Amount { tokens: 8, ..text });
        let mut table = BTreeMap::new();
        packed.add_to(&mut table, false);
        assert_eq!(table, BTreeMap::from([("other", 1), ("text", 7)]));
    }
}
