//! The size of a provider's item that must not be looked into more than needed.

use epitome_loop::RawJson;

use crate::content_cost::sealed_tokens;
use crate::media::MediaRules;

/// Tokens for an opaque item: a third of its JSON bytes, but a quarter of the bytes that are sealed (encrypted
/// content, signatures: long base64), and the price of a picture or page where the base64 is one.
pub(crate) fn opaque_tokens(raw: &RawJson, media: &MediaRules) -> u64 {
    let mut plain = 0_usize;
    let mut tokens = 0_u64;
    for run in raw.as_str().as_bytes().chunk_by(|&left, &right| is_base64(left) == is_base64(right)) {
        if run.len() < SHORTEST_SEALED || !run.first().is_some_and(|&byte| is_base64(byte)) {
            plain += run.len();
        } else {
            tokens = tokens.saturating_add(sealed_or_media(run, media));
        }
    }
    tokens.saturating_add(u64::try_from(plain).unwrap_or(u64::MAX).div_ceil(3))
}

/// Shorter runs of base64 characters are taken for words, names and ids.
const SHORTEST_SEALED: usize = 200;

fn sealed_or_media(run: &[u8], media: &MediaRules) -> u64 {
    const PICTURES: [&[u8]; 4] = [b"iVBORw0KGgo", b"/9j/", b"R0lGOD", b"UklGR"];
    // In `data:image/png;base64,...` the run starts behind the comma.
    if PICTURES.iter().any(|magic| run.starts_with(magic)) {
        return media.image.most();
    }
    if run.starts_with(b"JVBERi0") {
        // A page is rarely below 15 kB.
        return u64::try_from(run.len())
            .unwrap_or(u64::MAX)
            .div_ceil(20_000)
            .saturating_mul(u64::from(media.document_page));
    }
    sealed_tokens(run.len())
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(json: &str) -> u64 {
        opaque_tokens(&RawJson::parse(json).unwrap(), &MediaRules::CONSERVATIVE)
    }

    #[test]
    fn plain_json_is_a_third_and_sealed_a_quarter() {
        assert_eq!(tokens(r#"{"type":"x"}"#), 4);
        let sealed = format!(r#"{{"d":"{}"}}"#, "aB3".repeat(400));
        assert_eq!(tokens(&sealed), 300 + 3);
    }

    #[test]
    fn pictures_and_pages_cost_what_they_cost_elsewhere() {
        let screenshot =
            format!(r#"{{"image_url":"data:image/png;base64,iVBORw0KGgo{}"}}"#, "A".repeat(1_000_000));
        assert!(tokens(&screenshot) < 2_000);
        let file = format!(r#"{{"data":"JVBERi0{}"}}"#, "A".repeat(30_000));
        assert!((5_000..7_000).contains(&tokens(&file)));
    }
}
