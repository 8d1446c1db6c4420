//! The client: one for all interfaces.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_loop::{
    InferenceCapability, Message, ModelAnswer, ModelCall, ModelCallError, ModelCallErrorKind, ModelClient,
    Retention,
};

use crate::answer::Draft;
use crate::dialect::{Interface, interface};
use crate::redacting::Redactor;
use crate::server_events::ServerEvents;
use crate::transport::{Incoming, Transport};
use crate::{
    AnswerMode, ModelCheck, ModelSettings, ProviderCounter, RedactionReport, ServedModel, SetupError,
    capability, served_models,
};

/// A model over HTTP.
///
/// Secrets are replaced in what goes out, and in what comes back ([`redact`](crate::redact)); see
/// [`NetworkModel::without_redaction`].
///
/// One request, one answer: nothing is tried twice, nothing is shown before it is whole, no redirect is followed, and
/// an answer larger than allowed is given up where the limit is. Needs a tokio runtime with time and network. Cloning
/// shares connections. `Debug` shows the settings, in which there is no key.
#[derive(Clone)]
pub struct NetworkModel {
    settings: ModelSettings,
    interface: Arc<dyn Interface>,
    transport: Transport,
    /// `None`: secrets are sent as they stand.
    redactor: Option<Redactor>,
}

impl NetworkModel {
    /// A client with these settings. The key is read now, from the variable that the settings name, in this
    /// environment: [`process_environment`](crate::process_environment), or another one in tests. A key that is
    /// missing is told by each call.
    ///
    /// # Errors
    /// [`SetupError`] when no client can be made of the settings.
    pub fn new(
        settings: ModelSettings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SetupError> {
        let transport = Transport::new(&settings, environment)?;
        let interface = Arc::from(interface(&settings));
        Ok(Self { settings, interface, transport, redactor: Some(Redactor::default()) })
    }

    /// The same, but secrets are sent as they stand: for models of one's own, and for who replaces them otherwise.
    #[must_use]
    pub fn without_redaction(self) -> Self {
        Self { redactor: None, ..self }
    }

    /// How many secrets were replaced since it was made, by kind; `None` without redaction.
    #[must_use]
    pub fn redactions(&self) -> Option<RedactionReport> {
        self.redactor.as_ref().map(Redactor::report)
    }

    /// What it was made of.
    #[must_use]
    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// Whether a key is there, or none is asked for. Without one, each call is refused.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.transport.has_key()
    }

    /// What the path of a request to this model is.
    #[must_use]
    pub fn inference_capability(&self) -> InferenceCapability {
        capability::inference(&self.settings, &self.transport)
    }

    /// The provider's own counter on the same way: same address, same key. `retention` is what the counting service
    /// keeps of a request, by the user's word.
    ///
    /// # Errors
    /// [`SetupError::NoCounting`] when the provider has no such service.
    pub fn counter(&self, retention: Retention) -> Result<ProviderCounter, SetupError> {
        ProviderCounter::on(&self.settings, Arc::clone(&self.interface), self.transport.clone(), retention)
    }

    /// Which models the server has, sorted by name, each with its window where the server says one. Nothing of a
    /// conversation is sent. It takes the time of one call at most, and each of its answers the bytes of one.
    ///
    /// A provider that tells its models page by page is asked for its largest page alone, with up to 1,000 models.
    ///
    /// # Errors
    /// As [`ModelClient::call`]; [`ModelCallErrorKind::Malformed`] for what is no list of models.
    pub async fn served_models(&self) -> Result<Vec<ServedModel>, ModelCallError> {
        let asked = served_models::ask(self.settings.dialect, &*self.interface, &self.transport);
        match tokio::time::timeout(self.transport.bounds().total_timeout, asked).await {
            Ok(answered) => answered,
            Err(_) => Err(ModelCallErrorKind::Timeout.into()),
        }
    }

    async fn ask(&self, call: &ModelCall) -> Result<ModelAnswer, ModelCallError> {
        let streamed = self.settings.answers == AnswerMode::Streamed;
        let outgoing = self.interface.request(call, streamed, self.settings.answer_forms);
        let outgoing = outgoing.map_err(|_| ModelCallErrorKind::Unsupported)?;
        let accept = if streamed { "text/event-stream" } else { "application/json" };
        let mut incoming = self.transport.post(&*self.interface, outgoing, accept).await?;
        let asked = (self.settings.model_check == ModelCheck::Same).then(|| call.model.as_str());
        let draft = self.read(&mut incoming).await;
        draft.and_then(|draft| draft.finish(asked)).map_err(|kind| incoming.error(kind))
    }

    /// Reads the answer as what it calls itself, which need not be what was asked for.
    async fn read(&self, incoming: &mut Incoming) -> Result<Draft, ModelCallErrorKind> {
        if !incoming.is_event_stream() {
            return self.interface.read(&incoming.whole().await?);
        }
        let mut reader = self.interface.reader();
        let mut events = ServerEvents::default();
        while let Some(piece) = incoming.piece().await? {
            events.feed(&piece, |event| reader.take(event.data))?;
        }
        events.end(|event| reader.take(event.data))?;
        reader.end()
    }
}

#[async_trait]
impl ModelClient for NetworkModel {
    async fn call(&self, call: ModelCall) -> Result<ModelAnswer, ModelCallError> {
        let call = match &self.redactor {
            Some(redactor) => redactor.clean_call(call),
            None => call,
        };
        let asked = tokio::time::timeout(self.transport.bounds().total_timeout, self.ask(&call));
        let answer = asked.await.map_err(|_| ModelCallErrorKind::Timeout)??;
        Ok(match &self.redactor {
            Some(redactor) => redactor.clean_answer(answer),
            None => answer,
        })
    }

    fn as_sent(&self, messages: &Arc<[Message]>) -> Arc<[Message]> {
        match &self.redactor {
            Some(redactor) => redactor.clean_messages(messages),
            None => Arc::clone(messages),
        }
    }
}

impl fmt::Debug for NetworkModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkModel").field("settings", &self.settings).finish_non_exhaustive()
    }
}
