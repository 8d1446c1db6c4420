//! Attachments: base64 and data addresses.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use epitome_loop::SharedBytes;

use crate::json::{Kind, Text, Value};

/// Base64 with or without padding.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, LENIENT);
const FOR_ADDRESSES: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, LENIENT);

/// The bytes that a JSON string holds as base64, in the alphabet for text or in that for addresses; `None` when
/// it is not base64. Line breaks are allowed.
pub(crate) fn base64(value: Value<'_>) -> Option<SharedBytes> {
    if value.kind() != Kind::String {
        return None;
    }
    decode(value.inner())
}

/// Media type and bytes of a JSON string that holds a `data:` address in base64; `None` for other strings.
pub(crate) fn data_address(value: Value<'_>) -> Option<(String, SharedBytes)> {
    if value.kind() != Kind::String || !value.inner().starts_with(b"data:") {
        return None;
    }
    let comma = memchr::memchr(b',', value.inner())?;
    let (head, payload) = value.inner().split_at_checked(comma)?;
    let head = Text::default().decode(head).into_owned();
    let media_type = head.strip_prefix("data:")?.strip_suffix(";base64")?;
    let media_type = media_type.split(';').next().unwrap_or_default().to_owned();
    Some((media_type, decode(payload.get(1..)?)?))
}

/// A `data:` address with the bytes in base64.
pub(crate) fn to_data_address(media_type: &str, data: &[u8]) -> String {
    let mut address = format!("data:{media_type};base64,");
    base64::engine::general_purpose::STANDARD.encode_string(data, &mut address);
    address
}

fn decode(inner: &[u8]) -> Option<SharedBytes> {
    if let Ok(bytes) = STANDARD.decode(inner).or_else(|_| FOR_ADDRESSES.decode(inner)) {
        return Some(bytes.into());
    }
    let text = Text::default().decode(inner).into_owned();
    let packed: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(packed).ok().map(SharedBytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Source;

    fn base64(json: &str) -> Option<SharedBytes> {
        super::base64(Source::small(json.as_bytes()).whole())
    }

    fn data_address(json: &str) -> Option<(String, SharedBytes)> {
        super::data_address(Source::small(json.as_bytes()).whole())
    }

    #[test]
    fn reads_base64_in_the_spellings_that_occur() {
        for spelling in [r#""YWI=""#, r#""YWI""#, r#""YW\nI=""#, r#""YWI=\n""#] {
            assert_eq!(base64(spelling).unwrap().as_slice(), b"ab", "{spelling}");
        }
        assert_eq!(base64(r#""-_8=""#).unwrap().as_slice(), base64(r#""+/8=""#).unwrap().as_slice());
        assert!(base64(r#""not base64!""#).is_none());
        assert!(base64("12").is_none());
    }

    #[test]
    fn reads_data_addresses() {
        let (media_type, data) = data_address(r#""data:image\/png;name=x;base64,YWI=""#).unwrap();
        assert_eq!((media_type.as_str(), data.as_slice()), ("image/png", &b"ab"[..]));
        assert!(data_address(r#""https://example.com/a.png""#).is_none());
        assert!(data_address(r#""data:text/plain,abc""#).is_none());
        assert_eq!(to_data_address("image/png", b"ab"), "data:image/png;base64,YWI=");
    }
}
