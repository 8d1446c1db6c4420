//! The summarizer without a model.

use std::sync::Arc;

use epitome_counters::HeuristicEstimator;
use epitome_loop::{SummaryRequest, TokenCount};
use epitome_summarizers::Extractive;

use crate::agent_text::agent_session;
use crate::path::{HotPath, Measured, Target};
use crate::rivals::FeasibilityScan;
use crate::stopwatch::duel;

/// The bare scan reads 146 MB/s where 50 MB/s are asked for. Against it, a slow or busy machine is fair.
const SCAN: Target = Target::AtMost(146.0 / 50.0, "feasibility scan");

/// Why it may be somewhat short of the target.
const RULES_APART: &str = "the text forbids something in every other line, and each of these rules is held against the ones before it, so \
     that none goes for another";

pub(crate) const PATHS: &[HotPath] = &[
    HotPath {
        group: "extractive",
        name: "extractive summary, 1 MB",
        target: SCAN,
        reason: Some(RULES_APART),
        measure: || extractive(1_000_000),
    },
    HotPath {
        group: "extractive",
        name: "extractive summary, 10 MB",
        target: SCAN,
        reason: Some(RULES_APART),
        measure: || extractive(10_000_000),
    },
];

fn extractive(bytes: usize) -> Measured {
    let request = summary_request(bytes);
    let scan = FeasibilityScan::new();
    let mut fits = true;
    let mut duel = duel(
        5,
        |_| fits &= Extractive::new().summarize_now(&request).is_ok(),
        |_| {
            std::hint::black_box(scan.run(&request.transcript));
        },
    );
    duel.agreed &= fits;
    duel.on(bytes)
}

/// A session of about so many bytes and the budget of a usual summary.
#[must_use]
pub fn summary_request(bytes: usize) -> SummaryRequest {
    SummaryRequest {
        transcript: agent_session(bytes),
        previous: None,
        instructions: None,
        max_tokens: TokenCount(2_000),
        max_bytes: None,
        estimator: Arc::new(HeuristicEstimator),
        correction: None,
        carry_constraints: true,
    }
}
