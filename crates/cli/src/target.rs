//! Which model a session is for, with its limits and a counter that fits it.

use std::sync::Arc;

use epitome_counters::{CountRange, ErrorBand, Family, LocalCounter, ModelInfo, model_info};
use epitome_loop::{ContextCounter as _, ContextLimits, CountQuality, ModelKey, Request, TokenCount};
use epitome_transcripts::{Format, Session};

use crate::args::SessionArgs;
use crate::failure::Failure;

/// The model that a session is for, with a counter that fits it.
pub(crate) struct Target {
    pub(crate) model: ModelKey,
    pub(crate) limits: ContextLimits,
    pub(crate) counter: Arc<LocalCounter>,
    /// What the session's messages and tools take, and how far off that may be.
    pub(crate) range: CountRange,
}

impl Target {
    /// Works out the model from what the user says, else from what the session says. A window given by the
    /// user outranks the table, and the table what the session says of its model's window.
    pub(crate) fn of(args: &SessionArgs, session: &Session) -> Result<Self, Failure> {
        let named = named_model(args.model.as_deref(), args.window)?.or_else(|| {
            session.model().filter(|_| args.model.is_none()).and_then(|key| model_info(&key.model))
        });
        let window = match &named {
            Some(_) => args.window,
            None => args.window.or_else(|| Some(session.context_window()?.get())),
        };
        let limits = limits_of(named.as_ref(), window)?;
        let model = match (&args.model, &named) {
            (Some(_), Some(info)) => info.key.clone(),
            (Some(name), None) => ModelKey::new("unknown", name.as_str()),
            (None, _) => session.model().cloned().unwrap_or_else(|| ModelKey::new("unknown", "unknown")),
        };
        let counter =
            Arc::new(fitting_counter(model.clone(), named.as_ref(), session, args.unseen.unwrap_or(0)));
        let request = request_of(&model, session, args.unseen.unwrap_or(0));
        let range = counter.range(&request).map_err(Failure::Count)?;
        Ok(Self { model, limits, counter, range })
    }

    /// The target of a request whose model and limits are known. `format` says whose form requests have where the model
    /// is not in the table.
    pub(crate) fn of_request(
        request: &Request,
        limits: ContextLimits,
        format: Format,
    ) -> Result<Self, Failure> {
        let known = model_info(&request.model.model).and_then(|info| counter_for(&info, request));
        let counter = known.unwrap_or_else(|| LocalCounter::for_unknown_model(family_of(format)));
        let range = counter.range(request).map_err(Failure::Count)?;
        Ok(Self { model: request.model.clone(), limits, counter: Arc::new(counter), range })
    }

    /// How good the counts are.
    pub(crate) fn quality(&self) -> CountQuality {
        self.counter.capability().quality
    }

    /// How far off the counts may be; `None` when they are exact.
    pub(crate) fn error_band(&self) -> Option<ErrorBand> {
        (self.quality() == CountQuality::HeuristicEstimate).then(|| self.range.band())
    }

    /// What some messages of a session take.
    pub(crate) fn tokens_of(&self, session: &Session, messages: &[usize]) -> Result<u64, Failure> {
        let found = messages.iter().filter_map(|&at| session.messages().get(at));
        found
            .map(|message| self.counter.count_message(message).map(TokenCount::get).map_err(Failure::Count))
            .sum()
    }

    /// What must stay free so that a request whose estimate just fits also fits at the upper end of its range: at
    /// most a quarter of the window. Nothing when the counts are exact.
    pub(crate) fn count_error(&self) -> TokenCount {
        let ContextLimits { window, max_input, .. } = self.limits;
        let window = if window == TokenCount::ZERO { max_input } else { window };
        match self.quality() {
            CountQuality::HeuristicEstimate => {
                TokenCount(self.range.safety_margin(window).get().min(window.get() / 4))
            }
            CountQuality::ExactLocal | CountQuality::ExactProvider => TokenCount::ZERO,
        }
    }
}

/// The model that the user named, if the table has it. Any name will do beside a window.
pub(crate) fn named_model(name: Option<&str>, window: Option<u64>) -> Result<Option<ModelInfo>, Failure> {
    match name.map(model_info) {
        Some(None) if window.is_none() => Err(Failure::UnknownModel),
        known => Ok(known.flatten()),
    }
}

/// What the model can hold. A window given by the user outranks the table.
pub(crate) fn limits_of(model: Option<&ModelInfo>, window: Option<u64>) -> Result<ContextLimits, Failure> {
    let mut limits = model.map(|info| info.limits).unwrap_or_default();
    if let Some(window) = window {
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
    Ok(limits)
}

/// An exact counter where the session allows one, else one that estimates what cannot be counted.
fn fitting_counter(
    model: ModelKey,
    info: Option<&ModelInfo>,
    session: &Session,
    unseen_tokens: u64,
) -> LocalCounter {
    let unknown = || LocalCounter::for_unknown_model(family_of(session.format()));
    let Some(info) = info else { return unknown() };
    counter_for(info, &request_of(&model, session, unseen_tokens)).unwrap_or_else(unknown)
}

/// A counter of a known model that can count this request: an exact one where there is one.
pub(crate) fn counter_for(info: &ModelInfo, request: &Request) -> Option<LocalCounter> {
    let info = ModelInfo { key: request.model.clone(), ..info.clone() };
    match LocalCounter::new(&info, false) {
        // A session that mentions pictures or tools cannot be counted exactly, and neither can its parts.
        Ok(exact) if exact.count_request(request).is_ok() => Some(exact),
        _ => LocalCounter::new(&info, true).ok(),
    }
}

/// Whose form the requests of a session have.
fn family_of(format: Format) -> Family {
    match format {
        Format::AnthropicMessages => Family::Anthropic,
        Format::Gemini => Family::Gemini,
        Format::OpenAiResponses | Format::CodexRollout => Family::OpenAi,
        // Many makers offer their models in the form of OpenAI's chat.
        _ => Family::Other,
    }
}

fn request_of(model: &ModelKey, session: &Session, unseen_tokens: u64) -> Request {
    Request {
        model: model.clone(),
        tools: session.tools().clone(),
        messages: session.messages().clone(),
        unseen_tokens: TokenCount(unseen_tokens),
    }
}
