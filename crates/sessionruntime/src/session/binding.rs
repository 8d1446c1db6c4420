//! The loop that a session runs, with what works for it.

use std::sync::Arc;
use std::time::Duration;

use epitome_loop::{
    ContextBasis, ContextLimitUnknown, FingerprintError, HustleDefinition, LoopContext, ModelKey,
    ResolvedLimits, TokenCount, Trigger, ValidPolicy, resolve_context_limits,
};
use epitome_rig::{BoundCompaction, BoundLoop};

use super::frame::Framed;
use super::open::OpenError;
use super::ports::LoopPorts;
use crate::journal::SessionOpened;
use crate::measuring::Measuring;

/// A loop, with what works for it.
pub(super) struct Binding {
    pub(super) bound: BoundLoop,
    pub(super) ports: LoopPorts,
    pub(super) model: ModelKey,
    /// The room for input; `None` when the loop's context is left to itself.
    limits: Option<ResolvedLimits>,
}

impl Binding {
    pub(super) fn new(bound: BoundLoop, ports: LoopPorts) -> Result<Self, OpenError> {
        let definition = bound.definition();
        let model = definition.model().key();
        let limits = match definition.context() {
            None => None,
            Some(context) => {
                if ports.counter.capability() != *context.counter() {
                    return Err(OpenError::OtherCounter);
                }
                Some(room(&bound, context).map_err(OpenError::Limit)?)
            }
        };
        let compaction = bound.compaction();
        let needs_fallback = compaction.is_some_and(|compaction| compaction.fallback.is_some());
        if compaction.is_some() && ports.worker.is_none() || needs_fallback && ports.fallback.is_none() {
            return Err(OpenError::NoWorker);
        }
        Ok(Self { bound, ports, model, limits })
    }

    /// What is done about the context; `None` when it is left to itself.
    pub(super) fn context(&self) -> Option<&LoopContext> {
        self.bound.definition().context()
    }

    /// The policy, when the loop compacts.
    pub(super) fn policy(&self) -> Option<&ValidPolicy> {
        self.bound.definition().compaction()
    }

    pub(super) fn trigger(&self) -> Trigger {
        self.policy().map_or(Trigger::Manual, ValidPolicy::trigger)
    }

    /// How long an attempt may take: as long as its parts may by their own timeouts, both tries of each hustle included.
    pub(super) fn attempt_timeout(&self) -> Duration {
        /// So many counts a plan takes at most, as its steps halve what they try.
        const COUNTS: u32 = 80;
        let Some(BoundCompaction { policy, hustle, fallback, limits }) = self.bound.compaction() else {
            return Duration::from_secs(1);
        };
        let counting = policy.count_timeout().saturating_mul(COUNTS);
        let records = limits.audit_timeout().saturating_mul(3);
        let ends = limits.finalization_timeout().saturating_add(limits.worker_drain_timeout());
        let run = |hustle: &HustleDefinition| {
            hustle.timeout().saturating_mul(2).saturating_add(records).saturating_add(ends)
        };
        let fallback = fallback.map_or(Duration::ZERO, |fallback| run(fallback));
        counting.saturating_add(run(hustle)).saturating_add(fallback)
    }

    /// What the model can hold, where that is known.
    pub(super) fn window(&self) -> Option<TokenCount> {
        let window = self.bound.definition().model().limits.window;
        (window > TokenCount::ZERO).then_some(window)
    }

    fn count_timeout(&self) -> Option<Duration> {
        let context = self.context()?;
        let observed = context.observation().map(|policy| policy.count_timeout);
        observed.or_else(|| context.compaction().map(ValidPolicy::count_timeout))
    }

    /// Measures requests of this loop for one context; `None` when the loop's context is left to itself.
    pub(super) fn measuring(
        &self,
        framed: &Framed,
        basis: ContextBasis,
    ) -> Result<Option<Measuring>, FingerprintError> {
        let (Some(context), Some(limits)) = (self.context(), &self.limits) else { return Ok(None) };
        let model = self.bound.definition().model();
        Ok(Some(Measuring {
            counter: Arc::clone(&self.ports.counter),
            quality: context.counter().quality,
            model: self.model.clone(),
            limits: *limits,
            basis,
            request_fingerprint: framed.fingerprint(model, context, basis)?,
            tools: Arc::clone(&framed.frame.tools),
            unseen_tokens: framed.frame.unseen_tokens,
            front: Arc::clone(&framed.front),
            back: Arc::clone(&framed.back),
            scale: None,
            count_timeout: self.count_timeout(),
        }))
    }

    /// What the journal says of it.
    pub(super) fn opened(&self, framed: &Framed) -> SessionOpened {
        let definition = self.bound.definition();
        SessionOpened {
            model: self.model.clone(),
            limits: definition.model().limits,
            policy_revision: definition.policy_revision().clone(),
            tools: Arc::clone(&framed.frame.tools),
        }
    }
}

fn room(bound: &BoundLoop, context: &LoopContext) -> Result<ResolvedLimits, ContextLimitUnknown> {
    let model = bound.definition().model();
    let (reserved_output, safety_margin) = match (context.observation(), context.compaction()) {
        (Some(policy), _) => (policy.reserved_output, policy.safety_margin),
        (None, Some(policy)) => (policy.reserved_output(), policy.safety_margin()),
        (None, None) => Default::default(),
    };
    resolve_context_limits(&model.key(), &model.limits, reserved_output, safety_margin)
}
