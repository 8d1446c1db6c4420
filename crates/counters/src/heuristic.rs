//! An estimate of text size from classes of bytes alone, without a tokenizer.

use async_trait::async_trait;
use epitome_loop::{
    ContextCount, ContextCounter, CountError, CountQuality, CounterCapability, Message, Request,
    TextEstimator, TokenCount,
};

use crate::breakdown::Breakdown;
use crate::content_cost::Tariff;
use crate::framing::Framing;
use crate::local::local_capability;
use crate::media::MediaRules;
use crate::models::Family;
use crate::text_size::TextSize;

/// Sizes text and whole requests for models about which nothing is known.
///
/// It looks at each byte and the one before it, so it is linear, allocates nothing and needs no vocabulary.
/// Its figures are meant to be on the high side: see the crate's `README.md` for how far they are from what
/// providers counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeuristicEstimator;

const TARIFF_FAMILY: Family = Family::Other;

impl HeuristicEstimator {
    /// Sizes a whole request.
    #[must_use]
    pub fn count_request(&self, request: &Request) -> ContextCount {
        ContextCount {
            model: request.model.clone(),
            input_tokens: TokenCount(self.measure_parts(request).total),
            quality: CountQuality::HeuristicEstimate,
        }
    }

    /// Sizes one message with the marks around it.
    #[must_use]
    pub fn count_message(&self, message: &Message) -> TokenCount {
        TokenCount(Self::tariff().message(message))
    }

    /// Sizes a whole request, part by part.
    #[must_use]
    pub fn measure_parts(&self, request: &Request) -> Breakdown {
        let tariff = Self::tariff();
        Breakdown::of(request, &tariff, |message| tariff.content(message.blocks()))
    }

    fn tariff() -> Tariff {
        Tariff { text: TextSize::Bytes, media: MediaRules::CONSERVATIVE, framing: Framing::of(TARIFF_FAMILY) }
    }
}

impl TextEstimator for HeuristicEstimator {
    fn estimate(&self, text: &str) -> TokenCount {
        TokenCount(estimate_text(text))
    }
}

#[async_trait]
impl ContextCounter for HeuristicEstimator {
    async fn count(&self, request: &Request) -> Result<ContextCount, CountError> {
        Ok(self.count_request(request))
    }

    fn capability(&self) -> CounterCapability {
        local_capability("byte-classes/1", CountQuality::HeuristicEstimate)
    }
}

/// What a byte is, as far as tokenizers care.
#[derive(Clone, Copy)]
enum Class {
    Lower,
    Upper,
    Digit,
    Space,
    Break,
    Mark,
    Control,
    Continuation,
    Lead2,
    Lead3,
    Lead4,
}

const CLASSES: usize = 11;

/// The estimate in tokens, rounded up: every byte adds a share that depends on its class and on that of the
/// byte before it.
pub(crate) fn estimate_text(text: &str) -> u64 {
    let mut shares = 0_u64;
    let mut before = Class::Break as usize;
    for &byte in text.as_bytes() {
        let class = usize::from(CLASS_OF[usize::from(byte)]);
        shares += u64::from(SHARES[before * CLASSES + class]);
        before = class;
    }
    shares.div_ceil(SHARES_PER_TOKEN)
}

const SHARES_PER_TOKEN: u64 = 100;

/// Hundredths of a token, by the class before (rows) and the class of the byte (columns).
#[rustfmt::skip]
const SHARES: [u8; CLASSES * CLASSES] = [
//  low  upp  dig  spc  brk  mrk  ctl  con  2    3    4
     20,  75,  90,  10,  40,  80, 130,   0,  90, 130, 250, // lower
     25,  45,  90,  10,  40,  80, 130,   0,  90, 130, 250, // upper
     95,  95,  45,  20,  40,  80, 130,   0,  90, 130, 250, // digit
     85,  90,  90,  12,  30,  80, 130,   0,  90, 130, 250, // space
    110, 110, 110,  45,  25, 110, 130,   0,  90, 130, 250, // break
     85,  85,  90,  30,  35,  40, 130,   0,  90, 130, 250, // mark
    110, 110, 110,  60,  60, 110,  90,   0,  90, 130, 250, // control
    110, 110, 110,  30,  40,  90, 130,   0,  75, 115, 250, // continuation
      0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0, // 2-byte lead
      0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0, // 3-byte lead
      0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0, // 4-byte lead
];

const CLASS_OF: [u8; 256] = {
    let mut classes = [0_u8; 256];
    let mut byte = 0_usize;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b' ' | b'\t' => Class::Space,
            b'\n' | b'\r' => Class::Break,
            b'!'..=b'~' => Class::Mark,
            0..=0x7f => Class::Control,
            0x80..=0xbf => Class::Continuation,
            0xc0..=0xdf => Class::Lead2,
            0xe0..=0xef => Class::Lead3,
            0xf0..=0xff => Class::Lead4,
        } as u8;
        byte += 1;
    }
    classes
};
