//! What pictures, recordings and files cost. Never by the length of their base64 text.

use std::collections::BTreeSet;

use epitome_loop::{Audio, Document, Image};

use crate::error_band::{Amount, ErrorBand};
use crate::pixel_size::PixelSize;
use crate::play_time::{Rates, play_time_ms};

/// How a provider charges for one picture. The formulas are the providers' published ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageRule {
    /// OpenAI's tiles at high detail: fit into 2048 x 2048, shrink the short side to 768, then `base` plus
    /// `tile` for each 512 x 512 square.
    Tiles {
        /// Tokens for the picture as such.
        base: u32,
        /// Tokens for each square.
        tile: u32,
    },
    /// OpenAI's and Anthropic's patches: squares of `side` pixels, at most `most` of them and at most
    /// `long_edge` pixels along the long edge (larger pictures are shrunk), times `percent`.
    Patches {
        /// Pixels along one side of a patch; 0 is taken for 1.
        side: u32,
        /// The most patches a picture can take.
        most: u32,
        /// Longest edge in pixels before the picture is shrunk.
        long_edge: u32,
        /// Tokens per hundred patches.
        percent: u32,
    },
    /// Gemini 2: 258 tokens for a small picture, and for each 768 x 768 tile of a larger one.
    GeminiTiles,
    /// A fixed upper bound, whatever the size.
    Flat {
        /// Tokens for each picture.
        tokens: u32,
    },
}

/// How a provider charges for media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaRules {
    /// Pictures.
    pub image: ImageRule,
    /// Tokens per ten seconds of sound.
    pub audio_per_ten_seconds: u32,
    /// Tokens for each page of a file that is sent as such: its picture and what surrounds it. Its text comes
    /// on top.
    pub document_page: u32,
    /// Tokens per ten seconds of film, its sound included.
    pub video_per_ten_seconds: u32,
}

impl MediaRules {
    /// For models about which nothing is known: near the upper end of what providers charge.
    pub const CONSERVATIVE: Self = Self {
        image: ImageRule::Flat { tokens: 1_600 },
        audio_per_ten_seconds: 320,
        document_page: 2_000,
        video_per_ten_seconds: 2_900,
    };

    /// Tokens for a picture: by its pixels where they can be read from its header, otherwise the most that
    /// the rule can charge.
    #[must_use]
    pub fn image(&self, image: &Image) -> u64 {
        let size = image.data.as_ref().and_then(|data| PixelSize::read(data));
        size.map_or_else(|| self.image.most(), |size| self.image.tokens(size))
    }

    /// Tokens for a picture, with their doubt: much where its size cannot be read.
    pub(crate) fn image_amount(&self, image: &Image) -> Amount {
        let is_known = image.data.as_ref().is_some_and(|data| PixelSize::read(data).is_some());
        let band = if is_known { ErrorBand::new(15, 15) } else { ErrorBand::new(80, 10) };
        band.around(self.image(image))
    }

    /// Tokens for a recording: by its duration, read from its header, or reckoned at a low bit rate (64 kbit/s
    /// for MP3, 32 kbit/s for anything else) and so on the long side where the header does not say. No header
    /// makes it longer than the file can hold at 4 kbit/s, or shorter than at 50 Mbit/s. One without data is taken
    /// for a minute.
    #[must_use]
    pub fn audio(&self, audio: &Audio) -> u64 {
        let milliseconds = audio.data.as_ref().map_or(60_000, |data| duration_ms(data, &audio.media_type));
        milliseconds.saturating_mul(u64::from(self.audio_per_ten_seconds)).div_ceil(10_000).max(1)
    }

    /// Tokens for a file's bytes, without its extracted text: for a PDF by its pages (at most one for every 50
    /// bytes) and the length of their compressed text, for a film by its duration, for plain text a third of its
    /// bytes, for anything else by one page for every 50 000 bytes. One without bytes costs nothing here.
    #[must_use]
    pub fn document_bytes(&self, document: &Document) -> u64 {
        let Some(data) = &document.data else { return 0 };
        let length = as_u64(data.len());
        if document.media_type.starts_with("text/") {
            return length.div_ceil(3);
        }
        if document.media_type.starts_with("video/") {
            return self.video(data);
        }
        let (pages, text) = match pdf_pages(data) {
            Some(pages) => (pages, pdf_text_tokens(data)),
            None => (length.div_ceil(50_000), 0),
        };
        pages.max(1).saturating_mul(u64::from(self.document_page)).saturating_add(text)
    }

    /// Tokens for a film: by its duration, read from its header, or reckoned at 500 kbit/s where that does not
    /// say. No header makes it longer than the file can hold at 16 kbit/s, or shorter than at 800 Mbit/s.
    fn video(&self, data: &[u8]) -> u64 {
        let milliseconds = play_time_ms(data, Rates::FILM).unwrap_or_else(|| as_u64(data.len()).div_ceil(62));
        milliseconds.saturating_mul(u64::from(self.video_per_ten_seconds)).div_ceil(10_000).max(1)
    }
}

impl ImageRule {
    /// Tokens for a picture of this size.
    #[must_use]
    pub fn tokens(self, size: PixelSize) -> u64 {
        let (width, height) = (u64::from(size.width), u64::from(size.height));
        match self {
            Self::Tiles { base, tile } => {
                let (width, height) = fit_box(width, height, 2_048);
                let (width, height) = fit_short_side(width, height, 768);
                u64::from(base) + u64::from(tile) * width.div_ceil(512) * height.div_ceil(512)
            }
            Self::Patches { side, most, long_edge, percent } => {
                let (width, height) = fit_box(width, height, u64::from(long_edge));
                let side = u64::from(side.max(1));
                let patches = width.div_ceil(side) * height.div_ceil(side);
                (patches.min(u64::from(most)) * u64::from(percent)).div_ceil(100)
            }
            Self::GeminiTiles if width <= 384 && height <= 384 => GEMINI_TILE,
            Self::GeminiTiles => {
                // A tile's side is two thirds of the short side, between 256 and 768 pixels.
                let side = (width.min(height) * 2 / 3).clamp(256, 768);
                (width.div_ceil(side) * height.div_ceil(side)).min(GEMINI_MOST_TILES) * GEMINI_TILE
            }
            Self::Flat { tokens } => u64::from(tokens),
        }
    }

    /// The most that one picture can cost; for [`ImageRule::GeminiTiles`], which has no bound, that of a
    /// picture of 2048 x 2048.
    #[must_use]
    pub fn most(self) -> u64 {
        match self {
            // 2048 x 768 is four squares by two.
            Self::Tiles { base, tile } => u64::from(base) + 8 * u64::from(tile),
            Self::Patches { most, percent, .. } => (u64::from(most) * u64::from(percent)).div_ceil(100),
            Self::GeminiTiles => 9 * GEMINI_TILE,
            Self::Flat { tokens } => u64::from(tokens),
        }
    }
}

const GEMINI_TILE: u64 = 258;
/// Keeps a crafted header of 65535 x 1 from costing a whole window.
const GEMINI_MOST_TILES: u64 = 64;

fn fit_box(width: u64, height: u64, edge: u64) -> (u64, u64) {
    shrink(width, height, edge, width.max(height))
}

fn fit_short_side(width: u64, height: u64, side: u64) -> (u64, u64) {
    shrink(width, height, side, width.min(height))
}

/// Scales by `to / from` when that shrinks, rounding down, at least one pixel a side.
fn shrink(width: u64, height: u64, to: u64, from: u64) -> (u64, u64) {
    if from <= to {
        return (width, height);
    }
    ((width * to / from).max(1), (height * to / from).max(1))
}

/// How long a recording is, in milliseconds.
fn duration_ms(data: &[u8], media_type: &str) -> u64 {
    let bytes_per_second = if matches!(media_type, "audio/mpeg" | "audio/mp3") { 8_000 } else { 4_000 };
    let reckoned = || as_u64(data.len()).saturating_mul(1_000).div_ceil(bytes_per_second);
    play_time_ms(data, Rates::SOUND).unwrap_or_else(reckoned)
}

/// How many pages a PDF states: the largest `/Count` of its page trees, or its page objects where those are
/// not compressed, and no more than its size can hold. `None` when the bytes are no PDF or state neither.
fn pdf_pages(data: &[u8]) -> Option<u64> {
    data.starts_with(b"%PDF-").then_some(())?;
    let stated = numbers_after(data, b"/Count").filter(|&count| count <= 10_000).max();
    let objects = as_u64(
        occurrences(data, b"/Type /Page")
            .chain(occurrences(data, b"/Type/Page"))
            .filter(|rest| !rest.starts_with(b"s"))
            .count(),
    );
    let most = as_u64(data.len()).div_ceil(SMALLEST_PAGE);
    stated.max(Some(objects)).filter(|&pages| pages > 0).map(|pages| pages.min(most))
}

/// Bytes that a page of a PDF takes at least: its object, its place in the table of objects, and what draws it, all
/// of them compressed.
const SMALLEST_PAGE: u64 = 50;

/// What the text on the pages of a PDF takes: a third of a token for each byte of the compressed streams that
/// draw them. The dictionary of such a stream holds a length and a filter; those of fonts, pictures and tables
/// hold more, and the tables of characters are named by the fonts.
fn pdf_text_tokens(data: &[u8]) -> u64 {
    let tables: BTreeSet<u64> = numbers_after(data, b"/ToUnicode").collect();
    let mut bytes = 0_u64;
    let mut rest = data;
    while let Some(at) = memchr::memmem::find(rest, b"stream") {
        let (before, after) = rest.split_at_checked(at).unwrap_or((rest, b""));
        let after = after.get(6..).unwrap_or_default();
        let length = memchr::memmem::find(after, b"endstream").unwrap_or(after.len());
        if draws(before, &tables) {
            bytes = bytes.saturating_add(as_u64(length));
        }
        rest = after.get(length + 9..).unwrap_or_default();
    }
    bytes.div_ceil(3)
}

/// Whether the object whose stream follows draws a page.
fn draws(before: &[u8], tables: &BTreeSet<u64>) -> bool {
    let near = before.get(before.len().saturating_sub(400)..).unwrap_or_default();
    let Some(at) = memchr::memmem::rfind(near, b" obj") else { return false };
    let (head, dictionary) = near.split_at_checked(at).unwrap_or_default();
    // `8 0 obj`: the number stands two words before.
    let mut words = head.rsplit(u8::is_ascii_whitespace);
    let number = words.nth(1).and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
    let allowed: [&[u8]; 4] = [b"Length ", b"Length\n", b"Filter", b"FlateDecode"];
    let is_plain =
        occurrences(dictionary, b"/").all(|name| allowed.iter().any(|word| name.starts_with(word)));
    is_plain && number.is_none_or(|number| !tables.contains(&number))
}

fn numbers_after<'a>(data: &'a [u8], name: &'static [u8]) -> impl Iterator<Item = u64> + 'a {
    occurrences(data, name).filter_map(|rest| {
        let digits = rest.trim_ascii_start();
        let end = digits.iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
    })
}

/// What follows each place where `name` stands.
fn occurrences<'a>(data: &'a [u8], name: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = data;
    std::iter::from_fn(move || {
        loop {
            let slash = rest.iter().position(|&byte| byte == b'/')?;
            let here = rest.get(slash..)?;
            rest = here.get(1..)?;
            if let Some(after) = here.strip_prefix(name) {
                return Some(after);
            }
        }
    })
}

fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPT_4O: ImageRule = ImageRule::Tiles { base: 85, tile: 170 };
    const GPT_MINI: ImageRule = ImageRule::Patches { side: 32, most: 1_536, long_edge: 2_048, percent: 162 };
    const CLAUDE: ImageRule = ImageRule::Patches { side: 28, most: 1_568, long_edge: 1_568, percent: 100 };

    fn tokens(rule: ImageRule, width: u32, height: u32) -> u64 {
        rule.tokens(PixelSize { width, height })
    }

    /// The worked examples of the providers' guides.
    #[test]
    fn pictures_cost_what_the_guides_say() {
        assert_eq!(tokens(GPT_4O, 1_024, 1_024), 765);
        assert_eq!(tokens(GPT_4O, 2_048, 4_096), 1_105);
        assert_eq!(tokens(GPT_4O, 128, 64), 255);
        assert_eq!(tokens(GPT_MINI, 1_024, 1_024), 1_659);
        assert_eq!(tokens(CLAUDE, 1_092, 1_092), 1_521);
        assert_eq!(tokens(ImageRule::GeminiTiles, 384, 384), 258);
        assert_eq!(tokens(ImageRule::GeminiTiles, 960, 540), 6 * 258);
    }

    #[test]
    fn no_picture_costs_more_than_the_most() {
        for rule in [GPT_4O, GPT_MINI, CLAUDE, ImageRule::Flat { tokens: 1_120 }] {
            for (width, height) in [(1, 1), (65_535, 65_535), (65_535, 1), (1, 65_535), (3_000, 2_000)] {
                let cost = tokens(rule, width, height);
                assert!((1..=rule.most()).contains(&cost), "{rule:?} {width} x {height}: {cost}");
            }
        }
    }

    /// Any figures in public fields, and any size: a number and no panic, never more than the most.
    #[test]
    fn no_rule_fails_on_odd_figures() {
        let odd = [0, 1, 2, 511, u32::MAX - 1, u32::MAX];
        let all = || odd.into_iter().flat_map(|one| odd.map(|other| (one, other)));
        for (a, b) in all() {
            let mut rules = vec![ImageRule::Tiles { base: a, tile: b }, ImageRule::GeminiTiles];
            rules.push(ImageRule::Flat { tokens: a });
            for (c, d) in all() {
                rules.push(ImageRule::Patches { side: a, most: b, long_edge: c, percent: d });
            }
            for rule in rules {
                let most = rule.most();
                for (width, height) in all() {
                    let cost = tokens(rule, width, height);
                    let bounded = matches!(rule, ImageRule::Patches { .. } | ImageRule::Flat { .. });
                    assert!(!bounded || cost <= most, "{rule:?} {width} x {height}: {cost}");
                }
            }
        }
        let rules = MediaRules {
            image: ImageRule::Flat { tokens: u32::MAX },
            audio_per_ten_seconds: u32::MAX,
            document_page: u32::MAX,
            video_per_ten_seconds: u32::MAX,
        };
        for media_type in ["", "text/plain", "video/mp4", "application/pdf"] {
            let data: Option<epitome_loop::SharedBytes> = Some(vec![0; 1_000].into());
            let audio = Audio { media_type: media_type.into(), data: data.clone() };
            let document = Document { media_type: media_type.into(), data, ..Document::default() };
            assert!(rules.audio(&audio) > 0 && rules.document_bytes(&document) > 0, "{media_type}");
        }
    }

    /// A film in fragments states 0 or nothing: it costs by its size, as a file does that is no film at all.
    #[test]
    fn a_film_that_does_not_state_its_duration_costs_by_its_size() {
        let rules = MediaRules::CONSERVATIVE;
        let cost = |duration: u32, length: usize| {
            let header = [&[0; 12][..], &1_000_u32.to_be_bytes(), &duration.to_be_bytes(), &[0; 80]].concat();
            let mut film = b"\0\0\0\x08ftyp\0\0\0\x74moov\0\0\0\x6cmvhd".to_vec();
            film.extend(header);
            film.resize(length, 7);
            let data: Option<epitome_loop::SharedBytes> = Some(film.into());
            let audio = Audio { media_type: "audio/mp4".into(), data: data.clone() };
            let film = Document { media_type: "video/mp4".into(), data, ..Document::default() };
            (rules.audio(&audio), rules.document_bytes(&film))
        };
        // 1 250 s of sound at 32 kbit/s, 80.6 s of film at 500 kbit/s.
        for unknown in [0, u32::MAX] {
            assert_eq!(cost(unknown, 5_000_000), (40_000, 23_388));
        }
        assert_eq!(cost(60_000, 5_000_000), (1_920, 17_400));
        assert_eq!(cost(u32::MAX - 1, 140), (9, 21));
    }

    #[test]
    fn films_cost_by_duration() {
        let rules = MediaRules { video_per_ten_seconds: 910, ..MediaRules::CONSERVATIVE };
        let film = |data: Vec<u8>| Document {
            media_type: "video/mp4".into(),
            data: Some(data.into()),
            ..Document::default()
        };
        assert_eq!(rules.document_bytes(&film(vec![0; 620_000])), 910);
    }

    #[test]
    fn text_in_a_pdf_costs_by_its_streams() {
        let page =
            format!("1 0 obj<</Length 9 0 R/Filter/FlateDecode>>\nstream{}endstream\n", "x".repeat(300));
        let font =
            format!("2 0 obj<</Length 9/Length1 7/Filter/FlateDecode>>stream{}endstream\n", "f".repeat(900));
        let picture = format!("3 0 obj<</Type/XObject/Length 9>>stream{}endstream\n", "p".repeat(900));
        let table = format!("4 0 obj<</Length 9>>stream{}endstream /ToUnicode 4 0 R\n", "t".repeat(90));
        assert_eq!(pdf_text_tokens([font, picture, table, page].concat().as_bytes()), 100);
        assert_eq!(pdf_text_tokens(b"stream endstream obj stream"), 0);
    }

    #[test]
    fn recordings_cost_by_duration() {
        let rules = MediaRules::CONSERVATIVE;
        let audio = |media_type: &str, data: Vec<u8>| Audio {
            media_type: media_type.into(),
            data: Some(data.into()),
        };
        let mut wav =
            b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\xbb\0\0\0\x77\x01\0\x02\0\x10\0data".to_vec();
        wav.resize(96_000 * 5, 0);
        assert_eq!(rules.audio(&audio("audio/wav", wav)), 160);
        assert_eq!(rules.audio(&audio("audio/mpeg", vec![0; 80_000])), 320);
        assert_eq!(rules.audio(&audio("audio/ogg", vec![])), 1);
        assert_eq!(rules.audio(&Audio::default()), 1_920);
    }

    #[test]
    fn files_cost_by_page() {
        let pages = |data: &[u8]| {
            let data = Some(data.to_vec().into());
            let rules = MediaRules { document_page: 1, ..MediaRules::CONSERVATIVE };
            rules.document_bytes(&Document { data, ..Document::default() })
        };
        let padded = |text: &[u8]| pages(&[text, &[b' '; 400]].concat());
        assert_eq!(padded(b"%PDF-1.4 /Type /Pages /Count 7 /Type /Page /Type /Page"), 7);
        assert_eq!(padded(b"%PDF-1.4 /Type/Page /Type /Page /Type /Pages"), 2);
        // No more than the file can hold.
        assert_eq!(pages(b"%PDF-1.4 /Count 10000"), 1);
        assert_eq!(padded(b"%PDF-1.4 /Count 10000"), 9);
        assert_eq!(pages(&[b"%PDF-1.4 ".as_slice(), &b"/Type/Page ".repeat(1_000)].concat()), 221);
        assert_eq!(pages(b"%PDF-1.4 /Count 99999999999999999999"), 1);
        assert_eq!(pages(&[b"%PDF-1.4".as_slice(), &[0; 120_000]].concat()), 3);
        assert_eq!(MediaRules::CONSERVATIVE.document_bytes(&Document::default()), 0);
    }
}
