//! Measures the complete requests of one conversation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use epitome_loop::{
    ContextBasis, ContextCounter, ContextMeasurement, CountQuality, Message, ModelKey, RawJson, Request,
    RequestFingerprint, ResolvedLimits, TokenCount, core_json_len,
};

use crate::calibration::CountScale;
use crate::outcome::CountFailure;

/// One request, but for the messages of the conversation, which may be these or others.
#[derive(Clone)]
pub(crate) struct Measuring {
    pub(crate) counter: Arc<dyn ContextCounter>,
    /// How good its counts are, by what was declared.
    pub(crate) quality: CountQuality,
    pub(crate) model: ModelKey,
    pub(crate) limits: ResolvedLimits,
    pub(crate) basis: ContextBasis,
    pub(crate) request_fingerprint: RequestFingerprint,
    pub(crate) tools: Arc<[RawJson]>,
    pub(crate) unseen_tokens: TokenCount,
    /// What goes out in front of the conversation, and behind it.
    pub(crate) front: Arc<[Message]>,
    pub(crate) back: Arc<[Message]>,
    /// What counts are turned into, where reports of the provider taught that. The same for every count that is
    /// compared with another one.
    pub(crate) scale: Option<CountScale>,
    /// How long a count may take; without it, that is the caller's business.
    pub(crate) count_timeout: Option<Duration>,
}

impl Measuring {
    /// Counts the request that would carry these messages.
    pub(crate) async fn measure(&self, messages: Arc<[Message]>) -> Result<ContextMeasurement, CountFailure> {
        self.measure_whole(self.whole(messages)).await
    }

    /// Counts the request with these messages, what goes out around them included.
    pub(crate) async fn measure_whole(
        &self,
        messages: Arc<[Message]>,
    ) -> Result<ContextMeasurement, CountFailure> {
        let counted = self.count_whole(messages).await?;
        Ok(ContextMeasurement {
            basis: self.basis,
            model: self.model.clone(),
            request_fingerprint: self.request_fingerprint,
            input_tokens: self.scale.map_or(counted, |scale| scale.apply(counted, self.unseen_tokens)),
            input_limit: self.limits.input_limit,
            quality: self.quality,
        })
    }

    /// What the counter says of the request with these messages, what goes out around them included.
    pub(crate) async fn count_whole(&self, messages: Arc<[Message]>) -> Result<TokenCount, CountFailure> {
        let request = Request {
            model: self.model.clone(),
            tools: self.tools.clone(),
            messages,
            unseen_tokens: self.unseen_tokens,
        };
        let counting = caught(async { self.counter.count(&request).await });
        let counted = match self.count_timeout {
            Some(limit) => tokio::time::timeout(limit, counting).await.map_err(|_| CountFailure::TimedOut)?,
            None => counting.await,
        };
        let count = counted.ok_or(CountFailure::Panicked)?.map_err(CountFailure::Counter)?;
        if count.model != self.model {
            return Err(CountFailure::OtherModel);
        }
        if count.quality != self.quality {
            return Err(CountFailure::OtherQuality);
        }
        Ok(count.input_tokens)
    }

    /// The messages with what goes out around them.
    pub(crate) fn whole(&self, messages: Arc<[Message]>) -> Arc<[Message]> {
        if self.front.is_empty() && self.back.is_empty() {
            return messages;
        }
        self.front.iter().chain(messages.iter()).chain(self.back.iter()).cloned().collect()
    }

    /// How many bytes the request takes in its core form.
    pub(crate) fn request_bytes(&self, messages: &[Message]) -> u64 {
        messages.iter().map(core_json_len).fold(self.bytes_around(), u64::saturating_add)
    }

    /// How many of these are not the conversation's.
    pub(crate) fn bytes_around(&self) -> u64 {
        let tools = self.tools.iter().map(|tool| tool.as_str().len() as u64);
        tools.chain(self.front.iter().chain(self.back.iter()).map(core_json_len)).sum()
    }
}

/// What a future comes to; `None` when it panics. What it borrowed is not looked at again then.
async fn caught<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}
