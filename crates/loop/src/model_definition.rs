//! A model as a loop uses it: where it is, what it can do, and how it is sampled.

use thiserror::Error;

use crate::{
    ContextLimits, ContextLimitsError, ModelKey, ModelKeyError, SharedText, TokenCount, model::ModelKeyField,
};

/// A model with everything that shapes the requests sent to it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Model {
    /// Who serves it, for example `anthropic`.
    pub provider: SharedText,
    /// The dialect of its interface, for example `openai`.
    pub api_format: SharedText,
    /// Where it is served; empty for the provider's own address.
    pub base_url: SharedText,
    /// Its name at the provider.
    pub name: SharedText,
    /// A number by which the host tells where the definition came from. It has no meaning here, but it is part
    /// of a request's identity.
    pub origin: u8,
    /// What it can do.
    pub caps: ModelCaps,
    /// What it can hold.
    pub limits: ContextLimits,
    /// How it is sampled.
    pub sampling: Sampling,
}

/// What a model can do.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ModelCaps {
    /// It looks at pictures.
    pub accepts_images: bool,
    /// It calls tools.
    pub tools: bool,
    /// It reasons before it answers.
    pub thinking: bool,
    /// It keeps to a schema.
    pub structured_output: bool,
    /// It keeps to a schema while tools are offered; needs `structured_output`.
    pub structured_output_with_tools: bool,
    /// How reasoning is asked for: `adaptive` or `budget`; empty exactly when it does not reason.
    pub thinking_dialect: SharedText,
    /// Its provider caches prefixes.
    pub prompt_caching: bool,
}

/// How a model is sampled; `None` leaves a choice to the provider.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sampling {
    /// Temperature.
    pub temperature: Option<f64>,
    /// Nucleus share.
    pub top_p: Option<f64>,
    /// Largest answer.
    pub max_tokens: Option<TokenCount>,
    /// Texts that end an answer.
    pub stop: Option<Vec<SharedText>>,
    /// How hard to think, in the provider's words; empty for its default.
    pub effort: SharedText,
}

/// A model is not usable as defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The name is empty.
    #[error("the model has no name")]
    Name,
    /// The address is neither https with a host nor http on this machine, or it carries credentials.
    #[error("the base URL must be https, or http on this machine, without credentials")]
    BaseUrl,
    /// The reasoning dialect is unknown, or does not agree with whether the model reasons.
    #[error("the thinking dialect is unknown or does not agree with the model's thinking")]
    ThinkingDialect,
    /// Structured output with tools is claimed without structured output.
    #[error("structured output with tools needs structured output")]
    StructuredOutputWithTools,
    /// The limits contradict each other.
    #[error("{0}")]
    Limits(ContextLimitsError),
    /// The provider is empty.
    #[error("{0}")]
    Key(ModelKeyError),
}

impl Model {
    /// Checks the definition.
    ///
    /// # Errors
    /// [`ModelError`] with the first fault, in the order name, address, abilities, limits, provider.
    pub fn validate(&self) -> Result<(), ModelError> {
        if self.name.is_empty() {
            return Err(ModelError::Name);
        }
        if !self.base_url.is_empty() && !is_allowed_url(&self.base_url) {
            return Err(ModelError::BaseUrl);
        }
        let dialect = self.caps.thinking_dialect.as_str();
        if self.caps.thinking != matches!(dialect, "adaptive" | "budget")
            || (!self.caps.thinking && !dialect.is_empty())
        {
            return Err(ModelError::ThinkingDialect);
        }
        if self.caps.structured_output_with_tools && !self.caps.structured_output {
            return Err(ModelError::StructuredOutputWithTools);
        }
        self.limits.validate().map_err(ModelError::Limits)?;
        if self.provider.is_empty() {
            return Err(ModelError::Key(ModelKeyError { field: ModelKeyField::Provider }));
        }
        Ok(())
    }

    /// The key under which counts and measurements name this model.
    #[must_use]
    pub fn key(&self) -> ModelKey {
        ModelKey { provider: self.provider.clone(), model: self.name.clone() }
    }
}

/// `https` with a host, or `http` with a host that is this machine; no credentials, nothing unprintable, and
/// percent signs only before two hex digits.
fn is_allowed_url(url: &str) -> bool {
    let (secure, rest) = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
        _ => return false,
    };
    if !url.bytes().all(|byte| byte.is_ascii_graphic() || byte >= 0x80) || !percent_signs_are_escapes(url) {
        return false;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return false;
    }
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port_is_number = port.strip_prefix(':').unwrap_or(port).bytes().all(|byte| byte.is_ascii_digit());
    let this_machine = matches!(host, "localhost" | "127.0.0.1" | "::1");
    !host.is_empty()
        && port_is_number
        && (port.is_empty() || port.starts_with(':'))
        && (secure || this_machine)
}

fn percent_signs_are_escapes(url: &str) -> bool {
    url.split('%').skip(1).all(|after| {
        let mut digits = after.bytes();
        matches!((digits.next(), digits.next()), (Some(one), Some(two))
            if one.is_ascii_hexdigit() && two.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model { provider: "anthropic".into(), name: "claude-x".into(), ..Model::default() }
    }

    #[test]
    fn addresses_are_https_or_on_this_machine() {
        let verdict = |url: &str| Model { base_url: url.into(), ..model() }.validate();
        for good in [
            "",
            "https://x.com/v1",
            "https://h/p?q#f",
            "http://localhost:8080",
            "http://127.0.0.1/",
            "http://[::1]:1/",
        ] {
            assert_eq!(verdict(good), Ok(()), "{good}");
        }
        for bad in [
            "http://x.com",
            "https://",
            "https:///path",
            "https://x.com/%zz",
            "://",
            "http://127.0.0.2",
            "http://localhost.evil.com",
            "https://u@x.com",
            "mailto:a@b",
            "https://x.com\n",
            "https://x.com:p",
        ] {
            assert_eq!(verdict(bad), Err(ModelError::BaseUrl), "{bad}");
        }
    }

    #[test]
    fn abilities_agree_with_each_other() {
        let mut thinking = model();
        thinking.caps.thinking = true;
        assert_eq!(thinking.validate(), Err(ModelError::ThinkingDialect));
        thinking.caps.thinking_dialect = "budget".into();
        assert_eq!(thinking.validate(), Ok(()));
        thinking.caps.thinking = false;
        assert_eq!(thinking.validate(), Err(ModelError::ThinkingDialect));
        let mut structured = model();
        structured.caps.structured_output_with_tools = true;
        assert_eq!(structured.validate(), Err(ModelError::StructuredOutputWithTools));
        assert_eq!(Model::default().validate(), Err(ModelError::Name));
    }
}
