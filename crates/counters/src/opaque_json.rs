//! A provider's item that must not be looked into more than needed, taken apart by what its bytes are.

use epitome_loop::RawJson;

use crate::media::MediaRules;

/// The parts of an opaque item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpaqueParts {
    /// What can be read: names, words, marks.
    pub(crate) plain: String,
    /// The lengths of what is sealed: encrypted content, signatures.
    pub(crate) sealed: Vec<usize>,
    /// What pictures and files inside cost.
    pub(crate) media: u64,
}

impl OpaqueParts {
    /// Takes an item apart. A long run of base64 is sealed, or a picture or a file where it begins like one.
    pub(crate) fn of(raw: &RawJson, media: &MediaRules) -> Self {
        let mut parts = Self::default();
        let mut rest = raw.as_str();
        while let Some(first) = rest.bytes().next() {
            let kind = is_base64(first);
            let end = rest.bytes().position(|byte| is_base64(byte) != kind).unwrap_or(rest.len());
            // The kind changes at an ASCII byte on one side at least, so this is a character boundary.
            let (run, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            if kind && run.len() >= SHORTEST_SEALED {
                parts.seal_or_see(run.as_bytes(), media);
            } else {
                parts.plain.push_str(run);
            }
            rest = after;
        }
        parts
    }

    fn seal_or_see(&mut self, run: &[u8], media: &MediaRules) {
        const PICTURES: [&[u8]; 4] = [b"iVBORw0KGgo", b"/9j/", b"R0lGOD", b"UklGR"];
        // In `data:image/png;base64,...` the run starts behind the comma.
        let cost = if PICTURES.iter().any(|magic| run.starts_with(magic)) {
            media.image.most()
        } else if run.starts_with(b"JVBERi0") {
            // A page is rarely below 15 kB.
            let pages = u64::try_from(run.len()).unwrap_or(u64::MAX).div_ceil(20_000);
            pages.saturating_mul(u64::from(media.document_page))
        } else {
            self.sealed.push(run.len());
            0
        };
        self.media = self.media.saturating_add(cost);
    }
}

/// Shorter runs of base64 characters are taken for words, names and ids.
const SHORTEST_SEALED: usize = 200;

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(json: &str) -> OpaqueParts {
        OpaqueParts::of(&RawJson::parse(json).unwrap(), &MediaRules::CONSERVATIVE)
    }

    #[test]
    fn words_stay_and_long_base64_is_sealed() {
        assert_eq!(parts(r#"{"type":"Größe"}"#).plain, r#"{"type":"Größe"}"#);
        let sealed = parts(&format!(r#"{{"d":"{}","e":"é{}é"}}"#, "aB3".repeat(400), "x".repeat(199)));
        assert_eq!(sealed.sealed, [1_200]);
        assert_eq!(sealed.plain, format!(r#"{{"d":"","e":"é{}é"}}"#, "x".repeat(199)));
        assert_eq!(sealed.media, 0);
    }

    #[test]
    fn pictures_and_pages_cost_what_they_cost_elsewhere() {
        let screenshot =
            format!(r#"{{"image_url":"data:image/png;base64,iVBORw0KGgo{}"}}"#, "A".repeat(1_000_000));
        assert_eq!(parts(&screenshot).media, MediaRules::CONSERVATIVE.image.most());
        let file = format!(r#"{{"data":"JVBERi0{}"}}"#, "A".repeat(30_000));
        assert_eq!(parts(&file).media, 2 * u64::from(MediaRules::CONSERVATIVE.document_page));
    }
}
