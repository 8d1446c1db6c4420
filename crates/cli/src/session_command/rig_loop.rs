//! The loop of a rig file, with what this command has to work for it.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_loop::{
    ContextCount, ContextCounter, CountError, CountQuality, CounterCapability, CounterTransport, Request,
};
use epitome_rig::BoundLoop;
use epitome_transcripts::Format;

use super::failure::JournalFailure;
use super::live::RunningLoop;
use crate::check_rig::read_rig;
use crate::failure::Failure;
use crate::summarizer::{SummarizerArgs, Summarizing, of_rig};
use crate::target::Target;

/// Reads the loop with this name, or the only one. `request` is what the session would send, whatever its model;
/// `summarizer` is there for commands by which a compaction may be made.
pub(super) fn read(
    path: &Path,
    name: Option<&str>,
    request: Request,
    format: Format,
    summarizer: Option<&SummarizerArgs>,
) -> Result<RunningLoop, Failure> {
    let rig = read_rig(path, false)?;
    let path = || path.to_owned();
    let bound: &BoundLoop = match (name, rig.loops()) {
        (Some(name), _) => rig.bound_loop(name).ok_or_else(|| JournalFailure::NoSuchLoop { path: path() })?,
        (None, [only]) => only,
        (None, loops) => return Err(JournalFailure::WhichLoop { path: path(), count: loops.len() }.into()),
    };
    let definition = bound.definition();
    let model = definition.model();
    let target = Target::of_request(&Request { model: model.key(), ..request }, model.limits, format)?;
    let counter: Arc<dyn ContextCounter> = match definition.context() {
        None => target.counter.clone(),
        Some(context) => {
            let declared = context.counter().clone();
            if declared.transport != CounterTransport::Local || !can_be(target.quality(), declared.quality) {
                return Err(JournalFailure::CounterElsewhere { path: path() }.into());
            }
            Arc::new(Declared { counter: target.counter.clone(), declared })
        }
    };
    let summarizing = match summarizer {
        Some(args) => of_rig(bound, args)?,
        None => Summarizing::idle(bound),
    };
    RunningLoop::of(bound.clone(), counter, &target, summarizing)
}

/// Whether a count of this quality may be declared as that one: an exact count is a good estimate as well.
fn can_be(found: CountQuality, declared: CountQuality) -> bool {
    found == declared || (found, declared) == (CountQuality::ExactLocal, CountQuality::HeuristicEstimate)
}

/// Our counter, under the name that the rig's author has for it.
struct Declared {
    counter: Arc<epitome_counters::LocalCounter>,
    declared: CounterCapability,
}

#[async_trait]
impl ContextCounter for Declared {
    async fn count(&self, request: &Request) -> Result<ContextCount, CountError> {
        let count = self.counter.count(request).await?;
        Ok(ContextCount { quality: self.declared.quality, ..count })
    }

    fn capability(&self) -> CounterCapability {
        self.declared.clone()
    }
}
