//! What characters of scripts take that the pairs of bytes do not show.
//!
//! In UTF-8 a first byte is shared by many scripts: one of them begins Vietnamese letters and Georgian, which the
//! encoding knows, and Ethiopic and Khmer, of which it knows little. A script that is not in the vocabulary takes a
//! token for each of its bytes.

use crate::byte_pairs::{ByteClass as C, BytePairs};

/// Hundredths of a token that a text takes beside the shares of its pairs of bytes; less than zero where it takes
/// less. Texts without such scripts are not looked at a second time.
pub(crate) fn extra(text: &str, pairs: &BytePairs) -> i64 {
    let leads = [C::Lead2, C::Latin, C::Indic, C::Symbol, C::Lead3, C::Lead4];
    if leads.into_iter().all(|lead| pairs.of_class(lead) == 0) {
        return 0;
    }
    text.chars().filter(|&character| character >= FIRST).map(extra_of).fold(0, i64::saturating_add)
}

/// The first character that takes something beside.
const FIRST: char = '\u{180}';

/// Fitted to `o200k_base` on half of the articles of the Universal Declaration of Human Rights in 529 languages; the
/// rows of scripts without a translation, on a sentence or two. Rounded, and left out where it made no difference.
fn extra_of(character: char) -> i64 {
    match u32::from(character) {
        // Latin letters of few languages; of the others Vietnamese, Romanian, Azerbaijani, Igbo and Yoruba.
        0x1a0..=0x1a1 | 0x1af..=0x1b0 | 0x218..=0x21b | 0x259 => 50,
        0x180..=0x2ff => 150,
        0x1eb8..=0x1eb9 | 0x1eca..=0x1ecd | 0x1ee4..=0x1ee5 => 40,
        0x1e00..=0x1e9f => 200,
        0x1ea0..=0x1eff => -35,
        // Marks upon the letter before.
        0x300..=0x36f => 120,
        // Greek; with the marks of old.
        0x370..=0x3ff => 5,
        0x1f00..=0x1fff => 200,
        // Cyrillic: what Russian uses, and what other languages add to it.
        0x400..=0x43f => -7,
        0x480..=0x52f => 60,
        // Hebrew, Arabic.
        0x590..=0x5ff => 9,
        0x600..=0x63f => -7,
        0x640..=0x6ff => 7,
        0xfb50..=0xfdff | 0xfe70..=0xfefe => 130,
        // Syriac, Thaana, N'Ko; Samaritan, Mandaic.
        0x700..=0x7ff => 180,
        0x800..=0x8ff => 240,
        // Gurmukhi, Oriya, Telugu, Kannada, Sinhala.
        0xa00..=0xa7f => 24,
        0xb00..=0xb7f => 75,
        0xc00..=0xc7f => 12,
        0xc80..=0xcff => 5,
        0xd80..=0xdff => 25,
        // Thai, Lao, Tibetan.
        0xe00..=0xe7f => 3,
        0xe80..=0xeff => 150,
        0xf00..=0xfff => 113,
        // Burmese, and other languages in its script; Georgian.
        0x1000..=0x103f => 13,
        0x1040..=0x109f => 205,
        0x10a0..=0x10ff => -7,
        // Korean letters one by one, Ethiopic, Cherokee, Canadian syllables, Ogham and runes, Philippine scripts.
        0x1100..=0x11ff => 275,
        0x1200..=0x139f => 160,
        0x13a0..=0x177f => 270,
        // Khmer; Mongolian; Limbu, Tai Tham, Balinese and their like.
        0x1780..=0x17ff => 25,
        0x1800..=0x1cff => 270,
        // Braille, Glagolitic, Coptic, Tifinagh, more Ethiopic.
        0x2800..=0x28ff | 0x2c00..=0x2dff => 218,
        // Rare Chinese characters, full-width forms.
        0x3400..=0x4dbf => 220,
        0xff00..=0xffef => 35,
        // Yi, Lisu, Vai, Javanese, Tai Viet, Cherokee in lower case and the like.
        0xa000..=0xabff => 225,
        // Old scripts and new ones; letters of mathematics; rare Chinese characters.
        0x1_0000..=0x1_cfff | 0x1_e000..=0x1_efff => 225,
        0x1_d000..=0x1_dfff => 130,
        0x2_0000..=0x3_ffff => 135,
        _ => 0,
    }
}
