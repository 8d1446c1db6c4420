//! A model as the summarizer: which one, where, and how large its window is.

use std::sync::Arc;
use std::time::Duration;

use epitome_counters::{Family, LocalCounter, model_info};
use epitome_loop::{
    ContextLimits, ModelCallError, ModelCallErrorKind, ModelKey, Sampling, SharedText, SystemPrompt,
    TokenCount,
};
use epitome_models::{Bounds, ChatServer, Dialect, NetworkModel, Redacting, ServedModel, is_same_model};
use epitome_sessionruntime::{HustleWorker, SummarizerWorker};
use epitome_summarizers::{ModelSummarizer, ModelSummarizerSettings, SummaryForm};

use super::args::FormKind;
use super::watch::{AskedClient, Server, Watch, WatchedModel};
use super::{SummarizerArgs, SummarizerFault};
use crate::failure::Failure;
use crate::model_endpoint::{LOOK, ModelEndpoint, is_local};
use crate::run::run_to_end;

/// Who is to be asked, as the user or a rig's file says it.
pub(super) struct ModelWish<'a> {
    pub(super) endpoint: &'a ModelEndpoint,
    /// `None`: the only one that the server serves.
    pub(super) model: Option<&'a str>,
    /// What it can hold, where that is known already.
    pub(super) limits: Option<ContextLimits>,
    pub(super) prompt: SystemPrompt,
    pub(super) sampling: Sampling,
    /// Room for reasoning in its answer; `None`: what is usual.
    pub(super) reasoning: Option<TokenCount>,
    pub(super) timeout: Duration,
}

/// A model that can be asked.
#[derive(Clone)]
pub(super) struct AskedModel {
    pub(super) endpoint: ModelEndpoint,
    pub(super) client: AskedClient,
    /// `None`: the server was not reached, and serves one model whose name nobody gave.
    pub(super) name: Option<SharedText>,
    /// `None`: the server was not reached.
    pub(super) limits: Option<ContextLimits>,
    /// Whether what it is asked stays on this machine.
    pub(super) is_local: bool,
}

/// The longest answer that is taken. No summary comes near it.
const ANSWER_BYTES: u64 = 8 << 20;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

impl AskedModel {
    /// Finds the model. The server is asked what it serves only where name or window are not known otherwise.
    pub(super) fn find(wish: &ModelWish<'_>, args: &SummarizerArgs, watch: &Watch) -> Result<Self, Failure> {
        let ModelWish { endpoint, .. } = wish;
        let key = args.model_key.as_deref();
        let bounds = Bounds {
            connect_timeout: CONNECT.min(wish.timeout),
            total_timeout: wish.timeout,
            answer_bytes: ANSWER_BYTES,
        };
        let client = endpoint.client(key, bounds)?;
        if !client.has_key() {
            let variable = key.or(endpoint.key_variable()).unwrap_or_default().to_owned();
            return Err(SummarizerFault::NoKey { endpoint: endpoint.name().to_owned(), variable }.into());
        }
        let stated = args.summarizer_window.map(of_window).or(wish.limits);
        let found =
            Found::of(wish, stated, &client, || run_to_end(endpoint.client(key, LOOK)?.served_models()))?;
        let is_local = is_local(&client);
        let server = match found.error {
            Some(error) => Server::NotReached(error),
            None => Server::Reached(Box::new(client)),
        };
        let watched = WatchedModel { server, watch: watch.clone() };
        let client = match args.no_redact {
            true => AskedClient::AsItIs(watched),
            false => AskedClient::Redacting(Redacting::new(watched)),
        };
        let Found { name, limits, error: _ } = found;
        Ok(Self { endpoint: (*endpoint).clone(), client, name, limits, is_local })
    }

    /// The model's key.
    pub(super) fn key(&self) -> ModelKey {
        // It must have a name; which one it would be, the server did not say.
        ModelKey::new(self.endpoint.provider(), self.name.clone().unwrap_or_else(|| "unknown".into()))
    }

    /// The worker that asks it.
    pub(super) fn worker(
        &self,
        wish: &ModelWish<'_>,
        form: FormKind,
    ) -> Result<Arc<dyn HustleWorker>, Failure> {
        let form = form_of(form, &self.endpoint)?;
        let key = self.key();
        // A server that was not reached is not asked, so any plan will do.
        let limits = self.limits.unwrap_or_else(|| of_window(u64::from(u32::MAX)));
        let counter = counter(&key, self.endpoint.dialect());
        let settings = ModelSummarizerSettings {
            prompt: wish.prompt.text.clone(),
            form,
            sampling: wish.sampling.clone(),
            reasoning: wish.reasoning.unwrap_or_else(|| usual_reasoning(&limits)),
            estimator: Some(Arc::new(counter)),
            ..ModelSummarizerSettings::new(key.model, limits)
        };
        let summarizer = ModelSummarizer::new(self.client.client(), settings);
        let summarizer = summarizer.map_err(SummarizerFault::Model)?;
        Ok(Arc::new(SummarizerWorker::new(Arc::new(summarizer))))
    }
}

/// What is known of the model.
#[derive(Debug)]
struct Found {
    name: Option<SharedText>,
    limits: Option<ContextLimits>,
    /// Why the server did not say more.
    error: Option<ModelCallError>,
}

impl Found {
    fn of(
        wish: &ModelWish<'_>,
        stated: Option<ContextLimits>,
        client: &NetworkModel,
        look: impl FnOnce() -> Result<Result<Vec<ServedModel>, ModelCallError>, Failure>,
    ) -> Result<Self, Failure> {
        let endpoint = || wish.endpoint.name().to_owned();
        let tabled = |name: &str| model_info(name).map(|info| info.limits);
        let limits = match (stated, wish.model) {
            // A server on this machine may have given a model less than its maker does.
            (None, Some(name)) if !is_local(client) => tabled(name),
            (stated, _) => stated,
        };
        if let (Some(name), Some(limits)) = (wish.model, limits) {
            return Ok(Self { name: Some(name.into()), limits: Some(limits), error: None });
        }
        let served = match look()? {
            Ok(served) => served,
            Err(error) => {
                let limits = limits.or_else(|| wish.model.and_then(tabled));
                return match wish.model {
                    Some(name) if limits.is_some() => {
                        Ok(Self { name: Some(name.into()), limits, error: None })
                    }
                    // It serves models and no list of them.
                    Some(_) if is_about_lists(error.kind) => {
                        Err(SummarizerFault::NoWindow { endpoint: endpoint() }.into())
                    }
                    None if is_about_lists(error.kind) => {
                        Err(SummarizerFault::NoModel { endpoint: endpoint(), served: Vec::new() }.into())
                    }
                    name => Ok(Self { name: name.map(SharedText::from), limits, error: Some(error) }),
                };
            }
        };
        let name = match (wish.model, served.as_slice()) {
            (Some(name), _) => SharedText::from(name),
            (None, [only]) => only.name.clone(),
            (None, served) => {
                let served = served.iter().map(|model| model.name.to_string()).collect();
                return Err(SummarizerFault::NoModel { endpoint: endpoint(), served }.into());
            }
        };
        let limits = limits.or_else(|| window_of(&served, &name).map(of_window)).or_else(|| tabled(&name));
        let limits = limits.ok_or_else(|| SummarizerFault::NoWindow { endpoint: endpoint() })?;
        Ok(Self { name: Some(name), limits: Some(limits), error: None })
    }
}

/// Whether a server that failed so may serve all the same.
fn is_about_lists(kind: ModelCallErrorKind) -> bool {
    use ModelCallErrorKind as Kind;
    matches!(kind, Kind::Malformed | Kind::TooLarge { .. } | Kind::Status(400..=499))
        && !matches!(kind, Kind::Status(401 | 403 | 408 | 429))
}

fn window_of(served: &[ServedModel], name: &str) -> Option<u64> {
    let exact = served.iter().find(|model| model.name == *name);
    let found = exact.or_else(|| served.iter().find(|model| is_same_model(name, &model.name)))?;
    found.window.map(TokenCount::get)
}

fn of_window(window: u64) -> ContextLimits {
    ContextLimits { window: TokenCount(window), ..ContextLimits::default() }
}

/// Room for reasoning. Models that do not reason leave it unused; those that do would be cut without it.
fn usual_reasoning(limits: &ContextLimits) -> TokenCount {
    let window = limits.window.get().max(limits.max_input.get());
    let most = if limits.max_output == TokenCount::ZERO { u64::MAX } else { limits.max_output.get() / 2 };
    TokenCount((window / 8).min(8_192).min(most))
}

/// Counts for the model that is asked, not for the one whose context is compacted.
fn counter(key: &ModelKey, dialect: Dialect) -> LocalCounter {
    let family = match dialect {
        Dialect::OpenAiResponses | Dialect::OpenAiChat(ChatServer::OpenAi) => Family::OpenAi,
        Dialect::AnthropicMessages => Family::Anthropic,
        Dialect::GeminiContents => Family::Gemini,
        _ => Family::Other,
    };
    let known = model_info(&key.model).and_then(|info| LocalCounter::new(&info, true).ok());
    known.unwrap_or_else(|| LocalCounter::for_unknown_model(family))
}

fn form_of(form: FormKind, endpoint: &ModelEndpoint) -> Result<SummaryForm, Failure> {
    let dialect = endpoint.dialect();
    let takes_grammars = dialect == Dialect::OpenAiChat(ChatServer::LlamaCpp);
    Ok(match form {
        FormKind::Xml => SummaryForm::Xml,
        FormKind::Json => SummaryForm::JsonSchema,
        FormKind::Grammar if takes_grammars => SummaryForm::Gbnf,
        FormKind::Grammar => {
            return Err(SummarizerFault::NoGrammar { endpoint: endpoint.name().to_owned() }.into());
        }
        FormKind::Auto if takes_grammars => SummaryForm::Gbnf,
        FormKind::Auto if endpoint.takes_schemas() => SummaryForm::JsonSchema,
        FormKind::Auto => SummaryForm::Xml,
    })
}
