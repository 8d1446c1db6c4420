//! Stand-ins for what a session needs from outside: a model that answers by script.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use epitome_counters::{LocalCounter, model_info};
use epitome_loop::{ModelKey, Summarizer, SummarizerError, SummaryDraft, SummaryRequest};
use epitome_loopruntime::parse_summary;
use epitome_sessionruntime::Ports;
use epitome_summarizers::Extractive;

/// What a model answers when it is asked for a summary.
#[derive(Clone, Debug)]
pub(crate) struct ModelAnswer {
    text: String,
    refused: Arc<AtomicBool>,
}

impl ModelAnswer {
    pub(crate) fn new(text: String) -> Self {
        Self { text, refused: Arc::default() }
    }

    /// Whether the strict grammar refused the answer.
    pub(crate) fn was_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Summarizer for ModelAnswer {
    async fn summarize(&self, _: SummaryRequest) -> Result<SummaryDraft, SummarizerError> {
        match parse_summary(self.text.as_bytes()) {
            Ok(summary) => Ok(summary.sections().into()),
            Err(_) => {
                self.refused.store(true, Ordering::Relaxed);
                Err(SummarizerError::Unavailable)
            }
        }
    }

    fn name(&self) -> &'static str {
        "scripted"
    }
}

/// The counter of a model of our table, and the scripted answer, or without one the extractive summarizer.
pub(crate) fn ports_for(model: &str, answer: Option<&ModelAnswer>) -> Option<(ModelKey, Ports)> {
    let info = model_info(model)?;
    let counter = Arc::new(LocalCounter::new(&info, true).ok()?);
    let summarizer: Arc<dyn Summarizer> = match answer {
        Some(answer) => Arc::new(answer.clone()),
        None => Arc::new(Extractive::new()),
    };
    Some((info.key, Ports { estimator: counter.clone(), counter, summarizer }))
}
