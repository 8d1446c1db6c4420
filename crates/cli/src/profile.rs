//! What the command line assumes where the user says nothing: the profile. The libraries assume nothing.

use std::sync::Arc;
use std::time::Duration;

use epitome_counters::{Encoding, LocalCounter, ModelInfo, model_info};
use epitome_loop::{
    BasisPoints, CompactionPolicy, ContextCounter as _, ContextLimits, CountQuality, CounterPolicy,
    KeepRecent, ModelKey, Request, ResolvedLimits, SharedText, TokenCount, resolve_context_limits,
};
use epitome_transcripts::Session;

use crate::args::{CompactArgs, SessionArgs};
use crate::failure::Failure;

/// The model that a session is for, with a counter that fits it.
pub(crate) struct Target {
    pub(crate) model: ModelKey,
    pub(crate) limits: ContextLimits,
    pub(crate) counter: Arc<LocalCounter>,
}

impl Target {
    /// Works out the model from what the user says, else from what the session says. A window given by the
    /// user outranks the table, and the table what the session says of its model's window.
    pub(crate) fn of(args: &SessionArgs, session: &Session) -> Result<Self, Failure> {
        let named = match &args.model {
            Some(name) => match model_info(name) {
                None if args.window.is_none() => return Err(Failure::UnknownModel),
                known => known,
            },
            None => session.model().and_then(|key| model_info(&key.model)),
        };
        let mut limits = match &named {
            Some(info) => info.limits,
            None => {
                let window = session.context_window().unwrap_or_default();
                ContextLimits { window, max_input: TokenCount::ZERO, max_output: TokenCount::ZERO }
            }
        };
        if let Some(window) = args.window {
            let within = |known: TokenCount| TokenCount(known.get().min(window));
            limits = ContextLimits {
                window: TokenCount(window),
                max_input: TokenCount::ZERO,
                max_output: within(limits.max_output),
            };
        }
        if limits.window == TokenCount::ZERO && limits.max_input == TokenCount::ZERO {
            return Err(Failure::NoWindow);
        }
        let model = match (&args.model, &named) {
            (Some(_), Some(info)) => info.key.clone(),
            (Some(name), None) => ModelKey::new("unknown", name.as_str()),
            (None, _) => session.model().cloned().unwrap_or_else(|| ModelKey::new("unknown", "unknown")),
        };
        let counter =
            Arc::new(fitting_counter(model.clone(), named.as_ref(), session, args.unseen.unwrap_or(0)));
        Ok(Self { model, limits, counter })
    }

    /// How good the counts are.
    pub(crate) fn quality(&self) -> CountQuality {
        self.counter.capability().quality
    }

    /// The room that the profile leaves for input.
    pub(crate) fn room(&self) -> Result<ResolvedLimits, Failure> {
        let (reserved, margin) = (reserved_output(self.limits), safety_margin(self.limits, self.quality()));
        resolve_context_limits(&self.model, &self.limits, reserved, margin).map_err(|_| Failure::NoWindow)
    }

    /// The policy of one run.
    pub(crate) fn policy(&self, args: &CompactArgs) -> CompactionPolicy {
        let room = window_or_input(self.limits);
        CompactionPolicy {
            automatic: true,
            counter_policy: CounterPolicy::AllowConservative,
            compact_at: args.compact_at,
            rearm_below: rearm_below(args.compact_at),
            reserved_output: reserved_output(self.limits),
            safety_margin: safety_margin(self.limits, self.quality()),
            max_summary_tokens: TokenCount(
                args.max_summary_tokens.unwrap_or_else(|| (room / 15).clamp(100, 4_000)),
            ),
            count_timeout: Duration::from_secs(60),
            hustle: SharedText::from("extractive"),
            keep_recent: Some(KeepRecent {
                segments: u64::MAX,
                tokens: TokenCount(args.keep_recent_tokens.unwrap_or_else(|| (room / 10).clamp(1, 20_000))),
            }),
            max_request_bytes: None,
        }
    }
}

/// An exact counter where the session allows one, else one that estimates what cannot be counted.
fn fitting_counter(
    model: ModelKey,
    info: Option<&ModelInfo>,
    session: &Session,
    unseen_tokens: u64,
) -> LocalCounter {
    let any_model = || LocalCounter::with_encoding(Encoding::O200kBase, true);
    let Some(info) = info else { return any_model() };
    let request = Request {
        model: model.clone(),
        tools: session.tools().clone(),
        messages: session.messages().clone(),
        unseen_tokens: TokenCount(unseen_tokens),
    };
    let info = ModelInfo { key: model, ..info.clone() };
    match LocalCounter::new(&info, false) {
        // A session that mentions pictures or tools cannot be counted exactly, and neither can its parts.
        Ok(exact) if exact.count_request(&request).is_ok() => exact,
        _ => LocalCounter::new(&info, true).unwrap_or_else(|_| any_model()),
    }
}

fn window_or_input(limits: ContextLimits) -> u64 {
    if limits.window == TokenCount::ZERO { limits.max_input.get() } else { limits.window.get() }
}

/// Room for the answer: an eighth of the window, at most 32,000 tokens.
fn reserved_output(limits: ContextLimits) -> TokenCount {
    TokenCount((window_or_input(limits) / 8).clamp(1, 32_000))
}

/// Room for the error of the count: nothing when it is exact, else a fiftieth of the window.
fn safety_margin(limits: ContextLimits, quality: CountQuality) -> TokenCount {
    match quality {
        CountQuality::HeuristicEstimate => TokenCount((window_or_input(limits) / 50).max(1)),
        CountQuality::ExactLocal | CountQuality::ExactProvider => TokenCount::ZERO,
    }
}

/// Seven tenths of the level at which to compact, as in the seed's example.
fn rearm_below(compact_at: BasisPoints) -> BasisPoints {
    BasisPoints((u32::from(compact_at.get()) * 7 / 10).clamp(1, u32::from(u16::MAX)) as u16)
}
