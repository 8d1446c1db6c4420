//! The counter that counts in this process.

use async_trait::async_trait;
use epitome_loop::{
    Block, ContextCount, ContextCounter, CountError, CountQuality, CounterCapability, Message, ModelKey,
    Request, SharedText, TextEstimator, TokenCount,
};

use crate::breakdown::Breakdown;
use crate::cache::MessageCache;
use crate::content_class::ContentClass;
use crate::content_cost::Tariff;
use crate::encoding::Encoding;
use crate::error_band::{Amount, CountRange, ErrorBand};
use crate::framing::Framing;
use crate::kind_costs::ContentCost;
use crate::media::{ImageRule, MediaRules};
use crate::models::{Exactness, Family, ModelInfo};
use crate::sealed::SealedRule;
use crate::text_size::TextSize;

/// Counts requests in this process, with a published encoding.
///
/// Built without leave to estimate, it declares [`CountQuality::ExactLocal`] and counts text requests of
/// models whose tokenizer and framing are published; anything else is a [`CountError`]. Built with leave to
/// estimate, it declares [`CountQuality::HeuristicEstimate`] for every count and puts a price on everything.
///
/// Messages are tokenized one by one, as chat formats do, and each is counted once: recognized by its shared
/// blocks, it costs a look-up afterwards. Keep messages by cloning them, not by building them anew.
///
/// Up to 1 835 008 messages that are still alive are remembered, whatever their length, with 74 to 149 bytes
/// for each and some 100 more for one with several kinds of blocks. Of a session longer than that, the messages
/// behind the first 1 835 008 are counted anew each time.
#[derive(Debug)]
pub struct LocalCounter {
    /// `None`: any model.
    model: Option<ModelKey>,
    tariff: Tariff,
    estimates: bool,
    revision: SharedText,
    cache: MessageCache,
}

impl LocalCounter {
    /// A counter for one model. It refuses requests for any other.
    ///
    /// # Errors
    /// [`CountError::UnknownModel`] without leave to estimate, when the model's tokenizer or its framing is not
    /// published.
    pub fn new(model: &ModelInfo, allow_estimates: bool) -> Result<Self, CountError> {
        if !allow_estimates && model.exactness != Exactness::Published {
            return Err(CountError::UnknownModel);
        }
        let text = match model.exactness {
            Exactness::Published | Exactness::TokenizerOnly => TextSize::Exact(model.encoding),
            Exactness::Fitted(fit) => TextSize::Fitted { encoding: model.encoding, fit },
        };
        let tariff = Tariff {
            text,
            media: model.media,
            framing: match model.exactness {
                Exactness::Published => Framing::of(model.family),
                Exactness::TokenizerOnly | Exactness::Fitted(_) => Framing::inherited(model.family),
            },
            sealed: SealedRule::of(model.family),
            keeps_reasoning: model.keeps_reasoning,
        };
        Ok(Self::with_tariff(Some(model.key.clone()), tariff, model.encoding, allow_estimates))
    }

    /// A counter for any model that uses this encoding with the framing of OpenAI chat.
    #[must_use]
    pub fn with_encoding(encoding: Encoding, allow_estimates: bool) -> Self {
        let media = MediaRules {
            image: ImageRule::Tiles { base: 85, tile: 170 },
            audio_per_ten_seconds: 100,
            ..MediaRules::CONSERVATIVE
        };
        let tariff = Tariff {
            text: TextSize::Exact(encoding),
            media,
            framing: Framing::of(Family::OpenAi),
            sealed: SealedRule::of(Family::OpenAi),
            keeps_reasoning: false,
        };
        Self::with_tariff(None, tariff, encoding, allow_estimates)
    }

    /// A counter for models that are not in the table: it estimates for any of them, with the marks of the form
    /// that their requests have, and as the maker of that form counts where it is Anthropic or Google.
    #[must_use]
    pub fn for_unknown_model(family: Family) -> Self {
        Self::with_tariff(None, Tariff::of_unknown(family), Encoding::O200kBase, true)
    }

    fn with_tariff(model: Option<ModelKey>, tariff: Tariff, encoding: Encoding, estimates: bool) -> Self {
        let revision = SharedText::from(format!("tiktoken/{encoding}/2"));
        Self { model, tariff, estimates, revision, cache: MessageCache::default() }
    }

    /// Counts a whole request. [`Request::unseen_tokens`] is added as stated.
    ///
    /// # Errors
    /// [`CountError::UnknownModel`] for a request for another model; [`CountError::NotExact`] and
    /// [`CountError::ToolsNotExact`] for what an exact counter can only estimate.
    pub fn count_request(&self, request: &Request) -> Result<ContextCount, CountError> {
        self.check(request)?;
        let costs = self.costs(request);
        let kept = self.tariff.keeps_reasoning_of(&request.messages);
        let content = costs.iter().zip(kept).map(|(cost, reasoning)| cost.amount(reasoning).tokens);
        let marks = request.messages.iter().map(|message| self.tariff.framing.around(message).tokens);
        let saved = self.tariff.framing.saved(&request.messages, !request.tools.is_empty());
        let tools = self.tools(request).tokens.saturating_sub(saved);
        let fixed = [self.tariff.framing.request, tools, request.unseen_tokens.get()];
        let total = content.chain(marks).chain(fixed).fold(0, u64::saturating_add);
        Ok(ContextCount {
            model: request.model.clone(),
            input_tokens: TokenCount(total),
            quality: self.quality(),
        })
    }

    /// Counts a whole request, with the range in which its true count is to be expected. An exact counter's
    /// range is a point, that of a counter with leave to estimate never is.
    ///
    /// # Errors
    /// As [`LocalCounter::count_request`].
    pub fn range(&self, request: &Request) -> Result<CountRange, CountError> {
        self.measure_parts(request).map(|parts| parts.range)
    }

    /// Where the true counts of nine texts in ten of a class lie around this counter's estimate.
    #[must_use]
    pub fn error_band(&self, class: ContentClass) -> ErrorBand {
        self.tariff.text.error_band(class)
    }

    /// Counts one message with the marks around it. The result is not remembered.
    ///
    /// # Errors
    /// [`CountError::NotExact`], with index 0, for content that an exact counter can only estimate.
    pub fn count_message(&self, message: &Message) -> Result<TokenCount, CountError> {
        self.check_message(0, message)?;
        Ok(TokenCount(self.tariff.message(message)))
    }

    /// Counts a whole request, part by part. Its total is that of [`LocalCounter::count_request`].
    ///
    /// # Errors
    /// As [`LocalCounter::count_request`].
    pub fn measure_parts(&self, request: &Request) -> Result<Breakdown, CountError> {
        self.check(request)?;
        let costs = self.costs(request);
        Ok(Breakdown::of(request, &self.tariff, self.tools(request), &costs, self.quality()))
    }

    /// What each message's content costs, with all of its reasoning.
    fn costs(&self, request: &Request) -> Vec<ContentCost> {
        self.cache.costs(&request.messages, |message| self.tariff.content(message.blocks()))
    }

    fn tools(&self, request: &Request) -> Amount {
        self.cache.tools(&request.tools, |tools| self.tariff.tools(tools))
    }

    fn quality(&self) -> CountQuality {
        if self.estimates { CountQuality::HeuristicEstimate } else { CountQuality::ExactLocal }
    }

    fn check(&self, request: &Request) -> Result<(), CountError> {
        if self.model.as_ref().is_some_and(|model| *model != request.model) {
            return Err(CountError::UnknownModel);
        }
        if self.estimates {
            return Ok(());
        }
        if !request.tools.is_empty() {
            return Err(CountError::ToolsNotExact);
        }
        request
            .messages
            .iter()
            .enumerate()
            .try_for_each(|(index, message)| self.check_message(index, message))
    }

    fn check_message(&self, index: usize, message: &Message) -> Result<(), CountError> {
        match estimated_kind(message) {
            Some(kind) if !self.estimates => Err(CountError::NotExact { message: index, kind }),
            _ => Ok(()),
        }
    }
}

impl TextEstimator for LocalCounter {
    fn estimate(&self, text: &str) -> TokenCount {
        TokenCount(self.tariff.text.tokens(text))
    }
}

#[async_trait]
impl ContextCounter for LocalCounter {
    async fn count(&self, request: &Request) -> Result<ContextCount, CountError> {
        self.count_request(request)
    }

    fn capability(&self) -> CounterCapability {
        CounterCapability::local(self.revision.clone(), self.quality())
    }
}

/// The first thing in a message whose framing is not published: everything but one plain text of a speaker.
fn estimated_kind(message: &Message) -> Option<&'static str> {
    if matches!(message, Message::ToolResult { .. }) {
        return Some("tool_result");
    }
    match &**message.blocks() {
        [] | [Block::Text { .. }] => None,
        blocks => {
            let other = blocks.iter().find(|block| !matches!(block, Block::Text { .. }));
            Some(other.map_or("a second text", Block::kind))
        }
    }
}
