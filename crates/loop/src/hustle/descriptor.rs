//! A hustle's definition without its secrets, and the digest that names it in records.

use std::fmt;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{
    ByteLimits, EMBEDDED_PROMPT_REVISION, HustleDefinitionError, IdentityBinding, MAX_PAYLOAD_BYTES,
    OutputSchemaDescriptor, Participation, PayloadKind, RetryPolicy,
};
use crate::json_text::{JsonBytes, JsonSink};
use crate::{HustleName, ModelKey, SharedText};

/// Parts of a descriptor as they stand in a record. Checked by [`HustleDescriptor::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HustleDescriptorParts {
    /// The hustle's name.
    pub name: SharedText,
    /// Which lane it runs in.
    pub participation: Participation,
    /// Where its answer comes from.
    pub model: ModelDescriptor,
    /// The author's revision of the prompt.
    pub prompt_revision: SharedText,
    /// SHA-256 of the prompt. All zeros means none and is refused; an embedded hustle has the digest of the
    /// empty text.
    pub prompt_sha256: [u8; 32],
    /// The schema of its answer.
    pub output_schema: Option<OutputSchemaDescriptor>,
    /// The author's revision of how requests are made and answers are read.
    pub policy_revision: SharedText,
    /// How long a run may take.
    pub timeout: Duration,
    /// How large input and output may be.
    pub limits: ByteLimits,
    /// Whether it may run twice.
    pub retry: RetryPolicy,
    /// How an answer is bound to its input.
    pub identity: IdentityBinding,
}

/// Where a hustle's answer comes from, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelDescriptor {
    /// The model of the loop that asks.
    CurrentLoop,
    /// A model of the hustle's own.
    Named {
        /// The host's name of the client.
        client: SharedText,
        /// Which model.
        model: ModelKey,
        /// The author's revision of the client's settings.
        revision: SharedText,
    },
    /// A worker of this program.
    Embedded,
}

/// A hustle's definition without its secrets: fit for records, logs and identities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HustleDescriptor {
    name: HustleName,
    parts: HustleDescriptorParts,
}

/// SHA-256 over a [`HustleDescriptor`]: names one exact behavior in records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HustleRevision([u8; 32]);

impl HustleDescriptor {
    /// Checks the parts, in the order name, timeout, limits, prompt revision, prompt, policy revision, output
    /// schema, named model (vectors `hustle_descriptor`).
    ///
    /// # Errors
    /// [`HustleDefinitionError`] with the first fault.
    pub fn new(parts: HustleDescriptorParts) -> Result<Self, HustleDefinitionError> {
        use HustleDefinitionError as Fault;
        let name = HustleName::new(parts.name.clone()).map_err(Fault::Name)?;
        if parts.timeout.is_zero() {
            return Err(Fault::Timeout);
        }
        for (payload, bytes) in
            [(PayloadKind::Input, parts.limits.input), (PayloadKind::Output, parts.limits.output)]
        {
            if !(1..=MAX_PAYLOAD_BYTES).contains(&bytes) {
                return Err(Fault::ByteLimit(payload));
            }
        }
        check_prompt(&parts)?;
        if parts.policy_revision.trim().is_empty() {
            return Err(Fault::PolicyRevision);
        }
        parts.output_schema.as_ref().map_or(Ok(()), OutputSchemaDescriptor::check)?;
        if let ModelDescriptor::Named { client, model, revision } = &parts.model {
            model.validate().map_err(|_| Fault::NamedModelKey)?;
            if revision.trim().is_empty() {
                return Err(Fault::NamedModelRevision);
            }
            if client.trim().is_empty() {
                return Err(Fault::NamedModelClient);
            }
        }
        Ok(Self { name, parts })
    }

    /// The hustle's name.
    #[must_use]
    pub fn name(&self) -> &HustleName {
        &self.name
    }

    /// All parts, for records.
    #[must_use]
    pub fn parts(&self) -> &HustleDescriptorParts {
        &self.parts
    }

    /// The digest over everything here. It changes with every field and with nothing else; the bytes that are
    /// hashed are fixed by a test, so records stay comparable.
    #[must_use]
    pub fn revision(&self) -> HustleRevision {
        let mut json = JsonBytes::default();
        self.write(&mut json);
        HustleRevision(Sha256::digest(json.into_bytes()).into())
    }

    fn write(&self, out: &mut impl JsonSink) {
        let HustleDescriptorParts {
            name,
            participation,
            model,
            prompt_revision,
            prompt_sha256,
            output_schema,
            policy_revision,
            timeout,
            limits: ByteLimits { input, output },
            retry,
            identity,
        } = &self.parts;
        out.plain("{\"name\":");
        out.string(name);
        write_word(out, ",\"participation\":\"", participation.as_str());
        write_model(out, model);
        out.plain(",\"prompt_revision\":");
        out.string(prompt_revision);
        write_word(out, ",\"prompt_sha256\":\"", &hex(prompt_sha256));
        match output_schema {
            None => out.plain(",\"output_schema\":null"),
            Some(OutputSchemaDescriptor { name, sha256, revision }) => {
                out.plain(",\"output_schema\":{\"name\":");
                out.string(name);
                write_word(out, ",\"sha256\":\"", &hex(sha256));
                out.plain(",\"revision\":");
                out.string(revision);
                out.plain("}");
            }
        }
        out.plain(",\"policy_revision\":");
        out.string(policy_revision);
        out.plain(",\"timeout\":{\"seconds\":");
        out.number(timeout.as_secs());
        out.plain(",\"nanos\":");
        out.number(u64::from(timeout.subsec_nanos()));
        out.plain("},\"limits\":{\"input\":");
        out.number(*input);
        out.plain(",\"output\":");
        out.number(*output);
        write_word(out, "},\"retry\":\"", retry.as_str());
        write_word(out, ",\"identity\":\"", identity.as_str());
        out.plain("}");
    }
}

/// An embedded hustle has no prompt, so its revision is fixed and its digest is that of no text.
fn check_prompt(parts: &HustleDescriptorParts) -> Result<(), HustleDefinitionError> {
    let embedded = parts.model == ModelDescriptor::Embedded;
    let revision = &parts.prompt_revision;
    if revision.trim().is_empty() || embedded && *revision != EMBEDDED_PROMPT_REVISION {
        return Err(HustleDefinitionError::PromptRevision);
    }
    let no_text: [u8; 32] = Sha256::digest([]).into();
    if parts.prompt_sha256 == [0; 32] || embedded != (parts.prompt_sha256 == no_text) {
        return Err(HustleDefinitionError::SystemPrompt);
    }
    Ok(())
}

fn write_model(out: &mut impl JsonSink, model: &ModelDescriptor) {
    match model {
        ModelDescriptor::CurrentLoop => out.plain(",\"model\":{\"source\":\"current_loop\"}"),
        ModelDescriptor::Embedded => out.plain(",\"model\":{\"source\":\"embedded\"}"),
        ModelDescriptor::Named { client, model: ModelKey { provider, model }, revision } => {
            out.plain(",\"model\":{\"source\":\"named\",\"client\":");
            out.string(client);
            out.plain(",\"provider\":");
            out.string(provider);
            out.plain(",\"model\":");
            out.string(model);
            out.plain(",\"revision\":");
            out.string(revision);
            out.plain("}");
        }
    }
}

/// A word that needs no escapes, with the quote that closes it.
fn write_word(out: &mut impl JsonSink, before: &str, word: &str) {
    out.plain(before);
    out.plain(word);
    out.plain("\"");
}

fn hex(bytes: &[u8; 32]) -> String {
    HustleRevision(*bytes).to_string()
}

impl HustleRevision {
    /// The digest's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for HustleRevision {
    /// 64 lower-case hex digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for HustleRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> HustleDescriptorParts {
        HustleDescriptorParts {
            name: "context.compact".into(),
            participation: Participation::Blocking,
            model: ModelDescriptor::Named {
                client: "cheap".into(),
                model: ModelKey::new("p", "m"),
                revision: "r1".into(),
            },
            prompt_revision: "p1".into(),
            prompt_sha256: [0xab; 32],
            output_schema: Some(OutputSchemaDescriptor {
                name: "out".into(),
                sha256: [0xcd; 32],
                revision: "s1".into(),
            }),
            policy_revision: "<v1>".into(),
            timeout: Duration::from_millis(1_500),
            limits: ByteLimits { input: 1_024, output: 512 },
            retry: RetryPolicy::ClassifiedOnce,
            identity: IdentityBinding::Host,
        }
    }

    fn json(parts: HustleDescriptorParts) -> String {
        let mut out = JsonBytes::default();
        HustleDescriptor::new(parts).unwrap().write(&mut out);
        String::from_utf8(out.into_bytes()).unwrap()
    }

    #[test]
    fn the_hashed_bytes_are_fixed() {
        let (ab, cd) = ("ab".repeat(32), "cd".repeat(32));
        assert_eq!(
            json(parts()),
            format!(
                "{{\"name\":\"context.compact\",\"participation\":\"blocking\",\"model\":{{\"source\":\"named\",\
                 \"client\":\"cheap\",\"provider\":\"p\",\"model\":\"m\",\"revision\":\"r1\"}},\
                 \"prompt_revision\":\"p1\",\"prompt_sha256\":\"{ab}\",\
                 \"output_schema\":{{\"name\":\"out\",\"sha256\":\"{cd}\",\"revision\":\"s1\"}},\
                 \"policy_revision\":\"\\u003cv1\\u003e\",\"timeout\":{{\"seconds\":1,\"nanos\":500000000}},\
                 \"limits\":{{\"input\":1024,\"output\":512}},\"retry\":\"classified_once\",\
                 \"identity\":\"host\"}}"
            )
        );
        let revision = HustleDescriptor::new(parts()).unwrap().revision().to_string();
        assert_eq!(revision, "11c3ca830433ec10fed75faa137b69bd4368335ad8f4f5b70a581ed99e3657f4");
    }

    #[test]
    fn every_part_counts() {
        let changes: [fn(&mut HustleDescriptorParts); 11] = [
            |parts| parts.name = "other".into(),
            |parts| parts.participation = Participation::Background,
            |parts| parts.model = ModelDescriptor::CurrentLoop,
            |parts| parts.prompt_revision = "p2".into(),
            |parts| parts.prompt_sha256 = [1; 32],
            |parts| parts.output_schema = None,
            |parts| parts.policy_revision = "v2".into(),
            |parts| parts.timeout = Duration::from_secs(2),
            |parts| parts.limits.output = 513,
            |parts| parts.retry = RetryPolicy::None,
            |parts| parts.identity = IdentityBinding::Echo,
        ];
        let mut revisions: Vec<_> = changes
            .iter()
            .map(|change| {
                let mut changed = parts();
                change(&mut changed);
                HustleDescriptor::new(changed).unwrap().revision()
            })
            .collect();
        revisions.push(HustleDescriptor::new(parts()).unwrap().revision());
        revisions.sort_unstable();
        revisions.dedup();
        assert_eq!(revisions.len(), changes.len() + 1);
    }

    #[test]
    fn an_embedded_hustle_has_the_fixed_prompt_and_no_other() {
        let embedded = HustleDescriptorParts {
            model: ModelDescriptor::Embedded,
            prompt_revision: EMBEDDED_PROMPT_REVISION.into(),
            prompt_sha256: Sha256::digest([]).into(),
            ..parts()
        };
        assert!(HustleDescriptor::new(embedded.clone()).is_ok());
        let refused = |parts| HustleDescriptor::new(parts).unwrap_err();
        let other = HustleDescriptorParts { prompt_revision: "p1".into(), ..embedded.clone() };
        assert_eq!(refused(other), HustleDefinitionError::PromptRevision);
        let told = HustleDescriptorParts { prompt_sha256: [1; 32], ..embedded.clone() };
        assert_eq!(refused(told), HustleDefinitionError::SystemPrompt);
        let silent = HustleDescriptorParts { model: ModelDescriptor::CurrentLoop, ..embedded };
        assert_eq!(refused(silent), HustleDefinitionError::SystemPrompt);
    }
}
