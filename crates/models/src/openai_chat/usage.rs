//! Usage as servers of chat completions report it.

use epitome_loop::Usage;
use serde::Deserialize;

use crate::answer::usage_with_cache_inside;

#[derive(Deserialize, Default)]
pub(super) struct WireUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for what came from its cache.
    #[serde(default)]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    /// OpenRouter's name for what went to a cache.
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

impl WireUsage {
    /// Input includes what is cached. Output includes reasoning, except where the total says that it does not, as
    /// xAI counts.
    pub(super) fn usage(self) -> Option<Usage> {
        let Self {
            prompt_tokens,
            completion_tokens,
            total_tokens,
            prompt_tokens_details,
            completion_tokens_details,
            prompt_cache_hit_tokens,
        } = self;
        if prompt_tokens.is_none() && completion_tokens.is_none() {
            return None;
        }
        let (prompt, completion) = (prompt_tokens.unwrap_or(0), completion_tokens.unwrap_or(0));
        let PromptDetails { cached_tokens, cache_write_tokens } = prompt_tokens_details.unwrap_or_default();
        let CompletionDetails { reasoning_tokens } = completion_tokens_details.unwrap_or_default();
        let reasoning = reasoning_tokens.unwrap_or(0);
        let both = completion.saturating_add(reasoning);
        let apart = reasoning > 0 && total_tokens == Some(prompt.saturating_add(both));
        let output = if apart { both } else { completion };
        let read = cached_tokens.or(prompt_cache_hit_tokens).unwrap_or(0);
        Some(usage_with_cache_inside(prompt, read, cache_write_tokens.unwrap_or(0), output, reasoning))
    }
}

#[cfg(test)]
mod tests {
    use epitome_loop::TokenCount;

    use super::*;

    fn usage(json: &str) -> Option<[u64; 5]> {
        let usage = serde_json::from_str::<WireUsage>(json).unwrap().usage()?;
        let Usage { input, output, cache_read, cache_creation, reasoning } = usage;
        Some([input, output, cache_read, cache_creation, reasoning].map(TokenCount::get))
    }

    #[test]
    fn each_convention_is_told_apart() {
        let openai = r#"{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130,
            "prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":20}}"#;
        assert_eq!(usage(openai), Some([36, 30, 64, 0, 20]));
        let xai = r#"{"prompt_tokens":100,"completion_tokens":30,"total_tokens":150,
            "completion_tokens_details":{"reasoning_tokens":20}}"#;
        assert_eq!(usage(xai), Some([100, 50, 0, 0, 20]));
        let deepseek =
            r#"{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101,"prompt_cache_hit_tokens":40}"#;
        assert_eq!(usage(deepseek), Some([60, 1, 40, 0, 0]));
        let openrouter = r#"{"prompt_tokens":100,"completion_tokens":1,
            "prompt_tokens_details":{"cached_tokens":10,"cache_write_tokens":20}}"#;
        assert_eq!(usage(openrouter), Some([70, 1, 10, 20, 0]));
        assert_eq!(usage(r#"{"prompt_tokens":5,"prompt_tokens_details":null}"#), Some([5, 0, 0, 0, 0]));
        assert_eq!(usage("{}"), None);
    }
}
