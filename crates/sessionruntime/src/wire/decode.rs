//! Reading: the JSON of a compaction input or of a summarizer's answer, strictly.
//!
//! One pass. What is wrong inside the transcript or with an identity's text does not end the pass: the rest
//! of the document is still looked at, because a document that is no JSON, or has wrong keys, is refused for
//! that whatever else is wrong with it. So which part is named does not depend on the order of the keys.

use std::sync::Arc;

use epitome_loop::{
    CompactionInput, CompactionInputError, ContextBasis, Message, ModelKey, RequestFingerprint, SharedText,
    TokenCount, TranscriptError,
};

use super::fault::{Fault, WireError, WireFault, WirePart};
use super::header::Header;
use super::message::read_message;
use super::reader::{Keys, Read, Reader};

/// The keys of an input; those of the header come first, in the order of [`Header::read`].
const INPUT_KEYS: [&str; 6] =
    ["version", "basis", "model", "request_fingerprint", "transcript", "max_summary_tokens"];

/// The keys of an output; those of the header come first here as well.
const OUTPUT_KEYS: [&str; 5] = ["version", "basis", "model", "request_fingerprint", "summary"];

/// Reads a compaction input.
///
/// What is accepted is checked as [`CompactionInput::new`] checks it, and [`super::encode_input`] writes it
/// again: byte for byte if it came from there, else in its canonical form. Raw JSON is kept as it is.
///
/// # Errors
/// [`WireError`]. Faults of the document outweigh faults of its parts; among these, text that is no event id
/// or fingerprint comes first, then the transcript, then what [`CompactionInput::new`] refuses.
pub fn decode_input(bytes: &[u8]) -> Result<CompactionInput, WireError> {
    let mut reader = Reader::new(text_of(bytes)?);
    let mut header = Header::default();
    let mut transcript = Ok(Arc::default());
    let (mut budget, mut budget_at) = (TokenCount::ZERO, 0);
    read_document(&mut reader, &INPUT_KEYS, |reader, index| {
        match index {
            4 => transcript = read_transcript(reader)?,
            5 => (budget_at, budget) = (reader.at(), TokenCount(reader.unsigned()?)),
            _ => header.read(reader, index)?,
        }
        Ok(())
    })?;
    let (basis, model, request_fingerprint) = header.identity()?;
    let transcript = transcript.map_err(|fault: Fault| fault.of(WirePart::Transcript))?;
    CompactionInput::new(basis, model, request_fingerprint, transcript, budget)
        .map_err(|error| refused(error, reader.at(), budget_at))
}

/// What a summarizer that echoes the identity of its input has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryAnswer {
    /// The context that it says it summarized.
    pub basis: ContextBasis,
    /// The model that it says the context is for.
    pub model: ModelKey,
    /// The request that it says the context belongs to.
    pub request_fingerprint: RequestFingerprint,
    /// The summary, not yet looked at.
    pub summary: SharedText,
}

/// Reads a summarizer's answer. Neither the identity nor the summary is judged here.
///
/// # Errors
/// [`WireError`].
pub fn decode_output(bytes: &[u8]) -> Result<SummaryAnswer, WireError> {
    let mut reader = Reader::new(text_of(bytes)?);
    let mut header = Header::default();
    let mut summary = SharedText::default();
    read_document(&mut reader, &OUTPUT_KEYS, |reader, index| {
        match index {
            4 => summary = reader.text()?,
            _ => header.read(reader, index)?,
        }
        Ok(())
    })?;
    let (basis, model, request_fingerprint) = header.identity()?;
    Ok(SummaryAnswer { basis, model, request_fingerprint, summary })
}

/// Reads an object with all of these keys, and nothing behind it.
fn read_document(
    reader: &mut Reader<'_>,
    keys: &[&str],
    value: impl FnMut(&mut Reader<'_>, usize) -> Read<()>,
) -> Result<(), WireError> {
    let seen = reader.object(keys, value);
    // What is no JSON is refused for that first; there is nothing to choose between the other faults.
    let read = match seen {
        Err(fault) if fault.spoils_the_document() => Err(fault),
        seen => reader.end().and_then(|()| seen?.require(Keys::first(keys.len()), reader.at())),
    };
    read.map_err(|fault| fault.of(WirePart::Wire))
}

fn text_of(bytes: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(bytes)
        .map_err(|fault| Fault::new(WireFault::Utf8, fault.valid_up_to()).of(WirePart::Wire))
}

/// Reads the transcript. A fault inside it is kept for later, unless it spoils the document.
fn read_transcript(reader: &mut Reader<'_>) -> Read<Read<Arc<[Message]>>> {
    let mut messages = Vec::new();
    let read = reader.array(|reader| {
        messages.push(read_message(reader)?);
        Ok(())
    });
    match read {
        Err(fault) if fault.spoils_the_document() => Err(fault),
        read => Ok(read.map(|()| messages.into())),
    }
}

/// Faults that are seen only when all is read have no better place than the end, but for the budget.
fn refused(error: CompactionInputError, end: usize, budget_at: usize) -> WireError {
    let (part, fault) = match error {
        CompactionInputError::Basis => (WirePart::Basis, WireFault::Empty),
        CompactionInputError::Model => (WirePart::Model, WireFault::Empty),
        CompactionInputError::RequestFingerprint => (WirePart::RequestFingerprint, WireFault::Empty),
        CompactionInputError::MaxSummaryTokens => {
            return Fault::new(WireFault::Empty, budget_at).of(WirePart::MaxSummaryTokens);
        }
        CompactionInputError::Transcript(TranscriptError::Empty) => (WirePart::Transcript, WireFault::Empty),
        // The reader has bounded both kinds of depth, and knows no opaque block.
        _ => (WirePart::Transcript, WireFault::Nesting),
    };
    Fault::new(fault, end).of(part)
}
