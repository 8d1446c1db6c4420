//! One request over HTTP: bounded in time and bytes, typed in what can go wrong, silent about what was said.

use std::time::SystemTime;

use epitome_loop::{ModelCallError, ModelCallErrorKind};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, Url};

use crate::api_key::ApiKey;
use crate::dialect::{Interface, Outgoing};
use crate::endpoint::Endpoint;
use crate::retry_after::retry_after;
use crate::{Bounds, ModelSettings, SetupError, tls};

const AGENT: &str = concat!("epitome/", env!("CARGO_PKG_VERSION"));

/// A way to one server, with its key.
#[derive(Clone)]
pub(crate) struct Transport {
    client: Client,
    endpoint: Endpoint,
    /// `None` when no key is asked for.
    key: Option<KeyState>,
    bounds: Bounds,
}

#[derive(Clone)]
enum KeyState {
    There(ApiKey),
    /// One is asked for, and the variable holds none.
    Missing,
}

/// What came back of a successful request, still to be read.
pub(crate) struct Incoming {
    response: Response,
    left: u64,
    limit: u64,
}

impl Transport {
    pub(crate) fn new(
        settings: &ModelSettings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SetupError> {
        settings.check()?;
        let endpoint = Endpoint::parse(&settings.base_url).ok_or(SetupError::BaseUrl)?;
        let key = settings.key_variable.as_ref().map(|variable| {
            ApiKey::read(variable.trim(), environment).map_or(KeyState::Missing, KeyState::There)
        });
        let builder = Client::builder()
            .tls_backend_preconfigured(tls::configuration(endpoint.is_secure())?)
            // Who is sent elsewhere does not go there: the key and the conversation are for this server alone.
            .redirect(Policy::none())
            // Second tries are decided above.
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(settings.bounds.connect_timeout);
        // Through a proxy goes only what it cannot read.
        let builder = if endpoint.is_secure() { builder } else { builder.no_proxy() };
        let client = builder.build().map_err(|_| SetupError::Client)?;
        Ok(Self { client, endpoint, key, bounds: settings.bounds })
    }

    /// Where it goes.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The key's bytes; empty without one.
    pub(crate) fn key_bytes(&self) -> &[u8] {
        match &self.key {
            Some(KeyState::There(key)) => key.as_bytes(),
            Some(KeyState::Missing) | None => &[],
        }
    }

    /// Whether a key is there, or none is asked for.
    pub(crate) fn has_key(&self) -> bool {
        !matches!(self.key, Some(KeyState::Missing))
    }

    /// The limits of a call.
    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn post(
        &self,
        interface: &dyn Interface,
        outgoing: Outgoing,
        accept: &'static str,
    ) -> Result<Incoming, ModelCallError> {
        let Outgoing { path, body } = outgoing;
        let url = self.endpoint.service(&path).ok_or(ModelCallErrorKind::Unsupported)?;
        let mut headers = self.headers(interface, accept)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(self.client.post(url).headers(headers).body(body)).await
    }

    /// Asks for what an address of the server shows, and waits for the head of the answer.
    pub(crate) async fn get(&self, interface: &dyn Interface, url: Url) -> Result<Incoming, ModelCallError> {
        let headers = self.headers(interface, "application/json")?;
        self.send(self.client.get(url).headers(headers)).await
    }

    async fn send(&self, request: RequestBuilder) -> Result<Incoming, ModelCallError> {
        let response = request.send().await.map_err(|error| network_fault(&error))?;
        let status = response.status();
        if !status.is_success() {
            // The body of an error may quote the request: it is not even read.
            let retry_after = retry_after(response.headers(), SystemTime::now());
            return Err(ModelCallError { kind: ModelCallErrorKind::Status(status.as_u16()), retry_after });
        }
        let coded = response.headers().get(CONTENT_ENCODING);
        if coded.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            // Nothing compressed was asked for, and nothing is unpacked: a small answer cannot become a large one.
            return Err(ModelCallErrorKind::Malformed.into());
        }
        let limit = self.bounds.answer_bytes;
        if response.content_length().is_some_and(|length| length > limit) {
            return Err(ModelCallErrorKind::TooLarge { limit }.into());
        }
        Ok(Incoming { response, left: limit, limit })
    }

    fn headers(&self, interface: &dyn Interface, accept: &'static str) -> Result<HeaderMap, ModelCallError> {
        let mut headers = HeaderMap::new();
        match &self.key {
            Some(KeyState::There(key)) => {
                let place = interface.key_header();
                let value = key.header(place.prefix).ok_or(ModelCallErrorKind::NoKey)?;
                headers.insert(HeaderName::from_static(place.name), value);
            }
            Some(KeyState::Missing) => return Err(ModelCallErrorKind::NoKey.into()),
            None => {}
        }
        for (name, value) in interface.headers() {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        Ok(headers)
    }
}

impl Incoming {
    /// How long the provider asks to wait, where the answer turns out to be an error.
    pub(crate) fn error(&self, kind: ModelCallErrorKind) -> ModelCallError {
        ModelCallError { kind, retry_after: retry_after(self.response.headers(), SystemTime::now()) }
    }

    /// Whether it comes in events, by its own word.
    pub(crate) fn is_event_stream(&self) -> bool {
        let kind = self.response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind.eq_ignore_ascii_case("text/event-stream")
        })
    }

    /// The next piece; `None` at the end.
    pub(crate) async fn piece(&mut self) -> Result<Option<bytes::Bytes>, ModelCallErrorKind> {
        let piece = self.response.chunk().await.map_err(|error| network_fault(&error))?;
        if let Some(piece) = &piece {
            let left = self.left.checked_sub(piece.len() as u64);
            self.left = left.ok_or(ModelCallErrorKind::TooLarge { limit: self.limit })?;
        }
        Ok(piece)
    }

    /// All of it.
    pub(crate) async fn whole(&mut self) -> Result<Vec<u8>, ModelCallErrorKind> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await? {
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

/// What went wrong, without the client's words, which hold the address.
fn network_fault(error: &reqwest::Error) -> ModelCallErrorKind {
    if error.is_builder() {
        return ModelCallErrorKind::Unsupported;
    }
    // A connection that was not there in time is none.
    if error.is_timeout() && !error.is_connect() {
        return ModelCallErrorKind::Timeout;
    }
    ModelCallErrorKind::Network
}
