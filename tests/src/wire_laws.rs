//! The laws of wire v1: what is written is read, and what is read is written the same way ever after.

use std::sync::Arc;

use epitome_loop::json_text::push_raw;
use epitome_loop::{Block, Blocks, CompactionInput, Message, RawJson, Thinking, ToolResult, ToolUse};
use epitome_sessionruntime::{decode_input, encode_input, fit_input};

/// A law of the wire was broken. Says which, without any content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenLaw {
    /// What the encoder wrote was refused.
    #[error("what was written is not read")]
    Refused,
    /// What the encoder wrote means something else when it is read.
    #[error("what was written is read as something else")]
    OtherValue,
    /// What was read is written in other bytes.
    #[error("what was read is written in other bytes")]
    OtherBytes,
    /// Two ways to write the same input gave other bytes.
    #[error("fitting writes other bytes than encoding")]
    OtherFit,
}

/// Writes an input, reads it and writes it again. Returns what was written.
///
/// The value that is read equals the given one in its normal form, see [`normal_form`]; its bytes are the same
/// if the given one holds no halves that the normal form drops.
///
/// # Errors
/// [`BrokenLaw`] with the first law that does not hold.
pub fn check_written(input: &CompactionInput) -> Result<Vec<u8>, BrokenLaw> {
    let written = encode_input(input);
    let read = decode_input(&written).map_err(|_| BrokenLaw::Refused)?;
    let normal = normal_form(input).ok_or(BrokenLaw::OtherValue)?;
    if normal_form(&read).as_ref() != Some(&normal) {
        return Err(BrokenLaw::OtherValue);
    }
    let again = encode_input(&read);
    if again != encode_input(&normal) {
        return Err(BrokenLaw::OtherBytes);
    }
    let settled = decode_input(&again).map_err(|_| BrokenLaw::Refused)?;
    if encode_input(&settled) != again {
        return Err(BrokenLaw::OtherBytes);
    }
    match fit_input(input, written.len() as u64) {
        Ok(fitted) if fitted.bytes == written && fitted.stubbed.is_empty() => Ok(written),
        _ => Err(BrokenLaw::OtherFit),
    }
}

/// The input as it is once it has been through the wire: raw JSON without insignificant white space and with
/// the wire's escapes, a call without input for a call with the input `null`, and blocks as their constructors
/// make them, which drop a state without a format, a format without a state, and a signature's format without
/// a signature.
///
/// `None` if it is no valid input, which cannot be for a valid one.
#[must_use]
pub fn normal_form(input: &CompactionInput) -> Option<CompactionInput> {
    let transcript = input.transcript().iter().map(normal_message).collect::<Option<Vec<_>>>()?;
    CompactionInput::new(
        input.basis(),
        input.model().clone(),
        input.request_fingerprint(),
        transcript.into(),
        input.max_summary_tokens(),
    )
    .ok()
}

fn normal_message(message: &Message) -> Option<Message> {
    let blocks = normal_blocks(message.blocks())?;
    Some(match message {
        Message::User { .. } => Message::User { blocks },
        Message::System { .. } => Message::System { blocks },
        Message::Assistant { usage, .. } => Message::Assistant { blocks, usage: *usage },
        Message::ToolResult { tool_use_id, is_error, .. } => {
            Message::ToolResult { blocks, tool_use_id: tool_use_id.clone(), is_error: *is_error }
        }
    })
}

/// Recursion is bounded: the depth of the input was checked when it was built.
fn normal_blocks(blocks: &[Block]) -> Option<Blocks> {
    let blocks = blocks.iter().map(|block| {
        Some(match block {
            Block::Thinking(Thinking {
                thinking,
                signature,
                signature_format,
                provider_state,
                provider_state_format,
            }) => {
                let state = normal_raw(provider_state.as_ref())?;
                Block::Thinking(Thinking::new(
                    thinking.clone(),
                    signature.clone(),
                    signature_format.clone(),
                    state.map(|state| (state, provider_state_format.clone())),
                ))
            }
            Block::ToolUse(ToolUse { id, name, input, provider_state, provider_state_format }) => {
                let state = normal_raw(provider_state.as_ref())?;
                let input = normal_raw(input.as_ref())?.filter(|input| input.as_str() != "null");
                let state = state.map(|state| (state, provider_state_format.clone()));
                Block::ToolUse(ToolUse::new(id.clone(), name.clone(), input, state))
            }
            Block::ToolResult(result) => {
                Block::ToolResult(ToolResult { content: normal_blocks(&result.content)?, ..result.clone() })
            }
            other => other.clone(),
        })
    });
    blocks.collect::<Option<Vec<_>>>().map(Arc::from)
}

fn normal_raw(raw: Option<&RawJson>) -> Option<Option<RawJson>> {
    let Some(raw) = raw else { return Some(None) };
    let mut compact = Vec::new();
    push_raw(&mut compact, raw);
    RawJson::parse(String::from_utf8(compact).ok()?).ok().map(Some)
}
