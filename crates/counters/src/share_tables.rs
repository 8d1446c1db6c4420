//! The figures of the estimate without a tokenizer, and its band of error.

use crate::byte_pairs::CLASSES;
use crate::content_class::ContentClass;
use crate::error_band::ErrorBand;

/// Hundredths of a token for a byte, by the class of the byte before it (rows, the last for a byte that repeats
/// it) and its own class (columns).
pub(crate) type Shares = [[u8; CLASSES]; CLASSES + 1];

/// Behind the first byte of a character of several there is only its own continuation, which is part of it.
const INSIDE: [u8; CLASSES] = [0; CLASSES];

/// For words: prose, code, JSON, logs.
#[rustfmt::skip]
pub(crate) const SHARES: Shares = [
//   low  upp  dig  spc  brk  quo  mrk  ctl  con  lat   l2  ind  sym   l3   l4
    [  7,  52,  87,  14,  50,  31,  46, 100,   0,  71,  70,  40, 117,  80, 190], // lower
    [ 12,  12,  55,  14,  30,  44,  45, 100,   0,  70,  70,  40,  99,  80, 190], // upper
    [ 92,  81,  61,  20,  35,  46,  81, 100,   0,  70,  70,  40,  86,  80, 190], // digit
    [ 66,  84, 108,  15,  30,  65,  94, 100,   0,  70,  70,  40, 147,  80, 190], // space
    [117,  82,  53,  17,  30,  40,  57, 100,   0,  70,  70,  40, 131,  81, 241], // break
    [ 47,  88,  55,  15,  33,  40,  44, 100,   0,  70,  70,  40, 100,  80, 190], // quote
    [ 86,  87,  77,  23,  38,  24,  47, 100,   0,  70,  70,  40, 100,  80, 190], // mark
    [ 15,  50,  50,  15,  30,  40,  45, 100,   0,  70,  70,  40, 100,  80, 190], // control
    [ 15,  50,  50,  17,  28,  40,  45, 100,   0,  70,  70,  40,  50,  80, 190], // continuation
    INSIDE, INSIDE, INSIDE, INSIDE, INSIDE, INSIDE,
    [  6,  20,  23,   7,  13,  16,  20,  40,   0,   0,   0,   0,   0,   0,   0], // the same byte again
];

/// For other languages.
#[rustfmt::skip]
pub(crate) const LANGUAGE_SHARES: Shares = [
//   low  upp  dig  spc  brk  quo  mrk  ctl  con  lat   l2  ind  sym   l3   l4
    [ 12,  51,  86,  13,  54,  30,  52, 100,   0,  98,  70,  13, 116,  82, 190], // lower
    [ 12,  12,  56,  14,  30,  44,  46, 100,   0,  70,  70,  39,  99,  79, 190], // upper
    [ 95,  80,  64,  20,  35,  46,  85, 100,   0,  70,  70,  40,  86,  80, 190], // digit
    [ 46,  97, 110,  15,  31,  64, 132, 100,   0,  54,  66,  28, 143,  58, 190], // space
    [117,  81,  52,  18,  30,  40,  57, 100,   0,  70,  70,  40, 136,  86, 255], // break
    [ 48,  87,  55,  15,  33,  40,  43, 100,   0,  70,  70,  40, 100,  79, 190], // quote
    [ 94,  94,  81,  24,  37,  24,  54, 100,   0,  69,  72,  40,  99,  87, 190], // mark
    [ 15,  50,  50,  15,  30,  40,  45, 100,   0,  70,  70,  40, 100,  80, 190], // control
    [ 13,  51,  51,  13,  30,  40,  41, 100,   0,  73,  26,  38,  50,  76, 190], // continuation
    INSIDE, INSIDE, INSIDE, INSIDE, INSIDE, INSIDE,
    [  6,  20,  23,   7,  13,  16,  20,  40,   0,   0,   0,   0,   0,   0,   0], // the same byte again
];

/// For sealed text, in which letters and digits follow each other by chance.
#[rustfmt::skip]
pub(crate) const SEALED_SHARES: Shares = [
//   low  upp  dig  spc  brk  quo  mrk  ctl  con  lat   l2  ind  sym   l3   l4
    [ 16, 121,  76,  15,  31,  37,  60, 100,   0,  70,  70,  40, 100,  80, 190], // lower
    [ 13,  82,  74,  15,  30,  40,  51, 100,   0,  70,  70,  40, 100,  80, 190], // upper
    [109, 130,  32,  15,  31,  40,  47, 100,   0,  70,  70,  40, 100,  80, 190], // digit
    [ 67,  70,  50,  15,  30,  40,  49, 100,   0,  70,  70,  40, 100,  80, 190], // space
    [ 74,  69,  54,  15,  30,  40,  45, 100,   0,  70,  70,  40, 100,  80, 190], // break
    [ 61,  70,  50,  15,  30,  40,  41, 100,   0,  70,  70,  40, 100,  80, 190], // quote
    [110,  87,  55,  15,  30,  37,  45, 100,   0,  70,  70,  40, 100,  80, 190], // mark
    [ 15,  50,  50,  15,  30,  40,  45, 100,   0,  70,  70,  40, 100,  80, 190], // control
    [ 15,  50,  50,  15,  30,  40,  45, 100,   0,  70,  70,  40, 100,  80, 190], // continuation
    INSIDE, INSIDE, INSIDE, INSIDE, INSIDE, INSIDE,
    [  6,  21,  20,   6,  12,  16,  18,  40,   0,   0,   0,   0,   0,   0,   0], // the same byte again
];

/// What the shares are multiplied with, in thousandths, so that the middle of a class is right.
pub(crate) fn factor(class: ContentClass) -> u64 {
    match class {
        ContentClass::Prose => 984,
        ContentClass::Code => 1_015,
        ContentClass::Json => 1_030,
        ContentClass::Log => 1_038,
        ContentClass::Sealed => 1_001,
        ContentClass::OtherLanguage => 1_010,
        ContentClass::Blank => 570,
    }
}

/// Where the counts of `o200k_base` lie around the estimate, by the half of the texts that it was not fitted
/// on. Prose is English. The band of other languages is that of 353 of them with equal weight: the best known lie
/// well inside of it.
pub(crate) fn error_band(class: ContentClass) -> ErrorBand {
    let (below, above) = match class {
        ContentClass::Prose => (11, 11),
        ContentClass::Code => (10, 18),
        ContentClass::Json => (15, 14),
        ContentClass::Log => (14, 32),
        ContentClass::Sealed => (6, 6),
        ContentClass::OtherLanguage => (20, 70),
        ContentClass::Blank => (20, 30),
    };
    ErrorBand::new(below, above)
}
