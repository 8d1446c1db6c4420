//! What a request carries that is not in the file: as the user states it, or as the provider's figure shows.

use epitome_loop::{Request, TokenCount};
use epitome_sessionruntime::{ReportedContext, unseen_by_report};
use epitome_transcripts::Session;
use serde::Serialize;

use crate::args::SessionArgs;
use crate::failure::Failure;
use crate::run::run_to_end;
use crate::target::Target;

/// Tokens that are sent but not in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unseen {
    pub(crate) tokens: u64,
    pub(crate) source: UnseenSource,
}

/// How they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UnseenSource {
    /// The user said so.
    Stated,
    /// The provider's last figure for this context is higher than the count of what it covers.
    Reported,
    /// They are not known, and taken as none.
    Unknown,
}

impl Unseen {
    /// What the user states outranks the provider's figure. A figure for another model says nothing; one from
    /// before an earlier compaction is none that the session reports.
    pub(crate) fn of(args: &SessionArgs, session: &Session, target: &Target) -> Result<Self, Failure> {
        if let Some(tokens) = args.unseen {
            return Ok(Self { tokens, source: UnseenSource::Stated });
        }
        let other_model = session.model().is_some_and(|model| model.model != target.model.model);
        let Some(usage) = session.reported_usage().filter(|_| !other_model) else {
            return Ok(Self { tokens: 0, source: UnseenSource::Unknown });
        };
        let request = Request {
            model: target.model.clone(),
            tools: session.tools().clone(),
            messages: session.messages().clone(),
            unseen_tokens: TokenCount::ZERO,
        };
        let reported = ReportedContext { messages: usage.message + 1, tokens: usage.context_tokens };
        let unseen = run_to_end(unseen_by_report(&*target.counter, &request, reported))?;
        Ok(Self { tokens: unseen.map_err(Failure::Count)?.get(), source: UnseenSource::Reported })
    }
}
