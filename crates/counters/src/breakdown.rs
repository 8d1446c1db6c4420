//! Where the tokens of a request go.

use std::collections::BTreeMap;

use epitome_loop::{Request, Role};

use crate::content_cost::{ContentCost, Tariff};
use crate::error_band::{Amount, CountRange};

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
    pub(crate) fn of(request: &Request, tariff: &Tariff, tools: Amount, mut costs: Vec<ContentCost>) -> Self {
        tariff.settle(&request.messages, &mut costs);
        let saved = tariff.framing.saved(&request.messages, !request.tools.is_empty());
        let tools = Amount { tokens: tools.tokens.saturating_sub(saved), ..tools };
        let mut parts = Self {
            per_message: Vec::with_capacity(request.messages.len()),
            tools: tools.tokens,
            framing: tariff.framing.request,
            unseen: request.unseen_tokens.get(),
            ..Self::default()
        };
        let mut doubt = tools;
        for (message, cost) in request.messages.iter().zip(&costs) {
            let tokens = cost.total();
            let by_role = parts.by_role.entry(message.role()).or_default();
            *by_role = by_role.saturating_add(tokens);
            cost.add_to(&mut parts.by_kind);
            parts.per_message.push(tokens);
            parts.framing = parts.framing.saturating_add(tariff.framing.around(message));
            doubt = doubt.plus(cost.amount());
        }
        parts.total = [parts.tools, parts.framing, parts.unseen]
            .iter()
            .chain(&parts.per_message)
            .fold(0, |sum, &tokens| sum.saturating_add(tokens));
        parts.range = Amount { tokens: parts.total, ..doubt }.range();
        parts
    }
}
