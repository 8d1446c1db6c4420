//! Capabilities as numbers: the form in which other programs state them and in which they are hashed.
//!
//! Here alone can a transport, a retention or a quality be unknown (0) or out of range.

use crate::{
    CapabilityError, CapabilityField, CapabilityKind, CapabilityReason, CountQuality, CounterCapability,
    CounterTransport, InferenceCapability, InferenceTransport, Retention, SecurityIdentity, SharedText,
};

/// The parts that both capabilities have, with their enumerations still numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumericCapability {
    /// Who is at the other end.
    pub provider: SharedText,
    /// Counter: 1 local, 2 same endpoint, 3 separate endpoint. Inference: 1 local, 2 TLS, 3 attested TLS, 4 end
    /// to end encrypted.
    pub transport: u8,
    /// Whose endpoint and credentials.
    pub security_identity: SecurityIdentity,
    /// 1 none, 2 ephemeral, 3 logged.
    pub retention: u8,
}

impl NumericCapability {
    /// Reads a counter's capability. `quality` is 1 exact by the provider, 2 exact local, 3 an estimate.
    ///
    /// # Errors
    /// [`CapabilityError`] with the first fault, in the order transport, retention, tokenizer revision, quality,
    /// then as [`CounterCapability::validate`].
    pub fn counter(
        self,
        tokenizer_rev: impl Into<SharedText>,
        quality: u8,
    ) -> Result<CounterCapability, CapabilityError> {
        const KIND: CapabilityKind = CapabilityKind::Counter;
        let read = CounterCapability {
            transport: CounterTransport::from_number(self.transport)
                .map_err(|reason| KIND.fault(CapabilityField::Transport, reason))?,
            retention: Retention::from_number(self.retention)
                .map_err(|reason| KIND.fault(CapabilityField::Retention, reason))?,
            tokenizer_rev: Some(tokenizer_rev.into())
                .filter(|revision| !revision.is_empty())
                .ok_or(KIND.fault(CapabilityField::TokenizerRev, CapabilityReason::MustNotBeEmpty))?,
            quality: CountQuality::from_number(quality)
                .map_err(|reason| KIND.fault(CapabilityField::Quality, reason))?,
            provider: self.provider,
            security_identity: self.security_identity,
        };
        read.validate()?;
        Ok(read)
    }

    /// Reads the capability of a request's path. A retention of 0 is valid: the provider does not say.
    ///
    /// # Errors
    /// [`CapabilityError`] with the first fault, in the order transport, retention, then as
    /// [`InferenceCapability::validate`].
    pub fn inference(self) -> Result<InferenceCapability, CapabilityError> {
        const KIND: CapabilityKind = CapabilityKind::Inference;
        let read = InferenceCapability {
            transport: InferenceTransport::from_number(self.transport)
                .map_err(|reason| KIND.fault(CapabilityField::Transport, reason))?,
            retention: match Retention::from_number(self.retention) {
                Ok(retention) => Some(retention),
                Err(CapabilityReason::Unknown) => None,
                Err(reason) => return Err(KIND.fault(CapabilityField::Retention, reason)),
            },
            provider: self.provider,
            security_identity: self.security_identity,
        };
        read.validate()?;
        Ok(read)
    }
}

/// Which number out of a list; 0 is unknown.
fn numbered<T: Copy>(known: &[T], number: u8) -> Result<T, CapabilityReason> {
    let at = usize::from(number).checked_sub(1).ok_or(CapabilityReason::Unknown)?;
    known.get(at).copied().ok_or(CapabilityReason::OutOfRange)
}

impl CounterTransport {
    /// The number in the reference's numbering.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Local => 1,
            Self::SameEndpoint => 2,
            Self::SeparateEndpoint => 3,
        }
    }

    /// The transport with this number.
    ///
    /// # Errors
    /// [`CapabilityReason::Unknown`] for 0, [`CapabilityReason::OutOfRange`] for a number without a meaning.
    pub fn from_number(number: u8) -> Result<Self, CapabilityReason> {
        numbered(&[Self::Local, Self::SameEndpoint, Self::SeparateEndpoint], number)
    }
}

impl InferenceTransport {
    /// The number in the reference's numbering.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Local => 1,
            Self::Tls => 2,
            Self::AttestedTls => 3,
            Self::EndToEndEncrypted => 4,
        }
    }

    /// The transport with this number.
    ///
    /// # Errors
    /// As [`CounterTransport::from_number`].
    pub fn from_number(number: u8) -> Result<Self, CapabilityReason> {
        numbered(&[Self::Local, Self::Tls, Self::AttestedTls, Self::EndToEndEncrypted], number)
    }
}

impl Retention {
    /// The number in the reference's numbering.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::None => 1,
            Self::Ephemeral => 2,
            Self::Logged => 3,
        }
    }

    /// The retention with this number.
    ///
    /// # Errors
    /// As [`CounterTransport::from_number`].
    pub fn from_number(number: u8) -> Result<Self, CapabilityReason> {
        numbered(&[Self::None, Self::Ephemeral, Self::Logged], number)
    }
}

impl CountQuality {
    /// The number in the reference's numbering.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::ExactProvider => 1,
            Self::ExactLocal => 2,
            Self::HeuristicEstimate => 3,
        }
    }

    /// The quality with this number.
    ///
    /// # Errors
    /// As [`CounterTransport::from_number`].
    pub fn from_number(number: u8) -> Result<Self, CapabilityReason> {
        numbered(&[Self::ExactProvider, Self::ExactLocal, Self::HeuristicEstimate], number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_belong_together() {
        for number in 0..=u8::MAX {
            let fault = if number == 0 { CapabilityReason::Unknown } else { CapabilityReason::OutOfRange };
            let expected = |most: u8| if (1..=most).contains(&number) { Ok(number) } else { Err(fault) };
            assert_eq!(CounterTransport::from_number(number).map(CounterTransport::number), expected(3));
            assert_eq!(InferenceTransport::from_number(number).map(InferenceTransport::number), expected(4));
            assert_eq!(Retention::from_number(number).map(Retention::number), expected(3));
            assert_eq!(CountQuality::from_number(number).map(CountQuality::number), expected(3));
        }
    }

    #[test]
    fn the_first_wrong_field_is_named() {
        let numbers = |transport, retention| NumericCapability {
            provider: "p".into(),
            transport,
            security_identity: SecurityIdentity::from_bytes([5; 32]),
            retention,
        };
        let fault = |read: Result<CounterCapability, CapabilityError>| read.unwrap_err().to_string();
        assert_eq!(fault(numbers(0, 9).counter("", 9)), "counter capability: Transport unknown");
        assert_eq!(fault(numbers(2, 9).counter("", 9)), "counter capability: Retention out of range");
        assert_eq!(fault(numbers(2, 1).counter("", 9)), "counter capability: TokenizerRev must not be empty");
        assert_eq!(fault(numbers(1, 1).counter("t", 9)), "counter capability: Quality out of range");
        assert_eq!(fault(numbers(1, 1).counter("t", 1)), "counter capability: SecurityIdentity must be zero");
        assert_eq!(numbers(2, 0).inference().unwrap().retention, None);
        assert_eq!(numbers(5, 0).inference().unwrap_err().reason, CapabilityReason::OutOfRange);
    }
}
