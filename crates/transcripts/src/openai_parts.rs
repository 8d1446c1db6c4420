//! Parts that contents of chat messages and of response items have in common.

use epitome_loop::{Audio, Block, Document, Image, SharedText};

use crate::faults::Faults;
use crate::json::Value;
use crate::media;

/// A picture by address or by value; one that is only named by an id stays opaque.
pub(crate) fn image(address: Value<'_>, faults: &mut Faults) -> Option<Block> {
    if let Some((media_type, data)) = media::data_address(address) {
        let media_type = SharedText::from(media_type);
        return Some(Block::Image(Image { media_type, url: SharedText::default(), data: Some(data) }));
    }
    if address.inner().starts_with(b"data:") {
        faults.invalid_base64 += 1;
        return None;
    }
    let url = faults.string(Some(address)).into();
    Some(Block::Image(Image { media_type: SharedText::default(), url, data: None }))
}

/// Sound by value.
pub(crate) fn audio(audio: Value<'_>, faults: &mut Faults) -> Option<Block> {
    let [data, format] = faults.pick(audio, ["data", "format"]);
    let Some(data) = media::base64(data?) else {
        faults.invalid_base64 += 1;
        return None;
    };
    let media_type = format!("audio/{}", faults.string(format)).into();
    Some(Block::Audio(Audio { media_type, data: Some(data) }))
}

/// A file by value; one by address or by id stays opaque.
pub(crate) fn file(part: Value<'_>, faults: &mut Faults) -> Option<Block> {
    let [data, name] = faults.pick(part, ["file_data", "filename"]);
    let data = data?;
    let (media_type, data) = match media::data_address(data) {
        Some(found) => found,
        None => match media::base64(data) {
            Some(bytes) => (String::new(), bytes),
            None => {
                faults.invalid_base64 += 1;
                return None;
            }
        },
    };
    Some(Block::Document(Document {
        media_type: media_type.into(),
        name: faults.string(name).into(),
        data: Some(data),
        text: SharedText::default(),
    }))
}

/// A text; nothing for an empty one, which both APIs refuse.
pub(crate) fn text(text: String) -> Option<Block> {
    (!text.is_empty()).then(|| Block::text(text))
}

/// A refusal; nothing for an empty one.
pub(crate) fn refusal(text: String) -> Option<Block> {
    (!text.is_empty()).then(|| Block::Refusal { text: text.into() })
}
