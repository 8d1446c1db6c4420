//! How a structured summarizer works.

use epitome_loop::{Sampling, SharedText, TokenCount};
use tracing::warn;

use super::section::SummaryTemplate;

const DEFAULT_SHARE: f64 = 0.2;
const LEAST_SHARE: f64 = 0.05;
const MOST_SHARE: f64 = 0.95;
const PER_MILLE: u64 = 1000;

/// How a structured summarizer works. Setters never fail: what cannot be used is replaced, with a warning where the
/// caller cannot have meant it.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuredSummaryConfig {
    model: SharedText,
    sampling: Sampling,
    share: f64,
    max_summary_tokens: u64,
    min_messages: usize,
    preserve_recent: usize,
    transcript_max_characters: usize,
    instructions: Option<SharedText>,
    template: SummaryTemplate,
    parse_output: bool,
}

impl StructuredSummaryConfig {
    /// The defaults, for a model by its provider's name: a fifth of the target but 6,000 tokens at most, histories of
    /// more than 8 messages, of which 6 stay, a transcript of 48,000 characters, four sections, answers parsed.
    #[must_use]
    pub fn for_model(model: impl Into<SharedText>) -> Self {
        Self {
            model: model.into(),
            sampling: Sampling::default(),
            share: DEFAULT_SHARE,
            max_summary_tokens: 6000,
            min_messages: 8,
            preserve_recent: 6,
            transcript_max_characters: 48_000,
            instructions: None,
            template: SummaryTemplate::default_template(),
            parse_output: true,
        }
    }

    /// How the model is sampled.
    #[must_use]
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// The summary's share of the target, within 0.05 and 0.95. What is no positive number becomes 0.2.
    #[must_use]
    pub fn summary_budget_share(mut self, share: f64) -> Self {
        self.share = if share.is_finite() && share > 0.0 {
            share.clamp(LEAST_SHARE, MOST_SHARE)
        } else {
            warn!("a summary's share of the target is no positive number; {DEFAULT_SHARE} is used");
            DEFAULT_SHARE
        };
        self
    }

    /// Most tokens of a summary; at least 1.
    #[must_use]
    pub fn max_summary_tokens(mut self, tokens: u64) -> Self {
        self.max_summary_tokens = tokens.max(1);
        self
    }

    /// Histories of so many messages or fewer are left alone; at least 2.
    #[must_use]
    pub fn min_messages(mut self, messages: usize) -> Self {
        self.min_messages = messages.max(2);
        self
    }

    /// So many of the last messages stay; at least 1.
    #[must_use]
    pub fn preserve_recent(mut self, messages: usize) -> Self {
        self.preserve_recent = messages.max(1);
        self
    }

    /// Most characters of the transcript that a model sees; at least 1.
    #[must_use]
    pub fn transcript_max_characters(mut self, characters: usize) -> Self {
        self.transcript_max_characters = characters.max(1);
        self
    }

    /// The host's instructions for every summary. Blank ones change nothing, with a warning.
    #[must_use]
    pub fn summary_instructions(mut self, instructions: impl Into<SharedText>) -> Self {
        let instructions = instructions.into();
        if instructions.trim().is_empty() {
            warn!("instructions for a summary are blank; they change nothing");
        } else {
            self.instructions = Some(instructions);
        }
        self
    }

    /// The template. One without sections is replaced by the default one, header included, with a warning.
    #[must_use]
    pub fn template(mut self, template: SummaryTemplate) -> Self {
        self.template = if template.sections.is_empty() {
            warn!("a summary's template has no sections; the default one is used");
            SummaryTemplate::default_template()
        } else {
            template
        };
        self
    }

    /// Whether answers are read into sections. If not, an answer is carried as it is.
    #[must_use]
    pub fn parse_output(mut self, parse: bool) -> Self {
        self.parse_output = parse;
        self
    }

    /// The model by its provider's name.
    #[must_use]
    pub fn model(&self) -> &SharedText {
        &self.model
    }

    /// How the model is sampled.
    #[must_use]
    pub fn model_sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// The summary's share of the target.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Most tokens of a summary.
    #[must_use]
    pub fn most_tokens(&self) -> u64 {
        self.max_summary_tokens
    }

    /// Histories of so many messages or fewer are left alone.
    #[must_use]
    pub fn least_messages(&self) -> usize {
        self.min_messages
    }

    /// So many of the last messages stay.
    #[must_use]
    pub fn recent_messages(&self) -> usize {
        self.preserve_recent
    }

    /// Most characters of the transcript.
    #[must_use]
    pub fn most_transcript_characters(&self) -> usize {
        self.transcript_max_characters
    }

    /// The host's instructions.
    #[must_use]
    pub fn instructions(&self) -> Option<&SharedText> {
        self.instructions.as_ref()
    }

    /// The template in use.
    #[must_use]
    pub fn summary_template(&self) -> &SummaryTemplate {
        &self.template
    }

    /// Whether answers are read into sections.
    #[must_use]
    pub fn parses_output(&self) -> bool {
        self.parse_output
    }

    /// The share in thousandths, rounded down, of the number that its shortest decimal text denotes.
    #[must_use]
    pub fn per_mille(&self) -> u64 {
        let text = self.share.to_string();
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
        let digits = decimals.chars().chain("000".chars()).take(3);
        let thousandths =
            digits.fold(0, |sum, digit| sum * 10 + u64::from(digit.to_digit(10).unwrap_or_default()));
        let whole: u64 = whole.parse().unwrap_or_default();
        whole.saturating_mul(PER_MILLE).saturating_add(thousandths)
    }

    /// The summary's budget for a target.
    #[must_use]
    pub fn budget(&self, target: TokenCount) -> TokenCount {
        let share = target.get().saturating_mul(self.per_mille()) / PER_MILLE;
        TokenCount(share.min(self.max_summary_tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact() {
        let per_mille =
            |share| StructuredSummaryConfig::for_model("m").summary_budget_share(share).per_mille();
        for (share, expected) in [
            (0.29, 290),
            (1.0 / 3.0, 333),
            (0.0555, 55),
            (0.1 + 0.2, 300),
            (2.0, 950),
            (1e-9, 50),
            (f64::NAN, 200),
        ] {
            assert_eq!(per_mille(share), expected, "{share}");
        }
    }

    #[test]
    fn budgets_have_a_ceiling_and_saturate() {
        let config = StructuredSummaryConfig::for_model("m");
        assert_eq!(config.budget(TokenCount(1001)), TokenCount(200));
        assert_eq!(config.budget(TokenCount(u64::MAX)), TokenCount(6000));
        assert_eq!(config.max_summary_tokens(0).budget(TokenCount(5)), TokenCount(1));
    }
}
