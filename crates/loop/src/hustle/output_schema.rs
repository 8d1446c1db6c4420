//! The schema that a hustle's answer must obey.

use sha2::{Digest as _, Sha256};

use super::HustleDefinitionError;
use crate::json_text::{JsonBytes, JsonSink as _};
use crate::{RawJson, SharedText};

/// Longest name of a schema in bytes: what providers take as the name of a tool or a response format.
const MAX_NAME_BYTES: usize = 64;

/// Longest revision of a schema in bytes.
const MAX_REVISION_BYTES: usize = 128;

/// The schema that a hustle's answer must obey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSchema {
    /// Its name for the provider: letters, digits, `_` and `-`, first a letter or `_`, at most 64 bytes.
    pub name: SharedText,
    /// What the model is told about it; may be empty.
    pub description: SharedText,
    /// The JSON schema.
    pub schema: RawJson,
    /// Whether the provider shall enforce it.
    pub strict: bool,
    /// The author's revision of it. Not blank, at most 128 bytes.
    pub revision: SharedText,
}

/// An [`OutputSchema`] without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSchemaDescriptor {
    /// Its name.
    pub name: SharedText,
    /// SHA-256 over description, schema and strictness. All zeros means none and is refused.
    pub sha256: [u8; 32],
    /// The author's revision.
    pub revision: SharedText,
}

impl OutputSchema {
    /// The schema without its content. The digest covers the schema in compact form, so white space between
    /// its values does not count.
    #[must_use]
    pub fn descriptor(&self) -> OutputSchemaDescriptor {
        let Self { name, description, schema, strict, revision } = self;
        let mut json = JsonBytes::default();
        json.plain("{\"description\":");
        json.string(description);
        json.plain(",\"schema\":");
        json.raw(schema);
        json.plain(if *strict { ",\"strict\":true}" } else { ",\"strict\":false}" });
        OutputSchemaDescriptor {
            name: name.clone(),
            sha256: Sha256::digest(json.into_bytes()).into(),
            revision: revision.clone(),
        }
    }
}

impl OutputSchemaDescriptor {
    /// Checks name, digest and revision, in this order (vectors `hustle_descriptor`).
    pub(super) fn check(&self) -> Result<(), HustleDefinitionError> {
        if !is_schema_name(&self.name) {
            return Err(HustleDefinitionError::OutputSchemaName);
        }
        if self.sha256 == [0; 32] {
            return Err(HustleDefinitionError::OutputSchemaDigest);
        }
        if self.revision.trim().is_empty() || self.revision.len() > MAX_REVISION_BYTES {
            return Err(HustleDefinitionError::OutputSchemaRevision);
        }
        Ok(())
    }
}

fn is_schema_name(name: &str) -> bool {
    let starts = |first: char| first.is_ascii_alphabetic() || first == '_';
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(starts)
        && name.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_providers_take() {
        for (name, good) in [
            ("a", true),
            ("_a-9", true),
            ("", false),
            ("9a", false),
            ("-a", false),
            ("a b", false),
            ("é", false),
        ] {
            assert_eq!(is_schema_name(name), good, "{name:?}");
        }
        assert!(is_schema_name(&"a".repeat(64)));
        assert!(!is_schema_name(&"a".repeat(65)));
    }

    #[test]
    fn the_digest_covers_meaning_and_not_spacing() {
        let schema = |text: &str, strict| OutputSchema {
            name: "out".into(),
            description: "".into(),
            schema: RawJson::parse(text).unwrap(),
            strict,
            revision: "r1".into(),
        };
        let digest = schema("{\"type\":\"object\"}", true).descriptor().sha256;
        assert_eq!(schema(" { \"type\" : \"object\" } ", true).descriptor().sha256, digest);
        assert_ne!(schema("{\"type\":\"object\"}", false).descriptor().sha256, digest);
        assert_ne!(schema("{\"type\":\"array\"}", true).descriptor().sha256, digest);
    }
}
