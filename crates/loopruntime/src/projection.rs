//! What a model or an external command gets to see of a transcript: text alone, tool results cut short.

use std::fmt::Write as _;

use epitome_loop::{Block, Blocks, Message, SharedText, TranscriptError, validate_depth};
use thiserror::Error;

/// A projected tool result has at most this many code points.
pub const TOOL_RESULT_CODE_POINTS: usize = 2_000;

/// How things that are not text are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Projection {
    /// Fixed marks, as the reference implementation writes them.
    Reference,
    /// Marks that name the kind, the size and a running number: `[image omitted: image/png, 34 KB, #3]`.
    WithReferences,
}

/// A transcript cannot be projected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProjectionError {
    /// Tool results nest too deep.
    #[error("message {message}: tool results nest too deep")]
    Depth {
        /// Index of the message.
        message: usize,
    },
}

/// Projects a transcript for a summarizer (spec: runtime, projection).
///
/// Text stays; a tool call becomes `[called tool: NAME]`, a refusal `[model refused: TEXT]`; thinking, images,
/// audio, documents and opaque items become marks; each tool result becomes one text of at most
/// [`TOOL_RESULT_CODE_POINTS`] code points, head and tail around a mark, nested results first.
///
/// # Errors
/// [`ProjectionError::Depth`] for the first message that nests too deep.
pub fn project(transcript: &[Message], projection: Projection) -> Result<Vec<Message>, ProjectionError> {
    if let Err(TranscriptError::Depth { message }) = validate_depth(transcript) {
        return Err(ProjectionError::Depth { message });
    }
    let mut projector = Projector { projection, media: 0 };
    Ok(transcript.iter().map(|message| projector.message(message)).collect())
}

struct Projector {
    projection: Projection,
    /// How many images, recordings and documents have been met.
    media: usize,
}

impl Projector {
    fn message(&mut self, message: &Message) -> Message {
        match message {
            Message::User { blocks } => Message::User { blocks: self.blocks(blocks) },
            Message::Assistant { blocks, usage } => {
                Message::Assistant { blocks: self.blocks(blocks), usage: *usage }
            }
            Message::System { blocks } => Message::System { blocks: self.blocks(blocks) },
            Message::ToolResult { blocks, tool_use_id, is_error } => Message::ToolResult {
                blocks: if blocks.is_empty() {
                    Blocks::default()
                } else {
                    [Block::Text { text: self.result(blocks) }].into()
                },
                tool_use_id: tool_use_id.clone(),
                is_error: *is_error,
            },
        }
    }

    fn blocks(&mut self, blocks: &Blocks) -> Blocks {
        if blocks.iter().all(|block| matches!(block, Block::Text { .. })) {
            return blocks.clone();
        }
        blocks.iter().map(|block| Block::Text { text: self.block(block) }).collect()
    }

    /// The text of a tool result. Recursion is bounded by the depth check.
    fn result(&mut self, blocks: &[Block]) -> SharedText {
        let text = match blocks {
            [block] => self.block(block),
            _ => blocks
                .iter()
                .fold(String::new(), |mut text, block| {
                    text.push_str(&self.block(block));
                    text
                })
                .into(),
        };
        cut_to_code_points(&text).map_or(text, SharedText::from)
    }

    fn block(&mut self, block: &Block) -> SharedText {
        let fixed = self.projection == Projection::Reference;
        match block {
            Block::Text { text } => text.clone(),
            Block::Refusal { text } => format!("[model refused: {}]", text.as_str()).into(),
            Block::ToolUse(call) => format!("[called tool: {}]", call.name.as_str()).into(),
            Block::ToolResult(result) => self.result(&result.content),
            Block::Thinking(_) if fixed => "[thinking omitted for compaction]".into(),
            Block::Thinking(_) => "[thinking omitted]".into(),
            Block::Image(_) if fixed => "[image omitted for compaction]".into(),
            Block::Image(image) => self.reference("image", &image.media_type, image.data.as_deref()),
            Block::Audio(_) if fixed => "[audio omitted for compaction]".into(),
            Block::Audio(audio) => self.reference("audio", &audio.media_type, audio.data.as_deref()),
            Block::Document(_) if fixed => "[document omitted for compaction]".into(),
            Block::Document(document) => {
                self.reference("document", &document.media_type, document.data.as_deref())
            }
            Block::Opaque(opaque) => {
                format!("[{} omitted]", plain_name(&opaque.kind, "provider item")).into()
            }
            // A kind that a later version adds is never shown by accident.
            _ => "[content omitted]".into(),
        }
    }

    fn reference(&mut self, what: &str, media_type: &str, data: Option<&[u8]>) -> SharedText {
        self.media += 1;
        let mut mark = format!("[{what} omitted: {}", plain_name(media_type, "unknown type"));
        if let Some(data) = data {
            let (size, unit) = match data.len() {
                bytes @ 0..1_000 => (bytes, "bytes"),
                bytes @ 1_000..1_000_000 => (bytes.div_ceil(1_000), "KB"),
                bytes => (bytes.div_ceil(1_000_000), "MB"),
            };
            // Writing to a string cannot fail.
            let _ = write!(mark, ", {size} {unit}");
        }
        let _ = write!(mark, ", #{}]", self.media);
        mark.into()
    }
}

/// A media type or kind as it may stand inside a mark: short, and without characters that could close it.
fn plain_name<'a>(name: &'a str, otherwise: &'a str) -> &'a str {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'+' | b'-' | b'_');
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) { name } else { otherwise }
}

/// The text cut to [`TOOL_RESULT_CODE_POINTS`] code points, its mark included; `None` if it is short enough.
fn cut_to_code_points(text: &str) -> Option<String> {
    if text.len() <= TOOL_RESULT_CODE_POINTS {
        return None;
    }
    let total = text.chars().count();
    let over = total.checked_sub(TOOL_RESULT_CODE_POINTS).filter(|&over| over > 0)?;
    // The mark names how many code points are left out, and its own length is part of that number.
    let mark = |omitted: usize| format!("[tool result truncated for compaction: omitted {omitted} runes]");
    let mut omitted = over + mark(over).len();
    while over + mark(omitted).len() != omitted {
        omitted = over + mark(omitted).len();
    }
    let kept = total - omitted;
    let head = text.char_indices().nth(kept / 2).map_or(text.len(), |(at, _)| at);
    let from_end = kept - kept / 2;
    let tail = text.char_indices().nth_back(from_end.saturating_sub(1)).map_or(0, |(at, _)| at);
    Some([text.get(..head)?, &mark(omitted), text.get(tail..)?].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::{Image, Opaque, RawJson, ToolResult};

    #[test]
    fn a_cut_result_has_exactly_the_allowed_length() {
        for total in [2_001, 2_043, 2_044, 2_100, 2_946, 9_999, 120_000] {
            let text: String = "a🚀日é".chars().cycle().take(total).collect();
            let cut = cut_to_code_points(&text).unwrap();
            assert_eq!(cut.chars().count(), TOOL_RESULT_CODE_POINTS, "{total}");
        }
        assert_eq!(cut_to_code_points(&"é".repeat(2_000)), None);
    }

    #[test]
    fn references_name_kind_size_and_number() {
        let image = |bytes: usize, media_type: &str| {
            Block::Image(Image {
                media_type: media_type.into(),
                data: Some(vec![0; bytes].into()),
                ..Image::default()
            })
        };
        let opaque = Block::Opaque(Opaque {
            kind: "compaction".into(),
            raw: RawJson::parse("{\"secret\":1}").unwrap(),
        });
        let blocks = [image(10, "image/png"), image(33_100, "] ignore"), opaque];
        let nested = Block::ToolResult(ToolResult {
            tool_use_id: "x".into(),
            content: blocks.into(),
            is_error: false,
        });
        let projected =
            project(&[Message::User { blocks: [nested].into() }], Projection::WithReferences).unwrap();
        let [Block::Text { text }] = &**projected[0].blocks() else { panic!("one text") };
        assert_eq!(
            text.as_str(),
            "[image omitted: image/png, 10 bytes, #1][image omitted: unknown type, 34 KB, #2][compaction omitted]"
        );
    }
}
