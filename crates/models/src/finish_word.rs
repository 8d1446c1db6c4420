//! Why an answer ended, by the words of the providers.
//!
//! One table serves every interface: gateways hand on the words of whoever they ask.

use epitome_loop::{FinishReason, ModelCallErrorKind};

/// What a word for the end means. A word that is not known is no failure, and says nothing about whether the answer is
/// whole.
///
/// # Errors
/// [`ModelCallErrorKind::Status`] for an end that is a failure of the provider's: what was said before it is no answer.
pub(crate) fn finish_of(word: &str) -> Result<FinishReason, ModelCallErrorKind> {
    Ok(match word.to_ascii_lowercase().as_str() {
        "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "complete" | "completed" => {
            FinishReason::Stop
        }
        // A turn that the provider paused is as little whole as one that it cut.
        "length"
        | "max_tokens"
        | "max_length"
        | "model_length"
        | "model_context_window_exceeded"
        | "incomplete"
        | "pause_turn" => FinishReason::Length,
        "tool_calls"
        | "tool_use"
        | "function_call"
        | "malformed_function_call"
        | "unexpected_tool_call"
        | "too_many_tool_calls" => FinishReason::ToolCalls,
        "refusal"
        | "content_filter"
        | "content_filtered"
        | "guardrail_intervened"
        | "sensitive"
        | "safety"
        | "recitation"
        | "language"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "image_safety"
        | "image_prohibited_content"
        | "image_recitation" => FinishReason::Refused,
        "error"
        | "failed"
        | "abort"
        | "aborted"
        | "cancelled"
        | "canceled"
        | "network_error"
        | "timeout"
        | "insufficient_system_resource"
        | "malformed_response"
        | "other" => {
            return Err(ModelCallErrorKind::Status(200));
        }
        _ => FinishReason::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_every_provider_mean_the_same_everywhere() {
        use FinishReason::{Length, Refused, Stop, ToolCalls, Unknown};
        for (word, finish) in [
            ("stop", Stop),
            ("STOP", Stop),
            ("end_turn", Stop),
            ("MAX_TOKENS", Length),
            ("length", Length),
            ("pause_turn", Length),
            ("tool_calls", ToolCalls),
            ("UNEXPECTED_TOOL_CALL", ToolCalls),
            ("SAFETY", Refused),
            ("content_filter", Refused),
            ("something new", Unknown),
            ("", Unknown),
        ] {
            assert_eq!(finish_of(word), Ok(finish), "{word}");
        }
        for word in ["error", "OTHER", "abort", "network_error", "insufficient_system_resource"] {
            assert_eq!(finish_of(word), Err(ModelCallErrorKind::Status(200)), "{word}");
        }
    }
}
