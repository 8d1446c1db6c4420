//! Reading blocks. Keys may come in any order, the type last, so the values are read by their keys alone and
//! the type decides afterwards which keys there may be.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use epitome_loop::{
    Audio, Block, Blocks, Document, Image, MAX_BLOCK_DEPTH, RawJson, SharedBytes, SharedText, Thinking,
    ToolResult, ToolUse,
};

use super::fault::{Fault, WireFault};
use super::reader::{Keys, Read, Reader};

/// Every key that a block can have. For each type, those it has stand in the order in which they are written.
const KEYS: [&str; 16] = [
    "type",
    "tool_use_id",
    "content",
    "is_error",
    "media_type",
    "source",
    "id",
    "name",
    "data",
    "text",
    "thinking",
    "signature",
    "signature_format",
    "input",
    "provider_state",
    "provider_state_format",
];

// Indices into `KEYS`.
const TYPE: usize = 0;
const TOOL_USE_ID: usize = 1;
const CONTENT: usize = 2;
const IS_ERROR: usize = 3;
const MEDIA_TYPE: usize = 4;
const SOURCE: usize = 5;
const ID: usize = 6;
const NAME: usize = 7;
const DATA: usize = 8;
const TEXT: usize = 9;
const THINKING: usize = 10;
const SIGNATURE: usize = 11;
const SIGNATURE_FORMAT: usize = 12;
const INPUT: usize = 13;
const STATE: usize = 14;
const STATE_FORMAT: usize = 15;

const SOURCE_KEYS: [&str; 2] = ["url", "data"];

/// The types of blocks on the wire.
#[derive(Clone, Copy, Default)]
enum Kind {
    #[default]
    Text,
    Refusal,
    Image,
    Audio,
    Document,
    Thinking,
    ToolUse,
    ToolResult,
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
            _ => return None,
        })
    }

    /// The keys that must be there, and those that may be.
    const fn keys(self) -> (Keys, Keys) {
        match self {
            Self::Text | Self::Refusal => (Keys::of(&[TYPE, TEXT]), Keys::of(&[])),
            Self::Image => (Keys::of(&[TYPE, MEDIA_TYPE, SOURCE]), Keys::of(&[])),
            Self::Audio => (Keys::of(&[TYPE, MEDIA_TYPE, DATA]), Keys::of(&[])),
            Self::Document => (Keys::of(&[TYPE, MEDIA_TYPE, NAME, DATA, TEXT]), Keys::of(&[])),
            Self::Thinking => {
                (Keys::of(&[TYPE, THINKING, SIGNATURE]), Keys::of(&[SIGNATURE_FORMAT, STATE, STATE_FORMAT]))
            }
            Self::ToolUse => (Keys::of(&[TYPE, ID, NAME, INPUT]), Keys::of(&[STATE, STATE_FORMAT])),
            Self::ToolResult => (Keys::of(&[TYPE, TOOL_USE_ID, CONTENT, IS_ERROR]), Keys::of(&[])),
        }
    }
}

/// The values of a block's keys. None is kept as nothing, not as a default: even an empty shared text is counted.
#[derive(Default)]
struct Values {
    kind: Kind,
    text: Option<SharedText>,
    media_type: Option<SharedText>,
    url: Option<SharedText>,
    data: Option<SharedBytes>,
    name: Option<SharedText>,
    thinking: Option<SharedText>,
    signature: Option<SharedText>,
    signature_format: Option<SharedText>,
    state: Option<RawJson>,
    state_format: Option<SharedText>,
    id: Option<SharedText>,
    input: Option<RawJson>,
    tool_use_id: Option<SharedText>,
    content: Option<Blocks>,
    is_error: bool,
}

/// Reads a list of blocks inside `results` nested tool results. Recursion is bounded by [`MAX_BLOCK_DEPTH`].
pub(super) fn read_blocks(reader: &mut Reader<'_>, results: usize) -> Read<Blocks> {
    let mut blocks = Vec::new();
    reader.array(|reader| {
        blocks.push(read_block(reader, results)?);
        Ok(())
    })?;
    Ok(blocks.into())
}

fn read_block(reader: &mut Reader<'_>, results: usize) -> Read<Block> {
    let start = reader.at();
    let mut values = Values::default();
    let keys = reader.object(&KEYS, |reader, index| values.read(reader, index, results))?;
    let end = reader.at();
    keys.require(Keys::of(&[TYPE]), end)?;
    let (needed, optional) = values.kind.keys();
    keys.require(needed, end)?;
    keys.allow(needed.or(optional), start)?;
    Ok(values.into_block())
}

impl Values {
    fn read(&mut self, reader: &mut Reader<'_>, index: usize, results: usize) -> Read<()> {
        match index {
            TYPE => self.kind = read_kind(reader)?,
            TEXT => self.text = Some(reader.text()?),
            MEDIA_TYPE => self.media_type = Some(reader.text()?),
            SOURCE => self.read_source(reader)?,
            DATA => self.data = read_data(reader)?,
            NAME => self.name = Some(reader.text()?),
            THINKING => self.thinking = Some(reader.text()?),
            SIGNATURE => self.signature = Some(reader.text()?),
            SIGNATURE_FORMAT => self.signature_format = Some(reader.text()?),
            STATE => self.state = Some(reader.raw()?),
            STATE_FORMAT => self.state_format = Some(reader.text()?),
            ID => self.id = Some(reader.text()?),
            INPUT => self.input = if reader.null() { None } else { Some(reader.raw()?) },
            TOOL_USE_ID => self.tool_use_id = Some(reader.text()?),
            CONTENT if results == MAX_BLOCK_DEPTH => return Err(reader.refuse(WireFault::Nesting)),
            CONTENT => self.content = Some(read_blocks(reader, results + 1)?),
            _ => self.is_error = reader.boolean()?,
        }
        Ok(())
    }

    fn read_source(&mut self, reader: &mut Reader<'_>) -> Read<()> {
        let keys = reader.object(&SOURCE_KEYS, |reader, index| {
            if index == 0 {
                self.url = Some(reader.text()?);
            } else {
                self.data = read_data(reader)?;
            }
            Ok(())
        })?;
        keys.require(Keys::first(SOURCE_KEYS.len()), reader.at())
    }

    /// The block, once it is known that everything that it needs is there.
    fn into_block(self) -> Block {
        let given = Option::<SharedText>::unwrap_or_default;
        let Self { kind, text, media_type, url, data, name, .. } = self;
        let state = self.state.map(|state| (state, given(self.state_format)));
        match kind {
            Kind::Text => Block::Text { text: given(text) },
            Kind::Refusal => Block::Refusal { text: given(text) },
            Kind::Image => Block::Image(Image { media_type: given(media_type), url: given(url), data }),
            Kind::Audio => Block::Audio(Audio { media_type: given(media_type), data }),
            Kind::Document => Block::Document(Document {
                media_type: given(media_type),
                name: given(name),
                data,
                text: given(text),
            }),
            // The constructors drop halves that mean nothing alone, as the reference does.
            Kind::Thinking => Block::Thinking(Thinking::new(
                given(self.thinking),
                given(self.signature),
                given(self.signature_format),
                state,
            )),
            Kind::ToolUse => Block::ToolUse(ToolUse::new(given(self.id), given(name), self.input, state)),
            Kind::ToolResult => Block::ToolResult(ToolResult {
                tool_use_id: given(self.tool_use_id),
                content: self.content.unwrap_or_default(),
                is_error: self.is_error,
            }),
        }
    }
}

fn read_kind(reader: &mut Reader<'_>) -> Read<Kind> {
    let at = reader.at();
    Kind::of(&reader.short_text()?).ok_or(Fault::new(WireFault::UnknownName, at))
}

/// Bytes as base64; `null` is their absence.
fn read_data(reader: &mut Reader<'_>) -> Read<Option<SharedBytes>> {
    if reader.null() {
        return Ok(None);
    }
    let at = reader.at();
    let text = reader.short_text()?;
    let bytes = STANDARD.decode(text.as_bytes()).map_err(|_| Fault::new(WireFault::Base64, at))?;
    Ok(Some(SharedBytes::from(bytes)))
}
