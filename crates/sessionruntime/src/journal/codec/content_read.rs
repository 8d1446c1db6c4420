//! Reading messages: the fields as they were, also where a constructor would have made them consistent.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use epitome_loop::{
    Audio, Block, Blocks, Document, Image, MAX_BLOCK_DEPTH, Message, Opaque, RawJson, SharedBytes,
    SharedText, Thinking, TokenCount, ToolResult, ToolUse, Usage,
};

use crate::journal::BlobDigest;
use crate::wire::{Fault, Keys, Read, Reader, WireFault};

/// The media that are at hand, and those that were asked for in vain.
pub(super) struct Media<'a> {
    at_hand: &'a BTreeMap<BlobDigest, SharedBytes>,
    pub(super) missing: Vec<BlobDigest>,
}

impl<'a> Media<'a> {
    pub(super) fn new(at_hand: &'a BTreeMap<BlobDigest, SharedBytes>) -> Self {
        Self { at_hand, missing: Vec::new() }
    }

    fn get(&mut self, digest: BlobDigest) -> SharedBytes {
        match self.at_hand.get(&digest) {
            Some(bytes) => bytes.clone(),
            None => {
                if !self.missing.contains(&digest) {
                    self.missing.push(digest);
                }
                SharedBytes::default()
            }
        }
    }
}

const MESSAGE_KEYS: [&str; 5] = ["role", "blocks", "usage", "tool_use_id", "is_error"];

/// Every key of a block.
const KEYS: [&str; 18] = [
    "type",
    "text",
    "id",
    "name",
    "input",
    "tool_use_id",
    "content",
    "is_error",
    "thinking",
    "signature",
    "signature_format",
    "provider_state",
    "provider_state_format",
    "media_type",
    "url",
    "data",
    "kind",
    "raw",
];

// Indices into `KEYS`.
const TEXT: usize = 1;
const ID: usize = 2;
const NAME: usize = 3;
const INPUT: usize = 4;
const TOOL_USE_ID: usize = 5;
const CONTENT: usize = 6;
const IS_ERROR: usize = 7;
const THINKING: usize = 8;
const SIGNATURE: usize = 9;
const SIGNATURE_FORMAT: usize = 10;
const STATE: usize = 11;
const STATE_FORMAT: usize = 12;
const MEDIA_TYPE: usize = 13;
const URL: usize = 14;
const DATA: usize = 15;
const KIND: usize = 16;
const RAW: usize = 17;

const USAGE_KEYS: [&str; 5] = ["input", "output", "cache_read", "cache_creation", "reasoning"];
const BLOB_KEYS: [&str; 2] = ["sha256", "bytes"];

pub(super) fn message(reader: &mut Reader<'_>, media: &mut Media<'_>) -> Read<Message> {
    let start = reader.at();
    let (mut role, mut content, mut usage) = (None, Blocks::default(), None);
    let (mut tool_use_id, mut is_error) = (None, false);
    let keys = reader.object(&MESSAGE_KEYS, |reader, index| {
        match index {
            0 => {
                role = Some(match &*reader.short_text()? {
                    "user" => "user",
                    "assistant" => "assistant",
                    "system" => "system",
                    "tool" => "tool",
                    _ => return Err(Fault::new(WireFault::UnknownName, reader.at())),
                });
            }
            1 => content = blocks(reader, media, 0)?,
            2 => usage = self::usage(reader)?,
            3 => tool_use_id = Some(reader.text()?),
            _ => is_error = reader.boolean()?,
        }
        Ok(())
    })?;
    let wanted = match role {
        Some("assistant") => Keys::first(3),
        Some("tool") => Keys::of(&[0, 1, 3, 4]),
        _ => Keys::first(2),
    };
    keys.require(wanted, reader.at())?;
    keys.allow(wanted, start)?;
    Ok(match role {
        Some("assistant") => Message::Assistant { blocks: content, usage },
        Some("tool") => {
            Message::ToolResult { blocks: content, tool_use_id: tool_use_id.unwrap_or_default(), is_error }
        }
        Some("system") => Message::System { blocks: content },
        _ => Message::User { blocks: content },
    })
}

pub(super) fn usage(reader: &mut Reader<'_>) -> Read<Option<Usage>> {
    if reader.null() {
        return Ok(None);
    }
    let mut usage = Usage::default();
    let keys = reader.object(&USAGE_KEYS, |reader, index| {
        let count = match index {
            0 => &mut usage.input,
            1 => &mut usage.output,
            2 => &mut usage.cache_read,
            3 => &mut usage.cache_creation,
            _ => &mut usage.reasoning,
        };
        *count = TokenCount(reader.unsigned()?);
        Ok(())
    })?;
    keys.require(Keys::first(USAGE_KEYS.len()), reader.at())?;
    Ok(Some(usage))
}

/// Blocks inside `results` nested tool results. Recursion is bounded by [`MAX_BLOCK_DEPTH`].
fn blocks(reader: &mut Reader<'_>, media: &mut Media<'_>, results: usize) -> Read<Blocks> {
    let mut blocks = Vec::new();
    reader.array(|reader| {
        blocks.push(block(reader, media, results)?);
        Ok(())
    })?;
    Ok(blocks.into())
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Refusal,
    Image,
    Audio,
    Document,
    Thinking,
    ToolUse,
    ToolResult,
    Opaque,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Self::Text,
            "refusal" => Self::Refusal,
            "image" => Self::Image,
            "audio" => Self::Audio,
            "document" => Self::Document,
            "thinking" => Self::Thinking,
            "tool_use" => Self::ToolUse,
            "tool_result" => Self::ToolResult,
            "opaque" => Self::Opaque,
            _ => return None,
        })
    }

    /// The keys that must be there beside the type, and those that may be.
    const fn keys(self) -> (Keys, Keys) {
        match self {
            Self::Text | Self::Refusal => (Keys::of(&[0, TEXT]), Keys::of(&[])),
            Self::Image => (Keys::of(&[0, MEDIA_TYPE, URL]), Keys::of(&[DATA])),
            Self::Audio => (Keys::of(&[0, MEDIA_TYPE]), Keys::of(&[DATA])),
            Self::Document => (Keys::of(&[0, MEDIA_TYPE, NAME, TEXT]), Keys::of(&[DATA])),
            Self::Thinking => {
                (Keys::of(&[0, THINKING, SIGNATURE]), Keys::of(&[SIGNATURE_FORMAT, STATE, STATE_FORMAT]))
            }
            Self::ToolUse => (Keys::of(&[0, ID, NAME]), Keys::of(&[INPUT, STATE, STATE_FORMAT])),
            Self::ToolResult => (Keys::of(&[0, TOOL_USE_ID, CONTENT, IS_ERROR]), Keys::of(&[])),
            Self::Opaque => (Keys::of(&[0, KIND, RAW]), Keys::of(&[])),
        }
    }
}

/// The values of a block's keys. What is absent costs nothing: even an empty shared text would be counted.
#[derive(Default)]
struct Values {
    kind: Option<Kind>,
    text: Option<SharedText>,
    id: Option<SharedText>,
    name: Option<SharedText>,
    raw: Option<RawJson>,
    content: Option<Blocks>,
    is_error: bool,
    signature: Option<SharedText>,
    signature_format: Option<SharedText>,
    state: Option<RawJson>,
    state_format: Option<SharedText>,
    media_type: Option<SharedText>,
    data: Option<SharedBytes>,
}

fn block(reader: &mut Reader<'_>, media: &mut Media<'_>, results: usize) -> Read<Block> {
    let start = reader.at();
    let mut values = Values::default();
    let keys = reader.object(&KEYS, |reader, index| values.read(reader, media, index, results))?;
    let end = reader.at();
    let Some(kind) = values.kind else { return Err(Fault::new(WireFault::MissingKey, end)) };
    let (needed, optional) = kind.keys();
    keys.require(needed, end)?;
    keys.allow(needed.or(optional), start)?;
    // Opaque items must have their raw form, which is the one value that has no empty one.
    values.into_block(kind).ok_or(Fault::new(WireFault::MissingKey, end))
}

impl Values {
    fn read(
        &mut self,
        reader: &mut Reader<'_>,
        media: &mut Media<'_>,
        index: usize,
        results: usize,
    ) -> Read<()> {
        match index {
            TEXT | THINKING => self.text = Some(reader.text()?),
            ID | TOOL_USE_ID | KIND => self.id = Some(reader.text()?),
            NAME | URL => self.name = Some(reader.text()?),
            INPUT | RAW => self.raw = Some(raw(reader)?),
            CONTENT if results >= MAX_BLOCK_DEPTH => return Err(reader.refuse(WireFault::Nesting)),
            CONTENT => self.content = Some(blocks(reader, media, results + 1)?),
            IS_ERROR => self.is_error = reader.boolean()?,
            SIGNATURE => self.signature = Some(reader.text()?),
            SIGNATURE_FORMAT => self.signature_format = Some(reader.text()?),
            STATE => self.state = Some(raw(reader)?),
            STATE_FORMAT => self.state_format = Some(reader.text()?),
            MEDIA_TYPE => self.media_type = Some(reader.text()?),
            DATA => self.data = Some(data(reader, media)?),
            _ => {
                let at = reader.at();
                let kind = Kind::of(&reader.short_text()?);
                self.kind = Some(kind.ok_or(Fault::new(WireFault::UnknownName, at))?);
            }
        }
        Ok(())
    }

    fn into_block(self, kind: Kind) -> Option<Block> {
        let given = Option::<SharedText>::unwrap_or_default;
        let Self { text, id, name, raw, media_type, data, .. } = self;
        Some(match kind {
            Kind::Text => Block::Text { text: given(text) },
            Kind::Refusal => Block::Refusal { text: given(text) },
            Kind::Image => Block::Image(Image { media_type: given(media_type), url: given(name), data }),
            Kind::Audio => Block::Audio(Audio { media_type: given(media_type), data }),
            Kind::Document => Block::Document(Document {
                media_type: given(media_type),
                name: given(name),
                data,
                text: given(text),
            }),
            Kind::Thinking => Block::Thinking(Thinking {
                thinking: given(text),
                signature: given(self.signature),
                signature_format: given(self.signature_format),
                provider_state: self.state,
                provider_state_format: given(self.state_format),
            }),
            Kind::ToolUse => Block::ToolUse(ToolUse {
                id: given(id),
                name: given(name),
                input: raw,
                provider_state: self.state,
                provider_state_format: given(self.state_format),
            }),
            Kind::ToolResult => Block::ToolResult(ToolResult {
                tool_use_id: given(id),
                content: self.content.unwrap_or_default(),
                is_error: self.is_error,
            }),
            Kind::Opaque => Block::Opaque(Opaque { kind: given(id), raw: raw? }),
        })
    }
}

/// Raw JSON, which stands in a string.
pub(super) fn raw(reader: &mut Reader<'_>) -> Read<RawJson> {
    let at = reader.at();
    RawJson::parse(reader.text()?).map_err(|_| Fault::new(WireFault::Syntax, at))
}

/// Media: in base64, or by their digest.
fn data(reader: &mut Reader<'_>, media: &mut Media<'_>) -> Read<SharedBytes> {
    let at = reader.at();
    if !reader.is_object() {
        let text = reader.short_text()?;
        let bytes = STANDARD.decode(text.as_bytes()).map_err(|_| Fault::new(WireFault::Base64, at))?;
        return Ok(bytes.into());
    }
    blob(reader, media)
}

/// Bytes that stand outside the record.
pub(super) fn blob(reader: &mut Reader<'_>, media: &mut Media<'_>) -> Read<SharedBytes> {
    let at = reader.at();
    let (mut digest, mut len) = (None, 0);
    let keys = reader.object(&BLOB_KEYS, |reader, index| {
        if index == 0 {
            digest = BlobDigest::read(&reader.short_text()?);
        } else {
            len = reader.unsigned()?;
        }
        Ok(())
    })?;
    keys.require(Keys::first(BLOB_KEYS.len()), reader.at())?;
    let digest = digest.ok_or(Fault::new(WireFault::Fingerprint, at))?;
    let bytes = media.get(digest);
    if bytes.is_empty() || bytes.len() as u64 == len {
        Ok(bytes)
    } else {
        Err(Fault::new(WireFault::Number, at))
    }
}
