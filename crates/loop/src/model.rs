//! Models, their context limits, and how full a context is.

use thiserror::Error;

use crate::{SharedText, TokenCount};

/// Which model: provider and model name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ModelKey {
    /// For example `anthropic`.
    pub provider: SharedText,
    /// For example `claude-sonnet-4-5`.
    pub model: SharedText,
}

/// A part of a model key is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("model key: {field} is empty")]
pub struct ModelKeyError {
    /// Which part.
    pub field: ModelKeyField,
}

/// A part of a [`ModelKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelKeyField {
    /// [`ModelKey::provider`].
    Provider,
    /// [`ModelKey::model`].
    Model,
}

impl std::fmt::Display for ModelKeyField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Provider => "provider",
            Self::Model => "model",
        })
    }
}

impl ModelKey {
    /// A key from its two parts.
    #[must_use]
    pub fn new(provider: impl Into<SharedText>, model: impl Into<SharedText>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }

    /// Checks that both parts are given.
    ///
    /// # Errors
    /// [`ModelKeyError`] naming the first empty part.
    pub fn validate(&self) -> Result<(), ModelKeyError> {
        if self.provider.is_empty() {
            return Err(ModelKeyError { field: ModelKeyField::Provider });
        }
        if self.model.is_empty() {
            return Err(ModelKeyError { field: ModelKeyField::Model });
        }
        Ok(())
    }
}

/// What a model can hold, in tokens; 0 means unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ContextLimits {
    /// Input and output together.
    pub window: TokenCount,
    /// Largest input, where the provider states one.
    pub max_input: TokenCount,
    /// Largest output, where the provider states one.
    pub max_output: TokenCount,
}

/// A known maximum exceeds a known window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("context limits: {field} of {value} tokens exceeds the window of {window} tokens")]
pub struct ContextLimitsError {
    /// Which maximum.
    pub field: ContextLimitsField,
    /// The maximum.
    pub value: TokenCount,
    /// The window.
    pub window: TokenCount,
}

/// A maximum in [`ContextLimits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContextLimitsField {
    /// [`ContextLimits::max_input`].
    MaxInput,
    /// [`ContextLimits::max_output`].
    MaxOutput,
}

impl std::fmt::Display for ContextLimitsField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::MaxInput => "max_input",
            Self::MaxOutput => "max_output",
        })
    }
}

impl ContextLimits {
    /// Checks that no known maximum exceeds a known window.
    ///
    /// # Errors
    /// [`ContextLimitsError`] naming the first that does.
    pub fn validate(&self) -> Result<(), ContextLimitsError> {
        for (field, value) in
            [(ContextLimitsField::MaxInput, self.max_input), (ContextLimitsField::MaxOutput, self.max_output)]
        {
            if self.window.get() != 0 && value > self.window {
                return Err(ContextLimitsError { field, value, window: self.window });
            }
        }
        Ok(())
    }
}

/// The room a request may take, worked out from a model's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedLimits {
    /// Room kept for the answer: the reservation, at most the model's largest output.
    pub reserved_output: TokenCount,
    /// Room for input before the safety margin.
    pub raw_input_limit: TokenCount,
    /// Room for input: a request that counts this much or more is full.
    pub input_limit: TokenCount,
}

/// The room for input cannot be worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContextLimitUnknown {
    /// The model key is not valid.
    #[error("context limit unknown: {0}")]
    Model(ModelKeyError),
    /// The limits contradict each other.
    #[error("context limit unknown: {0}")]
    Limits(ContextLimitsError),
    /// Neither window nor input limit is known, or reservation and margin leave nothing of them.
    #[error(
        "context limit unknown: a window of {window} and an input limit of {max_input} tokens leave no room \
         after {reserved_output} tokens for the answer and a margin of {safety_margin}"
    )]
    NoRoom {
        /// The model's window; 0 unknown.
        window: TokenCount,
        /// The model's largest input; 0 unknown.
        max_input: TokenCount,
        /// Room kept for the answer.
        reserved_output: TokenCount,
        /// Room kept for the count's error.
        safety_margin: TokenCount,
    },
}

/// Works out the room for input (spec: domain words, context).
///
/// The reservation is at most the model's largest output; the window less the reservation, at most the
/// largest input, less the margin, is the limit, which must be positive.
///
/// # Errors
/// [`ContextLimitUnknown`] when the key or limits are invalid or nothing is left.
pub fn resolve_context_limits(
    key: &ModelKey,
    limits: &ContextLimits,
    reserved_output: TokenCount,
    safety_margin: TokenCount,
) -> Result<ResolvedLimits, ContextLimitUnknown> {
    key.validate().map_err(ContextLimitUnknown::Model)?;
    limits.validate().map_err(ContextLimitUnknown::Limits)?;
    let reserved = match limits.max_output.get() {
        0 => reserved_output,
        _ => reserved_output.min(limits.max_output),
    };
    let no_room = ContextLimitUnknown::NoRoom {
        window: limits.window,
        max_input: limits.max_input,
        reserved_output: reserved,
        safety_margin,
    };
    let from_window = match limits.window.get() {
        0 => None,
        window => Some(window.checked_sub(reserved.get()).filter(|&raw| raw > 0).ok_or(no_room)?),
    };
    let from_input = Some(limits.max_input.get()).filter(|&max| max > 0);
    let raw = match (from_window, from_input) {
        (Some(window), Some(input)) => window.min(input),
        (Some(raw), None) | (None, Some(raw)) => raw,
        (None, None) => return Err(no_room),
    };
    let limit = raw.checked_sub(safety_margin.get()).filter(|&limit| limit > 0).ok_or(no_room)?;
    Ok(ResolvedLimits {
        reserved_output: reserved,
        raw_input_limit: TokenCount(raw),
        input_limit: TokenCount(limit),
    })
}

/// Ten-thousandths; 10 000 is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BasisPoints(pub u16);

impl BasisPoints {
    /// A full context.
    pub const FULL_SCALE: Self = Self(10_000);

    /// The plain number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl std::fmt::Display for BasisPoints {
    /// As a percentage: `85.00%`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:02}%", self.0 / 100, self.0 % 100)
    }
}

/// The input limit is zero, so nothing can be said about how full it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the input limit is zero")]
pub struct ZeroLimit;

/// How full a context is: `floor(used * 10000 / limit)`, at most full.
///
/// # Errors
/// [`ZeroLimit`] when `limit` is zero.
pub fn occupancy(used: TokenCount, limit: TokenCount) -> Result<BasisPoints, ZeroLimit> {
    let full = u128::from(BasisPoints::FULL_SCALE.get());
    let share = (u128::from(used.get()) * full).checked_div(u128::from(limit.get())).ok_or(ZeroLimit)?;
    Ok(BasisPoints(u16::try_from(share.min(full)).unwrap_or(BasisPoints::FULL_SCALE.get())))
}

/// How pressing it is to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum PressureLevel {
    /// Nothing has been measured yet.
    #[default]
    Unknown,
    /// Below the threshold.
    Normal,
    /// At or above the threshold.
    Compact,
    /// The context is full.
    HardLimit,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(window: u64, max_input: u64, max_output: u64) -> ContextLimits {
        ContextLimits {
            window: TokenCount(window),
            max_input: TokenCount(max_input),
            max_output: TokenCount(max_output),
        }
    }

    #[test]
    fn room_is_window_less_reservation_less_margin() {
        let key = ModelKey::new("p", "m");
        let found =
            resolve_context_limits(&key, &limits(100, 70, 20), TokenCount(30), TokenCount(5)).unwrap();
        assert_eq!(found.reserved_output, TokenCount(20));
        assert_eq!(found.raw_input_limit, TokenCount(70));
        assert_eq!(found.input_limit, TokenCount(65));
        assert!(resolve_context_limits(&key, &limits(0, 0, 9), TokenCount(1), TokenCount(0)).is_err());
    }

    #[test]
    fn occupancy_is_floored_and_clamped() {
        assert_eq!(occupancy(TokenCount(1), TokenCount(7)), Ok(BasisPoints(1428)));
        assert_eq!(occupancy(TokenCount(u64::MAX), TokenCount(1)), Ok(BasisPoints::FULL_SCALE));
        assert_eq!(occupancy(TokenCount(1), TokenCount(0)), Err(ZeroLimit));
        assert_eq!(BasisPoints(805).to_string(), "8.05%");
    }
}
