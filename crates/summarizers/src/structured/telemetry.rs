//! What a host's logs learn of a pass. Nothing of a conversation.

use epitome_loop::TokenCount;
use tracing::{debug, warn};

use super::outcome::StructuredFailure;
use super::section::{StructuredSummary, SummaryTemplate};

/// One event for each place of the template, then one for the pass. A section that is ever more often empty is the first
/// sign that a template no longer suits its model.
pub(super) fn report_success(
    template: &SummaryTemplate,
    committed: &StructuredSummary,
    budget: TokenCount,
    retried: bool,
) {
    for &section in template.rendered() {
        let state = if committed.items(section).is_empty() { "empty" } else { "populated" };
        debug!(
            target: "loopctl::metrics",
            metric = "loopctl.compaction.structured.sections",
            section = section.slug(),
            state,
        );
    }
    debug!(
        budget = budget.get(),
        populated = committed.populated(template),
        retried,
        "structured compaction complete"
    );
}

pub(super) fn report_failure(reason: StructuredFailure) {
    warn!(%reason, "structured compaction failed");
}
