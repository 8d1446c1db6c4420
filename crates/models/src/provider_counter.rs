//! Counting by the provider: as exact as a count can be, and paid for with a request.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_loop::{
    ContextCount, ContextCounter, CountError, CountQuality, CounterCapability, Request, Retention, TokenCount,
};

use crate::dialect::{Interface, NoPlace, interface};
use crate::transport::Transport;
use crate::{Dialect, ModelSettings, SetupError, capability};

/// Asks the provider how many tokens a request takes: `count_tokens` of Anthropic, `responses/input_tokens` of
/// OpenAI, `countTokens` of Gemini.
///
/// The request is sent to be counted, so whoever counts it must not keep more of it than who answers it:
/// [`compatible_counter`](epitome_loop::compatible_counter) judges that by [`ContextCounter::capability`].
#[derive(Clone)]
pub struct ProviderCounter {
    settings: ModelSettings,
    interface: Arc<dyn Interface>,
    transport: Transport,
    capability: CounterCapability,
}

impl ProviderCounter {
    /// A counter of its own. One on the way of a model is made by
    /// [`NetworkModel::counter`](crate::NetworkModel::counter).
    ///
    /// # Errors
    /// [`SetupError`]; [`SetupError::NoCounting`] when the provider has no such service.
    pub fn new(
        settings: &ModelSettings,
        environment: &dyn Fn(&str) -> Option<String>,
        retention: Retention,
    ) -> Result<Self, SetupError> {
        let transport = Transport::new(settings, environment)?;
        Self::on(settings, Arc::from(interface(settings)), transport, retention)
    }

    pub(crate) fn on(
        settings: &ModelSettings,
        interface: Arc<dyn Interface>,
        transport: Transport,
        retention: Retention,
    ) -> Result<Self, SetupError> {
        let revision = match settings.dialect {
            Dialect::OpenAiChat(_) => return Err(SetupError::NoCounting),
            Dialect::OpenAiResponses => "openai responses/input_tokens",
            Dialect::AnthropicMessages => "anthropic messages/count_tokens",
            Dialect::GeminiContents => "gemini countTokens",
        };
        let capability = capability::counter(settings, &transport, retention, revision);
        Ok(Self { settings: settings.clone(), interface, transport, capability })
    }

    async fn ask(&self, request: &Request) -> Result<u64, CountError> {
        let outgoing = self.interface.count_request(request).ok_or(CountError::Unavailable)?;
        let outgoing =
            outgoing.map_err(|NoPlace { message, kind }| CountError::NotExact { message, kind })?;
        let incoming = self.transport.post(&*self.interface, outgoing, "application/json").await;
        let mut incoming = incoming.map_err(|_| CountError::Unavailable)?;
        let body = incoming.whole().await.map_err(|_| CountError::Unavailable)?;
        self.interface.read_count(&body).ok_or(CountError::Unavailable)
    }
}

#[async_trait]
impl ContextCounter for ProviderCounter {
    async fn count(&self, request: &Request) -> Result<ContextCount, CountError> {
        if request.model.provider != self.settings.provider || request.model.model.is_empty() {
            return Err(CountError::UnknownModel);
        }
        let asked = tokio::time::timeout(self.transport.bounds().total_timeout, self.ask(request));
        let tokens = asked.await.map_err(|_| CountError::Unavailable)??;
        Ok(ContextCount {
            model: request.model.clone(),
            input_tokens: TokenCount(tokens).saturating_add(request.unseen_tokens),
            quality: CountQuality::ExactProvider,
        })
    }

    fn capability(&self) -> CounterCapability {
        self.capability.clone()
    }
}

impl fmt::Debug for ProviderCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderCounter").field("settings", &self.settings).finish_non_exhaustive()
    }
}
