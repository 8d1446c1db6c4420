//! Where the tokens of a request go.

use std::collections::BTreeMap;

use epitome_loop::{Message, Request, Role};

use crate::content_cost::{ContentCost, Tariff};

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
    /// Content of each message in order.
    pub per_message: Vec<u64>,
    /// Tool definitions.
    pub tools: u64,
    /// Marks around messages and around the request.
    pub framing: u64,
    /// What the user says is sent beside what is known.
    pub unseen: u64,
    /// The whole request.
    pub total: u64,
}

impl Breakdown {
    pub(crate) fn of(
        request: &Request,
        tariff: &Tariff,
        tools: u64,
        mut content: impl FnMut(&Message) -> ContentCost,
    ) -> Self {
        let mut parts = Self {
            per_message: Vec::with_capacity(request.messages.len()),
            tools,
            framing: tariff.framing.request,
            unseen: request.unseen_tokens.get(),
            ..Self::default()
        };
        for message in request.messages.iter() {
            let cost = content(message);
            let tokens = cost.total();
            let by_role = parts.by_role.entry(message.role()).or_default();
            *by_role = by_role.saturating_add(tokens);
            cost.add_to(&mut parts.by_kind);
            parts.per_message.push(tokens);
            parts.framing = parts.framing.saturating_add(tariff.frame(message));
        }
        parts.total = [parts.tools, parts.framing, parts.unseen]
            .iter()
            .chain(&parts.per_message)
            .fold(0, |sum, &tokens| sum.saturating_add(tokens));
        parts
    }
}
