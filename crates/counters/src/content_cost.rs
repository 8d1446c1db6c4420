//! What the content of a message costs, split by kind of block.

use epitome_loop::{Block, Document, Message, Opaque, RawJson, Role, Thinking, ToolUse};

use crate::Encoding;
use crate::error_band::{Amount, ErrorBand};
use crate::fit::Fit;
use crate::framing::{Arguments, Definition, Framing};
use crate::kind_costs::{ContentCost, KindCosts, THINKING};
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

impl Tariff {
    /// For a model of which no more is known than whose form its requests have.
    pub(crate) fn of_unknown(family: Family) -> Self {
        let (fit, media) = match family {
            Family::Anthropic => (Fit::Claude, CLAUDE_MEDIA),
            Family::Gemini => (Fit::Gemini, GEMINI_3),
            Family::OpenAi | Family::Other => (Fit::Unpublished, MediaRules::CONSERVATIVE),
        };
        let text = TextSize::Fitted { encoding: Encoding::O200kBase, fit };
        let (framing, sealed) = (Framing::guessed(family), SealedRule::of(family));
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
        let mut costs = KindCosts::default();
        let mut left: Vec<&[Block]> = vec![blocks];
        while let Some(blocks) = left.pop() {
            for block in blocks {
                costs.charge(charged_as(block), self.block(block));
                if let Block::ToolResult(result) = block {
                    left.push(&result.content);
                }
            }
        }
        costs.packed()
    }

    /// Whether the reasoning in each message is kept: the provider drops that of earlier turns, unless the model
    /// keeps it.
    pub(crate) fn keeps_reasoning_of(&self, messages: &[Message]) -> impl Iterator<Item = bool> {
        let is_user = |message: &Message| message.role() == Role::User;
        let newest_turn = messages.iter().rposition(is_user).filter(|_| !self.keeps_reasoning).unwrap_or(0);
        (0..messages.len()).map(move |at| at >= newest_turn)
    }

    /// A message with the marks around it.
    pub(crate) fn message(&self, message: &Message) -> u64 {
        let content = self.content(message.blocks()).amount(true);
        self.framing.around(message).plus(content).tokens
    }

    /// The cost of tool definitions in a request without a system message.
    pub(crate) fn tools(&self, tools: &[RawJson]) -> Amount {
        if tools.is_empty() {
            return Amount::default();
        }
        let each = self.framing.tool.saturating_mul(u64::try_from(tools.len()).unwrap_or(u64::MAX));
        let text = match self.framing.definition {
            Definition::Signature => self.text.measure(&signatures(tools.iter().map(RawJson::as_str))),
            Definition::Json => tools
                .iter()
                .map(|tool| self.text.measure(tool.as_str()))
                .fold(Amount::default(), Amount::plus),
        };
        // In what form a definition is shown to the model is not published, so its text is in doubt even where
        // text is counted exactly.
        let band = self.framing.measured_band;
        text.at_least(band).plus(band.around(each.saturating_add(self.framing.tools)))
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
            Block::ToolResult(result) => self.framing.result(result.is_error),
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
        let marks = self.framing.measured_band;
        let frame = marks.around(self.framing.tool_call).plus(self.text.measure(name));
        let arguments = input.as_ref().map_or(Amount::default(), |input| self.arguments(input.as_str()));
        frame.plus(arguments).plus(self.state(provider_state.as_ref(), provider_state_format))
    }

    fn arguments(&self, input: &str) -> Amount {
        let values = match self.framing.arguments {
            Arguments::OneByOne { each } => argument_values(input).map(|values| (values, each)),
            Arguments::Json => None,
        };
        let Some((values, each)) = values else { return self.text.measure(input) };
        let marks = self.framing.measured_band;
        let one = |value: &String| marks.around(each).plus(self.text.measure(value));
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

const AUDIO_BAND: ErrorBand = ErrorBand::new(30, 25);
/// How much of a file is text cannot be seen from here.
const FILE_BAND: ErrorBand = ErrorBand::new(80, 60);

/// For a block of a kind that is newer than this crate.
const UNKNOWN_BLOCK: u64 = 1_000;
