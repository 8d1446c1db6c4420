//! Answers of `generateContent`; an event is one too.

use epitome_loop::{Block, FinishReason, ModelCallErrorKind, RawJson, Thinking, ToolUse, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::SIGNATURE;
use crate::answer::{Draft, usage_with_cache_inside};
use crate::finish_word::finish_of;
use crate::provider_error::error_in_answer;
use crate::wire_json::object;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default, borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(default)]
    prompt_feedback: Option<Feedback>,
    #[serde(default)]
    usage_metadata: Option<WireUsage>,
    #[serde(default)]
    model_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default, borrow)]
    content: Option<Content<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(default, borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    #[serde(default)]
    thought_signature: Option<String>,
    #[serde(default, borrow)]
    function_call: Option<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default, borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    #[serde(default)]
    block_reason: Option<String>,
    #[serde(default)]
    block_reason_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUsage {
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default)]
    cached_content_token_count: Option<u64>,
    #[serde(default)]
    candidates_token_count: Option<u64>,
    #[serde(default)]
    thoughts_token_count: Option<u64>,
}

impl WireUsage {
    /// Input includes what is cached. What is said and what is thought are counted apart.
    fn usage(self) -> Usage {
        let Self {
            prompt_token_count,
            tool_use_prompt_token_count,
            cached_content_token_count,
            candidates_token_count,
            thoughts_token_count,
        } = self;
        let number = |number: Option<u64>| number.unwrap_or(0);
        let input = number(prompt_token_count).saturating_add(number(tool_use_prompt_token_count));
        let thought = number(thoughts_token_count);
        let output = number(candidates_token_count).saturating_add(thought);
        usage_with_cache_inside(input, number(cached_content_token_count), 0, output, thought)
    }
}

/// An answer while its pieces come.
#[derive(Default)]
pub(super) struct Gathered {
    /// All but the content.
    draft: Draft,
    pieces: Vec<Piece>,
    refusal: String,
    /// There was something of an answer, not usage alone.
    begun: bool,
}

enum Piece {
    Text(String),
    Thought { words: String, signature: String },
    Call(ToolUse),
}

/// Reads an answer.
pub(super) fn read(body: &[u8]) -> Result<Draft, ModelCallErrorKind> {
    let mut gathered = Gathered::default();
    take(body, &mut gathered)?;
    if gathered.begun { Ok(gathered.draft()) } else { Err(ModelCallErrorKind::Malformed) }
}

/// Adds what a body says to an answer.
pub(super) fn take(body: &[u8], gathered: &mut Gathered) -> Result<(), ModelCallErrorKind> {
    let Body { error, candidates, prompt_feedback, usage_metadata, model_version } = object(body)?;
    if let Some(kind) = error_in_answer(error) {
        return Err(kind);
    }
    let draft = &mut gathered.draft;
    draft.usage = usage_metadata.map(WireUsage::usage).or(draft.usage);
    draft.model = model_version.or(draft.model.take());
    if let Some(Feedback { block_reason: Some(_), block_reason_message }) = prompt_feedback {
        gathered.begun = true;
        gathered.draft.finish = Some(FinishReason::Refused);
        gathered.refusal.push_str(&block_reason_message.unwrap_or_default());
    }
    let Some(Candidate { content, finish_reason, finish_message }) = candidates.into_iter().flatten().next()
    else {
        return Ok(());
    };
    gathered.begun = true;
    for part in content.and_then(|content| content.parts).into_iter().flatten() {
        gathered.push_part(part);
    }
    if let Some(word) = finish_reason {
        let finish = finish_of(&word)?;
        gathered.draft.finish = Some(finish);
        if finish == FinishReason::Refused {
            gathered.refusal.push_str(&finish_message.unwrap_or_default());
        }
    }
    Ok(())
}

impl Gathered {
    /// Text goes on where text stood, as an answer in events comes in pieces.
    fn push_part(&mut self, part: Part<'_>) {
        let Part { text, thought, thought_signature, function_call } = part;
        let signed = thought_signature.unwrap_or_default();
        if let Some(Call { id, name, args }) = function_call {
            let input = args.and_then(|args| RawJson::parse(args.get()).ok());
            let call = ToolUse::new(id.unwrap_or_default(), name.unwrap_or_default(), input, None);
            return self.pieces.push(Piece::Call(call));
        }
        let Some(text) = text else { return };
        match self.pieces.last_mut() {
            Some(Piece::Thought { words, signature }) if thought => {
                words.push_str(&text);
                signature.push_str(&signed);
            }
            Some(Piece::Text(last)) if !thought => last.push_str(&text),
            _ if thought => self.pieces.push(Piece::Thought { words: text, signature: signed }),
            _ => self.pieces.push(Piece::Text(text)),
        }
    }

    /// Whether its end was told.
    pub(super) fn is_whole(&self) -> bool {
        self.draft.finish.is_some()
    }

    /// What was gathered.
    pub(super) fn draft(self) -> Draft {
        let Self { mut draft, pieces, refusal, begun: _ } = self;
        for piece in pieces {
            match piece {
                Piece::Text(text) => draft.push_text(text),
                Piece::Thought { words, signature } => {
                    draft.blocks.push(Block::Thinking(Thinking::new(words, signature, SIGNATURE, None)));
                }
                Piece::Call(call) => draft.blocks.push(Block::ToolUse(call)),
            }
        }
        draft.push_refusal(refusal);
        draft
    }
}
