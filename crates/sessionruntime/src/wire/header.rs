//! What inputs and outputs have in common: version and identity.

use epitome_loop::{ContextBasis, ContextRevision, EventId, ModelKey, RequestFingerprint};

use super::WIRE_VERSION;
use super::fault::{Fault, WireError, WireFault, WirePart};
use super::reader::{Keys, Read, Reader};

const BASIS_KEYS: [&str; 2] = ["revision", "through_event_id"];
const MODEL_KEYS: [&str; 2] = ["provider", "model"];

/// Which context, model and request a document is about, as far as it was read.
#[derive(Default)]
pub(super) struct Header {
    basis: ContextBasis,
    model: ModelKey,
    request_fingerprint: RequestFingerprint,
    /// What is wrong with the text of an identity. Kept for later, because anything wrong with the document
    /// as a whole outweighs it.
    event_fault: Option<Fault>,
    fingerprint_fault: Option<Fault>,
}

impl Header {
    /// Reads the value of the header's key with this index: version, basis, model, request fingerprint.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>, index: usize) -> Read<()> {
        match index {
            0 => read_version(reader),
            1 => self.read_basis(reader),
            2 => self.read_model(reader),
            _ => {
                let print = read_identity(reader, WireFault::Fingerprint, |text| {
                    RequestFingerprint::parse(text).ok()
                })?;
                (self.request_fingerprint, self.fingerprint_fault) = print;
                Ok(())
            }
        }
    }

    /// The identity, once the document as a whole is known to be well.
    pub(super) fn identity(self) -> Result<(ContextBasis, ModelKey, RequestFingerprint), WireError> {
        if let Some(fault) = self.event_fault {
            return Err(fault.of(WirePart::Basis));
        }
        if let Some(fault) = self.fingerprint_fault {
            return Err(fault.of(WirePart::RequestFingerprint));
        }
        Ok((self.basis, self.model, self.request_fingerprint))
    }

    fn read_basis(&mut self, reader: &mut Reader<'_>) -> Read<()> {
        let keys = reader.object(&BASIS_KEYS, |reader, index| {
            if index == 0 {
                self.basis.revision = ContextRevision(reader.unsigned()?);
            } else {
                let event = read_identity(reader, WireFault::EventId, |text| EventId::parse(text).ok())?;
                (self.basis.through_event_id, self.event_fault) = event;
            }
            Ok(())
        })?;
        keys.require(Keys::first(BASIS_KEYS.len()), reader.at())
    }

    fn read_model(&mut self, reader: &mut Reader<'_>) -> Read<()> {
        let keys = reader.object(&MODEL_KEYS, |reader, index| {
            let part = if index == 0 { &mut self.model.provider } else { &mut self.model.model };
            *part = reader.text()?;
            Ok(())
        })?;
        keys.require(Keys::first(MODEL_KEYS.len()), reader.at())
    }
}

fn read_version(reader: &mut Reader<'_>) -> Read<()> {
    let at = reader.at();
    match reader.unsigned()? {
        WIRE_VERSION => Ok(()),
        _ => Err(Fault::new(WireFault::Version, at)),
    }
}

/// Reads a string that must have one canonical form, and what is wrong with it if it has not.
fn read_identity<T: Default>(
    reader: &mut Reader<'_>,
    what: WireFault,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Read<(T, Option<Fault>)> {
    let at = reader.at();
    let parsed = match reader.short_text() {
        // Half a surrogate pair is no canonical text either.
        Err(Fault { what: WireFault::LoneSurrogate, .. }) => None,
        text => parse(&text?),
    };
    Ok(match parsed {
        Some(identity) => (identity, None),
        None => (T::default(), Some(Fault::new(what, at))),
    })
}
