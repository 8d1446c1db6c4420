//! Writing messages.

use epitome_loop::json_text::{JsonBytes, JsonSink as _};
use epitome_loop::{
    Audio, Block, Document, Image, MAX_BLOCK_DEPTH, Message, Opaque, RawJson, SharedBytes, SharedText,
    Thinking, ToolResult, ToolUse, Usage,
};

use super::{CodecError, CodecFault};
use crate::journal::{Blob, BlobDigest, LARGEST_INLINE_MEDIA};
use crate::wire::WireFault;

/// What is written: text, and beside it the media that the text refers to.
pub(super) struct Writer {
    pub(super) out: JsonBytes,
    pub(super) blobs: Vec<Blob>,
}

impl Writer {
    pub(super) fn message(&mut self, message: &Message) -> Result<(), CodecError> {
        self.out.plain("{\"role\":\"");
        self.out.plain(message.role().as_str());
        self.out.plain("\",\"blocks\":");
        self.blocks(message.blocks(), 0)?;
        match message {
            Message::User { blocks: _ } | Message::System { blocks: _ } => {}
            Message::Assistant { blocks: _, usage } => {
                self.out.plain(",\"usage\":");
                self.usage(usage.as_ref());
            }
            Message::ToolResult { blocks: _, tool_use_id, is_error } => {
                self.text(",\"tool_use_id\":", tool_use_id);
                self.flag(",\"is_error\":", *is_error);
            }
        }
        self.out.plain("}");
        Ok(())
    }

    pub(super) fn usage(&mut self, usage: Option<&Usage>) {
        let Some(usage) = usage else { return self.out.plain("null") };
        let Usage { input, output, cache_read, cache_creation, reasoning } = *usage;
        self.number("{\"input\":", input.get());
        self.number(",\"output\":", output.get());
        self.number(",\"cache_read\":", cache_read.get());
        self.number(",\"cache_creation\":", cache_creation.get());
        self.number(",\"reasoning\":", reasoning.get());
        self.out.plain("}");
    }

    /// Blocks inside `results` nested tool results.
    fn blocks(&mut self, blocks: &[Block], results: usize) -> Result<(), CodecError> {
        if results > MAX_BLOCK_DEPTH {
            return Err(CodecFault::Json(WireFault::Nesting).at(0));
        }
        self.out.plain("[");
        for (at, block) in blocks.iter().enumerate() {
            self.out.plain(if at > 0 { "," } else { "" });
            self.block(block, results)?;
        }
        self.out.plain("]");
        Ok(())
    }

    fn block(&mut self, block: &Block, results: usize) -> Result<(), CodecError> {
        self.out.plain("{\"type\":\"");
        self.out.plain(block.kind());
        self.out.plain("\"");
        match block {
            Block::Text { text } | Block::Refusal { text } => self.text(",\"text\":", text),
            Block::Image(Image { media_type, url, data }) => {
                self.text(",\"media_type\":", media_type);
                self.text(",\"url\":", url);
                self.data(data.as_ref());
            }
            Block::Audio(Audio { media_type, data }) => {
                self.text(",\"media_type\":", media_type);
                self.data(data.as_ref());
            }
            Block::Document(Document { media_type, name, data, text }) => {
                self.text(",\"media_type\":", media_type);
                self.text(",\"name\":", name);
                self.data(data.as_ref());
                self.text(",\"text\":", text);
            }
            Block::Thinking(Thinking {
                thinking,
                signature,
                signature_format,
                provider_state,
                provider_state_format,
            }) => {
                self.text(",\"thinking\":", thinking);
                self.text(",\"signature\":", signature);
                self.given(",\"signature_format\":", signature_format);
                self.raw(",\"provider_state\":", provider_state.as_ref());
                self.given(",\"provider_state_format\":", provider_state_format);
            }
            Block::ToolUse(ToolUse { id, name, input, provider_state, provider_state_format }) => {
                self.text(",\"id\":", id);
                self.text(",\"name\":", name);
                self.raw(",\"input\":", input.as_ref());
                self.raw(",\"provider_state\":", provider_state.as_ref());
                self.given(",\"provider_state_format\":", provider_state_format);
            }
            Block::ToolResult(ToolResult { tool_use_id, content, is_error }) => {
                self.text(",\"tool_use_id\":", tool_use_id);
                self.out.plain(",\"content\":");
                self.blocks(content, results + 1)?;
                self.flag(",\"is_error\":", *is_error);
            }
            Block::Opaque(Opaque { kind, raw }) => {
                self.text(",\"kind\":", kind);
                self.raw(",\"raw\":", Some(raw));
            }
            // Dropping it would be losing it.
            _ => return Err(CodecFault::UnknownKind.at(0)),
        }
        self.out.plain("}");
        Ok(())
    }

    /// Media; absent and empty are told apart.
    fn data(&mut self, data: Option<&SharedBytes>) {
        let Some(bytes) = data else { return };
        self.out.plain(",\"data\":");
        if bytes.len() <= LARGEST_INLINE_MEDIA {
            return self.out.data(Some(bytes));
        }
        self.blob(bytes);
    }

    /// Bytes that stand outside the record, by their digest.
    pub(super) fn blob(&mut self, bytes: &SharedBytes) {
        let digest = BlobDigest::of(bytes);
        self.out.plain("{\"sha256\":");
        self.out.string(&digest.to_string());
        self.number(",\"bytes\":", bytes.len() as u64);
        self.out.plain("}");
        if self.blobs.iter().all(|blob| blob.digest() != digest) {
            self.blobs.push(Blob::named(digest, bytes.clone()));
        }
    }

    /// Raw JSON in a string, so that it comes back byte for byte however deep it is; nothing when there is none.
    pub(super) fn raw(&mut self, key: &'static str, raw: Option<&RawJson>) {
        if let Some(raw) = raw {
            self.out.plain(key);
            self.out.string(raw.as_str());
        }
    }

    pub(super) fn text(&mut self, key: &'static str, text: &str) {
        self.out.plain(key);
        self.out.string(text);
    }

    /// Text that is left out when it is empty.
    fn given(&mut self, key: &'static str, text: &SharedText) {
        if !text.is_empty() {
            self.text(key, text);
        }
    }

    pub(super) fn number(&mut self, key: &'static str, number: u64) {
        self.out.plain(key);
        self.out.number(number);
    }

    fn flag(&mut self, key: &'static str, flag: bool) {
        self.out.plain(key);
        self.out.plain(if flag { "true" } else { "false" });
    }
}
