//! What a request carries that cannot be seen here, by what a provider reported.

use epitome_loop::{ContextCounter, CountError, Request, TokenCount};

/// A provider's figure for a context that began as the one at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedContext {
    /// How many messages, from the first, the figure covers.
    pub messages: usize,
    /// The whole context as the provider counted it: new and cached input, and the answer.
    pub tokens: TokenCount,
}

/// How much a provider counted beyond what its messages and tools take by this counter: a system prompt and
/// tools that a log leaves out, and what is hidden in signed items.
///
/// Taken as [`Request::unseen_tokens`], it makes the count of the request what the provider reported plus the
/// counter's size of everything behind the report. It stays the same over a compaction, so before and after
/// are measured alike. A figure that is smaller than the count changes nothing: a count may be high, never
/// low. Stated unseen tokens of `request` are not looked at.
///
/// # Errors
/// [`CountError`] as the counter gives it.
pub async fn unseen_by_report(
    counter: &dyn ContextCounter,
    request: &Request,
    reported: ReportedContext,
) -> Result<TokenCount, CountError> {
    let covered = Request {
        messages: request.messages.iter().take(reported.messages).cloned().collect(),
        unseen_tokens: TokenCount::ZERO,
        ..request.clone()
    };
    let counted = counter.count(&covered).await?.input_tokens;
    Ok(TokenCount(reported.tokens.get().saturating_sub(counted.get())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::{Message, ModelKey};

    #[test]
    fn a_request_counts_what_was_reported_and_what_came_behind() {
        let counter =
            |request: &Request| TokenCount(10 * request.messages.len() as u64 + request.unseen_tokens.get());
        let request = Request {
            model: ModelKey::new("p", "m"),
            tools: std::sync::Arc::default(),
            messages: (0..5).map(|at| Message::user(at.to_string())).collect(),
            unseen_tokens: TokenCount(7),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (messages, tokens, expected) in [(3, 900, 870), (3, 30, 0), (3, 29, 0), (9, 60, 10), (0, 5, 5)] {
            let reported = ReportedContext { messages, tokens: TokenCount(tokens) };
            let unseen = runtime.block_on(unseen_by_report(&counter, &request, reported)).unwrap();
            assert_eq!(unseen, TokenCount(expected), "{messages} {tokens}");
        }
    }
}
