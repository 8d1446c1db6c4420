//! Pieces of requests that several interfaces write alike.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use epitome_loop::{AnswerForm, Block, Image, ModelCall, RawJson, SharedText};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::dialect::NoPlace;

/// A request in JSON.
pub(crate) fn to_json(request: &impl Serialize) -> Vec<u8> {
    // Text, numbers and JSON that was checked: nothing of this can fail to be written.
    serde_json::to_vec(request).unwrap_or_default()
}

/// JSON that goes into a request as it stands.
pub(crate) fn as_it_stands(json: &RawJson) -> Option<&RawValue> {
    serde_json::from_str(json.as_str().trim()).ok()
}

/// The largest answer that a call allows: the smaller of its two limits.
pub(crate) fn most_output(call: &ModelCall) -> Option<u64> {
    let limits = [call.max_output, call.sampling.max_tokens];
    limits.into_iter().flatten().map(|limit| limit.get()).min()
}

/// The texts that end an answer; `None` when there are none.
pub(crate) fn stops(call: &ModelCall) -> Option<Vec<&str>> {
    let stops = call.sampling.stop.as_deref().unwrap_or_default();
    (!stops.is_empty()).then(|| stops.iter().map(SharedText::as_str).collect())
}

/// How hard to think, where the call says so.
pub(crate) fn effort(call: &ModelCall) -> Option<&str> {
    Some(call.sampling.effort.as_str()).filter(|effort| !effort.is_empty())
}

/// The schema that the answer is held to, with its name, where forms are sent.
pub(crate) fn json_schema(call: &ModelCall, with_form: bool) -> Option<(&str, &RawValue)> {
    match &call.answer_form {
        Some(AnswerForm::JsonSchema { name, schema }) if with_form => Some((name, as_it_stands(schema)?)),
        _ => None,
    }
}

/// A picture's address: its own, or one that holds its bytes. `None` for a picture with neither.
pub(crate) fn picture_url(image: &Image) -> Option<String> {
    match picture_bytes(image) {
        Some((media_type, data)) => Some(format!("data:{media_type};base64,{data}")),
        None => Some(image.url.as_str().to_owned()).filter(|url| !url.is_empty()),
    }
}

/// A picture's kind and bytes, in base64, where it is given by value.
pub(crate) fn picture_bytes(image: &Image) -> Option<(&str, String)> {
    let data = image.data.as_ref().filter(|data| !data.is_empty())?;
    let media_type = if image.media_type.is_empty() { "image/png" } else { image.media_type.as_str() };
    Some((media_type, STANDARD.encode(data.as_slice())))
}

/// The texts of blocks that must all be text, as of a system message. Empty ones are left out.
pub(crate) fn texts(blocks: &[Block], message: usize) -> Result<Vec<&str>, NoPlace> {
    let mut texts = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Text { text } | Block::Refusal { text } => texts.push(text.as_str()),
            other => return Err(NoPlace { message, kind: other.kind() }),
        }
    }
    texts.retain(|text| !text.is_empty());
    Ok(texts)
}
