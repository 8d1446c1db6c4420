//! Brings a model's summary within its budget, item by item.
//!
//! What gives way first, and why:
//! 1. Details of decisions, open items and state, those furthest down in their section first: a model writes what matters
//!    most first. Of equals the decision goes first and the state last: without it finished work is done again.
//! 2. The first decision, then the first open item.
//! 3. Constraints that are no rule of the user's own, the last first.
//! 4. The user's rules, those that weigh least first, of equal ones the older.
//! 5. Further items of the goal.
//!
//! The goal's first item and the state's stay. A summary that cannot hold both is none.

use std::cmp::Reverse;

use epitome_loop::{Section, SummaryRequest, SummarySections};

use super::carrying::Rules;

/// A summary within its budget.
pub(super) struct Fitted {
    pub(super) sections: SummarySections,
    /// How many items gave way, in the order of [`Section::ALL`].
    pub(super) left_out: [u64; 5],
    /// Indexes, in the constraints as they were, of those that stayed.
    pub(super) constraints: Vec<usize>,
}

/// Leaves items out until the rendered summary fits; `None` if it never does.
pub(super) fn fit(sections: &SummarySections, rules: &Rules, request: &SummaryRequest) -> Option<Fitted> {
    let order = order_of_giving_way(sections, rules);
    let fits = |gone: usize| is_within(&without(sections, &order, gone).0, request);
    let mut gone = 0;
    if !fits(0) {
        // Leaving more out never makes it longer.
        let (mut too_few, mut enough) = (0, order.len());
        if !fits(enough) {
            return None;
        }
        while enough - too_few > 1 {
            let middle = too_few.midpoint(enough);
            if fits(middle) { enough = middle } else { too_few = middle }
        }
        gone = enough;
    }
    let (sections, constraints) = without(sections, &order, gone);
    let mut left_out = [0; 5];
    for item in order.iter().take(gone) {
        if let Some(count) = left_out.get_mut(item.section as usize) {
            *count += 1;
        }
    }
    Some(Fitted { sections, left_out, constraints })
}

/// Whether the rendered summary keeps the request's limits, by the request's estimator.
pub(super) fn is_within(sections: &SummarySections, request: &SummaryRequest) -> bool {
    let is_short = request.max_bytes.is_none_or(|most| sections.rendered_len() <= most);
    is_short && request.estimator.estimate(&sections.render().xml) <= request.max_tokens
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Item {
    section: Section,
    at: usize,
}

/// All items that may go, the first to go first.
fn order_of_giving_way(sections: &SummarySections, rules: &Rules) -> Vec<Item> {
    let mut order = Vec::new();
    for section in Section::ALL {
        for at in 0..sections.items(section).len() {
            let rank = rules.ranks.get(&at).copied();
            let key = match (section, at) {
                (Section::Goal | Section::State, 0) => continue,
                (Section::Decisions, 0) => (1, Reverse(0), 0),
                (Section::OpenItems, 0) => (1, Reverse(0), 1),
                (Section::Decisions, _) => (0, Reverse(at), 0),
                (Section::OpenItems, _) => (0, Reverse(at), 1),
                (Section::State, _) => (0, Reverse(at), 2),
                (Section::Constraints, _) => match rank {
                    None => (2, Reverse(at), 0),
                    Some(rank) => (3, Reverse(rank), 0),
                },
                (Section::Goal, _) => (4, Reverse(at), 0),
            };
            order.push((key, Item { section, at }));
        }
    }
    order.sort_by_key(|(key, _)| *key);
    order.into_iter().map(|(_, item)| item).collect()
}

/// The sections without the first `gone` items of the order, and which constraints are left.
fn without(sections: &SummarySections, order: &[Item], gone: usize) -> (SummarySections, Vec<usize>) {
    let mut dropped: Vec<(Section, usize)> =
        order.iter().take(gone).map(|item| (item.section, item.at)).collect();
    dropped.sort_unstable();
    let stays = |section: Section, at: usize| dropped.binary_search(&(section, at)).is_err();
    let mut left = SummarySections::default();
    let mut constraints = Vec::new();
    for section in Section::ALL {
        for (at, item) in sections.items(section).iter().enumerate() {
            if stays(section, at) {
                left.items_mut(section).push(item.clone());
                if section == Section::Constraints {
                    constraints.push(at);
                }
            }
        }
    }
    (left, constraints)
}
