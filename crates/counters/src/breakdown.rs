//! Where the tokens of a request go.

use std::collections::BTreeMap;

use epitome_loop::{CountQuality, Request, Role};

use crate::content_cost::Tariff;
use crate::error_band::{Amount, CountRange};
use crate::kind_costs::ContentCost;

/// A count of a request, part by part.
///
/// The content of the messages is given in three ways with the same sum, and that sum, `tools`, `framing` and
/// `unseen` make up `total`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Breakdown {
    /// Content of the messages by who speaks.
    pub by_role: BTreeMap<Role, u64>,
    /// Content of the messages by kind of block; blocks inside a nested tool result go under their own kind.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// Content of each message in order. Reasoning that the provider drops takes nothing.
    pub per_message: Vec<u64>,
    /// Tool definitions.
    pub tools: u64,
    /// Marks around messages and around the request.
    pub framing: u64,
    /// What the user says is sent beside what is known.
    pub unseen: u64,
    /// The whole request.
    pub total: u64,
    /// The whole request, with the range in which its true count is to be expected.
    pub range: CountRange,
}

impl Breakdown {
    /// Puts the parts together. The range of an estimate is never a point.
    pub(crate) fn of(
        request: &Request,
        tariff: &Tariff,
        tools: Amount,
        costs: &[ContentCost],
        quality: CountQuality,
    ) -> Self {
        let saved = tariff.framing.saved(&request.messages, !request.tools.is_empty());
        let tools = Amount { tokens: tools.tokens.saturating_sub(saved), ..tools };
        let mut parts = Self {
            per_message: Vec::with_capacity(request.messages.len()),
            tools: tools.tokens,
            unseen: request.unseen_tokens.get(),
            ..Self::default()
        };
        let mut marks = tariff.framing.around_request();
        let mut content = Amount::default();
        let kept = tariff.keeps_reasoning_of(&request.messages);
        for ((message, cost), reasoning) in request.messages.iter().zip(costs).zip(kept) {
            let amount = cost.amount(reasoning);
            let by_role = parts.by_role.entry(message.role()).or_default();
            *by_role = by_role.saturating_add(amount.tokens);
            cost.add_to(&mut parts.by_kind, reasoning);
            parts.per_message.push(amount.tokens);
            marks = marks.plus(tariff.framing.around(message));
            content = content.plus(amount);
        }
        parts.framing = marks.tokens;
        let total = tools.plus(marks).plus(content).plus(Amount::exact(parts.unseen));
        parts.total = total.tokens;
        let is_exact = matches!(quality, CountQuality::ExactLocal | CountQuality::ExactProvider);
        parts.range = if is_exact { total } else { total.never_sure() }.range();
        parts
    }
}
