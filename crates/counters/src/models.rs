//! What is publicly known about models: encoding, limits, and how they charge for media.

use epitome_loop::{ContextLimits, ModelKey, TokenCount};

use crate::encoding::Encoding;
use crate::fit::Fit;
use crate::media::MediaRules;
use crate::model_table::{AS_OF, MODELS};

/// What is known about one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// Who makes the model, and the name it was asked for under, without any route in front.
    pub key: ModelKey,
    /// The encoding to count its text with.
    pub encoding: Encoding,
    /// What a count with that encoding is worth.
    pub exactness: Exactness,
    /// Window, largest input and largest output; 0 where no figure is known.
    pub limits: ContextLimits,
    /// How it charges for pictures, recordings and files.
    pub media: MediaRules,
    /// How it wraps messages.
    pub family: Family,
    /// Whether the model's reasoning from before the newest turn of the user stays in the context.
    pub keeps_reasoning: bool,
    /// Year and month in which the entry was gathered, for example `2026-11`.
    pub as_of: &'static str,
}

/// What a count with the model's encoding is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exactness {
    /// Tokenizer and message framing are both published: text can be counted exactly.
    Published,
    /// The tokenizer is published, the framing is taken from the maker's earlier models.
    TokenizerOnly,
    /// No tokenizer is published. Counts with the encoding are fitted to what the model's provider counts, in
    /// the middle of the errors; the fit says how far off they may be.
    Fitted(Fit),
}

/// Whose rules of message framing apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// OpenAI chat.
    OpenAi,
    /// Anthropic messages.
    Anthropic,
    /// Gemini contents.
    Gemini,
    /// Anything else: a chat template about which nothing is assumed.
    Other,
}

/// Looks a model up by the name that a user or a log gives it.
///
/// Routes in front (`openai/`, `openrouter/anthropic/`, `us.anthropic.`), version and date suffixes
/// (`-20250929`, `-2024-08-06`, `-latest`, `-preview`, `@20250929`, `-v1:0`, `:free`) and a dot for a dash in
/// a version number are understood. A name that is not in the table gives `None`, never a guess: `gpt-4o` is
/// not taken for `gpt-4`.
#[must_use]
pub fn model_info(name: &str) -> Option<ModelInfo> {
    let bare = without_route(name);
    let plain = without_tag(bare).to_ascii_lowercase().replace('.', "-");
    let matches = |entry: &&ModelEntry| is_version_of(&plain, &entry.name.replace('.', "-"));
    let entry = MODELS.iter().filter(matches).max_by_key(|entry| entry.name.len())?;
    Some(entry.info(bare))
}

/// Every model of the table, under its plain name, in the order of the table.
pub fn known_models() -> impl Iterator<Item = ModelInfo> {
    MODELS.iter().map(|entry| entry.info(entry.name))
}

/// One row of the table.
pub(crate) struct ModelEntry {
    pub(crate) provider: &'static str,
    pub(crate) name: &'static str,
    pub(crate) family: Family,
    pub(crate) encoding: Encoding,
    pub(crate) exactness: Exactness,
    pub(crate) window: u64,
    pub(crate) max_input: u64,
    pub(crate) max_output: u64,
    pub(crate) media: MediaRules,
    pub(crate) keeps_reasoning: bool,
}

impl ModelEntry {
    fn info(&self, name: &str) -> ModelInfo {
        ModelInfo {
            key: ModelKey::new(self.provider, name),
            encoding: self.encoding,
            exactness: self.exactness,
            limits: ContextLimits {
                window: TokenCount(self.window),
                max_input: TokenCount(self.max_input),
                max_output: TokenCount(self.max_output),
            },
            media: self.media,
            family: self.family,
            keeps_reasoning: self.keeps_reasoning,
            as_of: AS_OF,
        }
    }
}

/// Drops what stands before the model's own name.
fn without_route(name: &str) -> &str {
    let name = name.trim();
    let last = name.rsplit('/').next().unwrap_or(name);
    // Amazon Bedrock: `anthropic.claude-...`, `us.anthropic.claude-...`.
    last.split_once("anthropic.").map_or(last, |(_, model)| model)
}

/// Drops `:free`, `@20250929`, `[1m]` and the like.
fn without_tag(name: &str) -> &str {
    name.split(['@', ':', '[']).next().unwrap_or(name)
}

/// Whether `name` is `entry`, or `entry` with a date or version behind it.
fn is_version_of(name: &str, entry: &str) -> bool {
    match name.strip_prefix(entry) {
        Some("") => true,
        Some(suffix) => suffix.strip_prefix('-').is_some_and(|words| words.split('-').all(is_version_word)),
        None => false,
    }
}

/// A part of a date, or a word that marks a release. A single digit is a model number, not a date.
fn is_version_word(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (word.len() >= 2 && digits(word)) || matches!(word, "latest" | "preview" | "exp" | "beta" | "v1" | "v2")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(asked: &str) -> Option<(String, u64)> {
        model_info(asked).map(|info| (info.key.model.as_str().to_owned(), info.limits.window.get()))
    }

    #[test]
    fn finds_models_under_the_names_people_use() {
        for asked in [
            "claude-sonnet-4-5",
            "claude-sonnet-4-5-20250929",
            "anthropic/claude-sonnet-4.5",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5@20250929",
            "openrouter/anthropic/claude-sonnet-4.5:beta",
        ] {
            let info = model_info(asked).unwrap_or_else(|| panic!("{asked} is not known"));
            assert_eq!(info.key.provider, "anthropic", "{asked}");
            assert_eq!(info.limits.window, TokenCount(200_000), "{asked}");
            assert_eq!(info.limits.max_output, TokenCount(64_000), "{asked}");
        }
        assert_eq!(
            name_of("openai/gpt-4o-mini-2024-07-18"),
            Some(("gpt-4o-mini-2024-07-18".into(), 128_000))
        );
        assert_eq!(model_info("gpt-4o").unwrap().exactness, Exactness::Published);
        assert_eq!(model_info("gpt-4").unwrap().encoding, Encoding::Cl100kBase);
        assert_eq!(model_info("gpt-4-0613").unwrap().limits.window, TokenCount(8_192));
    }

    #[test]
    fn does_not_guess() {
        for asked in [
            "",
            "gpt",
            "gpt-4oo",
            "gpt-4o-realtime-preview",
            "claude",
            "claude-sonnet-4-9",
            "gpt-5.9",
            "llama",
            "/",
            "anthropic.",
        ] {
            assert_eq!(name_of(asked), None, "{asked}");
        }
    }

    #[test]
    fn every_entry_is_valid_and_finds_itself() {
        for info in known_models() {
            let name = info.key.model.as_str().to_owned();
            assert_eq!(info.limits.validate(), Ok(()), "{name}");
            assert_eq!(info.key.validate(), Ok(()), "{name}");
            assert_eq!(model_info(&name), Some(info), "{name}");
        }
    }
}
