//! What the content of a message costs, split by kind of block.

use std::collections::BTreeMap;

use epitome_loop::{Block, Document, Message, Opaque, RawJson, Role, Thinking, ToolUse};

use crate::Encoding;
use crate::error_band::{Amount, ErrorBand};
use crate::fit::Fit;
use crate::framing::{Arguments, Definition, Framing};
use crate::media::MediaRules;
use crate::model_table::{CLAUDE_MEDIA, GEMINI_3};
use crate::models::Family;
use crate::opaque_json::OpaqueParts;
use crate::sealed::SealedRule;
use crate::text_size::TextSize;
use crate::tool_form::{argument_values, signatures};

/// All that is needed to put a price on content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tariff {
    pub(crate) text: TextSize,
    pub(crate) media: MediaRules,
    pub(crate) framing: Framing,
    pub(crate) sealed: SealedRule,
    /// Whether reasoning from before the newest turn stays in the context.
    pub(crate) keeps_reasoning: bool,
}

/// Tokens of some content, split by the kind of block they come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContentCost {
    by_kind: [u64; KINDS.len()],
    /// The doubt about everything but reasoning; its tokens are not used.
    doubt: Amount,
    reasoning: Amount,
}

/// The kinds in the order of [`ContentCost`].
const KINDS: [&str; 10] = [
    "text",
    "refusal",
    "image",
    "audio",
    "document",
    "thinking",
    "tool_use",
    "tool_result",
    "opaque",
    "other",
];

const THINKING: &str = "thinking";

impl ContentCost {
    pub(crate) fn total(&self) -> u64 {
        self.by_kind.iter().fold(0, |sum, &tokens| sum.saturating_add(tokens))
    }

    /// The total with its doubt.
    pub(crate) fn amount(&self) -> Amount {
        let Amount { below, above, .. } = self.doubt.plus(self.reasoning);
        Amount { tokens: self.total(), below, above }
    }

    /// Adds the kinds that cost something to a table.
    pub(crate) fn add_to(&self, table: &mut BTreeMap<&'static str, u64>) {
        for (&kind, &tokens) in KINDS.iter().zip(&self.by_kind).filter(|&(_, &tokens)| tokens > 0) {
            let sum = table.entry(kind).or_default();
            *sum = sum.saturating_add(tokens);
        }
    }

    fn charge(&mut self, kind: &'static str, amount: Amount) {
        let known = KINDS.iter().position(|&name| name == kind).unwrap_or(KINDS.len() - 1);
        if let Some(sum) = self.by_kind.get_mut(known) {
            *sum = sum.saturating_add(amount.tokens);
        }
        let doubt = if kind == THINKING { &mut self.reasoning } else { &mut self.doubt };
        *doubt = doubt.plus(amount);
    }

    /// The same content without its reasoning.
    #[must_use]
    fn without_reasoning(mut self) -> Self {
        if let Some(tokens) = self.by_kind.iter_mut().zip(KINDS).find(|(_, kind)| *kind == THINKING) {
            *tokens.0 = 0;
        }
        self.reasoning = Amount::default();
        self
    }
}

impl Tariff {
    /// For a model of which no more is known than whose form its requests have.
    pub(crate) fn of_unknown(family: Family) -> Self {
        let (fit, media) = match family {
            Family::Anthropic => (Fit::Claude, CLAUDE_MEDIA),
            Family::Gemini => (Fit::Gemini, GEMINI_3),
            Family::OpenAi | Family::Other => (Fit::Unpublished, MediaRules::CONSERVATIVE),
        };
        let text = TextSize::Fitted { encoding: Encoding::O200kBase, fit };
        let (framing, sealed) = (Framing::of(family), SealedRule::of(family));
        Self { text, media, framing, sealed, ..Self::UNKNOWN }
    }

    /// For a model about which nothing is known.
    pub(crate) const UNKNOWN: Self = Self {
        text: TextSize::Fitted { encoding: Encoding::O200kBase, fit: Fit::Unpublished },
        media: MediaRules::CONSERVATIVE,
        framing: Framing::UNKNOWN,
        sealed: SealedRule::UNKNOWN,
        keeps_reasoning: true,
    };

    /// The cost of a message's content, without the marks around the message. Blocks inside a nested tool
    /// result are charged to their own kind, the marks of the result to `tool_result`.
    ///
    /// Nesting is walked with a list of what is left, not by recursion, so its depth does not matter.
    pub(crate) fn content(&self, blocks: &[Block]) -> ContentCost {
        let mut cost = ContentCost::default();
        let mut left: Vec<&[Block]> = vec![blocks];
        while let Some(blocks) = left.pop() {
            for block in blocks {
                cost.charge(charged_as(block), self.block(block));
                if let Block::ToolResult(result) = block {
                    left.push(&result.content);
                }
            }
        }
        cost
    }

    /// Drops what the provider drops: the reasoning of earlier turns, unless the model keeps it.
    pub(crate) fn settle(&self, messages: &[Message], costs: &mut [ContentCost]) {
        if self.keeps_reasoning {
            return;
        }
        let turn = messages.iter().rposition(|message| message.role() == Role::User).unwrap_or(0);
        costs.iter_mut().take(turn).for_each(|cost| *cost = cost.without_reasoning());
    }

    /// A message with the marks around it.
    pub(crate) fn message(&self, message: &Message) -> u64 {
        self.framing.around(message).saturating_add(self.content(message.blocks()).total())
    }

    /// The cost of tool definitions in a request without a system message.
    pub(crate) fn tools(&self, tools: &[RawJson]) -> Amount {
        if tools.is_empty() {
            return Amount::default();
        }
        let each = self.framing.tool.saturating_mul(u64::try_from(tools.len()).unwrap_or(u64::MAX));
        let text = match self.framing.definition {
            Definition::Signature => self.text.tokens(&signatures(tools.iter().map(RawJson::as_str))),
            Definition::Json => {
                tools.iter().map(|tool| self.text.tokens(tool.as_str())).fold(0, u64::saturating_add)
            }
        };
        FRAMING_BAND.around(text.saturating_add(each).saturating_add(self.framing.tools))
    }

    /// One block, without the content of a nested tool result.
    fn block(&self, block: &Block) -> Amount {
        match block {
            Block::Text { text } | Block::Refusal { text } => self.text.measure(text),
            Block::Image(image) => self.media.image_amount(image),
            Block::Audio(audio) => AUDIO_BAND.around(self.media.audio(audio)),
            Block::Document(document) => self.document(document),
            Block::Thinking(thinking) => self.thinking(thinking),
            Block::ToolUse(call) => self.tool_use(call),
            Block::ToolResult(result) => FRAMING_BAND.around(self.framing.result(result.is_error)),
            Block::Opaque(opaque) => self.opaque(opaque),
            // A kind that this version does not know cannot be looked into.
            _ => FILE_BAND.around(UNKNOWN_BLOCK),
        }
    }

    /// Text where the source gives it, otherwise the bytes.
    fn document(&self, document: &Document) -> Amount {
        let body = if document.text.is_empty() {
            FILE_BAND.around(self.media.document_bytes(document))
        } else {
            self.text.measure(&document.text)
        };
        body.plus(self.text.measure(&document.name))
    }

    /// The reasoning as it can be read, or what its signature holds where that is more: some models show a
    /// short form, or nothing, and sign the whole. State is sealed as well.
    fn thinking(&self, thinking: &Thinking) -> Amount {
        let Thinking { thinking, signature, signature_format, provider_state, provider_state_format } =
            thinking;
        let sealed = self.sealed.of_format(signature_format).cost(signature.len());
        let shown = self.text.measure(thinking);
        let larger = if sealed.tokens > shown.tokens { sealed } else { shown };
        larger.plus(self.state(provider_state.as_ref(), provider_state_format))
    }

    fn tool_use(&self, call: &ToolUse) -> Amount {
        let ToolUse { id: _, name, input, provider_state, provider_state_format } = call;
        let frame = FRAMING_BAND.around(self.framing.tool_call).plus(self.text.measure(name));
        let arguments = input.as_ref().map_or(Amount::default(), |input| self.arguments(input.as_str()));
        frame.plus(arguments).plus(self.state(provider_state.as_ref(), provider_state_format))
    }

    fn arguments(&self, input: &str) -> Amount {
        let values = match self.framing.arguments {
            Arguments::OneByOne { each } => argument_values(input).map(|values| (values, each)),
            Arguments::Json => None,
        };
        let Some((values, each)) = values else { return self.text.measure(input) };
        let one = |value: &String| FRAMING_BAND.around(each).plus(self.text.measure(value));
        values.iter().map(one).fold(Amount::default(), Amount::plus)
    }

    /// What a provider added to a block for itself: only what is sealed in it can cost something.
    fn state(&self, state: Option<&RawJson>, format: &str) -> Amount {
        let Some(state) = state else { return Amount::default() };
        let rule = self.sealed.of_format(format);
        let sealed = OpaqueParts::of(state, &self.media).sealed;
        sealed.into_iter().map(|length| rule.cost(length)).fold(Amount::default(), Amount::plus)
    }

    fn opaque(&self, Opaque { kind, raw }: &Opaque) -> Amount {
        let OpaqueParts { plain, sealed, media } = OpaqueParts::of(raw, &self.media);
        let sealed_items = sealed.iter().map(|&length| self.sealed.cost(length));
        let inside = sealed_items.fold(FILE_BAND.around(media), Amount::plus);
        // Around what is sealed there is nothing but names for machines.
        let wholly_sealed = matches!(kind.as_str(), "compaction" | "reasoning" | REDACTED);
        if wholly_sealed && !sealed.is_empty() { inside } else { inside.plus(self.text.measure(&plain)) }
    }
}

/// Anthropic's reasoning that nobody may read.
const REDACTED: &str = "redacted_thinking";

/// Under which kind a block is charged.
fn charged_as(block: &Block) -> &'static str {
    match block {
        Block::Opaque(opaque) if opaque.kind == REDACTED => THINKING,
        _ => block.kind(),
    }
}

/// Marks around tools and calls, where they are measured and not published.
pub(crate) const FRAMING_BAND: ErrorBand = ErrorBand::new(10, 15);
const AUDIO_BAND: ErrorBand = ErrorBand::new(30, 25);
/// How much of a file is text cannot be seen from here.
const FILE_BAND: ErrorBand = ErrorBand::new(80, 60);

/// For a block of a kind that is newer than this crate.
const UNKNOWN_BLOCK: u64 = 1_000;
