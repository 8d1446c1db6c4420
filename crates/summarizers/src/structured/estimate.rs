//! Sizes in characters, and how they become tokens. Whole numbers only.

use epitome_loop::{Block, MAX_BLOCK_DEPTH, Message, RawJson, TokenCount};
use serde_json::Value;
use tracing::warn;

/// What a picture counts, in characters; its bytes say nothing about its cost.
const IMAGE_SIZE: u64 = 256;

/// Characters a token, and characters that the framing of a message takes, where nothing better is known.
const DEFAULT_CHARACTERS: u64 = 4;
const DEFAULT_FRAMING: u64 = 20;

/// Most decimals of a ratio that is used.
const MOST_DECIMALS: usize = 19;

/// Sizes messages for a host. Weights add up; tokens are made of a sum of weights, rounded once.
///
/// A host with a tokenizer gives its counts as weights.
pub trait MessageScale: Send + Sync {
    /// What one message weighs, in a unit of the scale's own.
    fn weight(&self, message: &Message) -> u128;

    /// How many tokens messages of this weight together take. Must not fall as the weight grows.
    fn tokens(&self, weight: u128) -> TokenCount;
}

/// So many characters a token, and so many tokens of framing a message; exact, with one rounding down at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharacterScale {
    /// The ratio as a fraction.
    numerator: u128,
    denominator: u128,
    framing: u64,
}

impl Default for CharacterScale {
    /// Four characters a token, and twenty characters of framing a message.
    fn default() -> Self {
        let framing = DEFAULT_FRAMING / DEFAULT_CHARACTERS;
        Self { numerator: DEFAULT_CHARACTERS.into(), denominator: 1, framing }
    }
}

impl CharacterScale {
    /// A ratio of characters to a token, taken as the fraction that its shortest decimal text denotes, and the tokens of
    /// framing of each message. A ratio that is no positive number, or too large or too fine, becomes 4, with a
    /// warning.
    #[must_use]
    pub fn with_ratio(ratio: f32, framing: u64) -> Self {
        match fraction(ratio) {
            Some((numerator, denominator)) => Self { numerator, denominator, framing },
            None => {
                warn!("a ratio of characters to tokens cannot be used; 4 is used");
                Self { numerator: DEFAULT_CHARACTERS.into(), denominator: 1, framing }
            }
        }
    }

    /// For models of OpenAI.
    #[must_use]
    pub fn openai() -> Self {
        Self { numerator: 43, denominator: 10, framing: 4 }
    }

    /// For models of Anthropic.
    #[must_use]
    pub fn anthropic() -> Self {
        Self { numerator: 36, denominator: 10, framing: 5 }
    }

    /// For models of Google.
    #[must_use]
    pub fn gemini() -> Self {
        Self { numerator: 405, denominator: 100, framing: 4 }
    }

    /// For models on one's own machine.
    #[must_use]
    pub fn local() -> Self {
        Self { numerator: 38, denominator: 10, framing: 4 }
    }
}

impl MessageScale for CharacterScale {
    fn weight(&self, message: &Message) -> u128 {
        let text = u128::from(message_size(message)).saturating_mul(self.denominator);
        text.saturating_add(u128::from(self.framing).saturating_mul(self.numerator))
    }

    fn tokens(&self, weight: u128) -> TokenCount {
        let tokens = weight.checked_div(self.numerator).unwrap_or(u128::MAX);
        TokenCount(u64::try_from(tokens).unwrap_or(u64::MAX))
    }
}

/// The fraction that the shortest decimal text of a number denotes.
fn fraction(ratio: f32) -> Option<(u128, u128)> {
    if !ratio.is_finite() || ratio <= 0.0 {
        return None;
    }
    let text = ratio.to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    if decimals.len() > MOST_DECIMALS {
        return None;
    }
    let whole = u128::from(whole.parse::<u64>().ok()?);
    let denominator = 10_u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let decimals = if decimals.is_empty() { 0 } else { decimals.parse().ok()? };
    let numerator = whole.checked_mul(denominator)?.checked_add(decimals)?;
    (numerator > 0).then_some((numerator, denominator))
}

/// How many tokens messages take by a scale.
pub fn count_messages<'m>(
    scale: &dyn MessageScale,
    messages: impl IntoIterator<Item = &'m Message>,
) -> TokenCount {
    let weights = messages.into_iter().map(|message| scale.weight(message));
    scale.tokens(weights.fold(0, u128::saturating_add))
}

/// How many tokens a bare text takes, as one message by the default scale. A summary's budget is always held by this,
/// whatever the host's scale.
#[must_use]
pub fn estimate_text(text: &str) -> TokenCount {
    TokenCount((characters(text) + DEFAULT_FRAMING) / DEFAULT_CHARACTERS)
}

/// Most characters that a text may have and still be within a budget by [`estimate_text`]; `None` when none is.
pub(super) fn most_characters(budget: TokenCount) -> Option<usize> {
    let within = budget.get().saturating_mul(DEFAULT_CHARACTERS).saturating_add(DEFAULT_CHARACTERS - 1);
    let most = within.checked_sub(DEFAULT_FRAMING)?;
    Some(usize::try_from(most).unwrap_or(usize::MAX))
}

/// The size of a message in characters: its text and reasoning, the names and inputs of its calls, what its results
/// say, and 256 for each picture. Ids, signatures and opaque state count nothing.
#[must_use]
pub fn message_size(message: &Message) -> u64 {
    blocks_size(message.blocks(), 0)
}

fn blocks_size(blocks: &[Block], depth: usize) -> u64 {
    blocks.iter().fold(0, |size: u64, block| size.saturating_add(block_size(block, depth)))
}

fn block_size(block: &Block, depth: usize) -> u64 {
    match block {
        Block::Text { text } | Block::Refusal { text } => characters(text),
        Block::Thinking(thinking) => characters(&thinking.thinking),
        Block::Image(_) | Block::Audio(_) => IMAGE_SIZE,
        Block::Document(document) => characters(&document.text),
        Block::ToolUse(call) => {
            characters(&call.name) + call.input.as_ref().map_or(0, |input| characters(&compact_json(input)))
        }
        Block::ToolResult(result) if depth < MAX_BLOCK_DEPTH => blocks_size(&result.content, depth + 1),
        Block::Opaque(opaque) => characters(opaque.raw.as_str()),
        _ => 0,
    }
}

/// How many characters a text has.
pub(super) fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}

/// JSON without blanks, keys in order; one that nests too deep stays as it is.
pub(super) fn compact_json(raw: &RawJson) -> String {
    match serde_json::from_str::<Value>(raw.as_str()) {
        Ok(value) => value.to_string(),
        Err(_) => raw.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_fraction_of_its_shortest_text() {
        assert_eq!(fraction(4.3), Some((43, 10)));
        assert_eq!(fraction(0.1), Some((1, 10)));
        assert_eq!(fraction(5.0), Some((5, 1)));
        for unusable in [f32::NAN, f32::INFINITY, 0.0, -2.0, 1e20, 1e-25] {
            assert_eq!(fraction(unusable), None);
        }
    }

    #[test]
    fn a_list_is_rounded_once() {
        let scale = CharacterScale::default();
        let messages = [Message::user("ab"), Message::user("ab")];
        assert_eq!(count_messages(&scale, &messages[..1]), TokenCount(5));
        assert_eq!(count_messages(&scale, &messages), TokenCount(11));
    }

    #[test]
    fn the_most_characters_are_exact() {
        for budget in 0..40 {
            let most = most_characters(TokenCount(budget));
            let fits = |length: usize| estimate_text(&"x".repeat(length)).get() <= budget;
            match most {
                Some(most) => assert!(fits(most) && !fits(most + 1), "{budget}"),
                None => assert!(!fits(0), "{budget}"),
            }
        }
        assert!(most_characters(TokenCount(u64::MAX)).is_some());
    }
}
