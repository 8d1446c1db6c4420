//! Token counts and what a provider reports about one request.

use thiserror::Error;

/// A number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TokenCount(pub u64);

impl TokenCount {
    /// No tokens.
    pub const ZERO: Self = Self(0);

    /// The plain number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, at most `u64::MAX`.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for TokenCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Self::saturating_add)
    }
}

impl std::fmt::Display for TokenCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What a provider reported for one request, in tokens. Input excludes what came from or went to the cache.
///
/// Reasoning may exceed output: some providers account it so, and it is accepted as their fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Uncached input.
    pub input: TokenCount,
    /// Output, reasoning included where the provider counts it so.
    pub output: TokenCount,
    /// Input read from the provider's cache.
    pub cache_read: TokenCount,
    /// Input written to the provider's cache.
    pub cache_creation: TokenCount,
    /// Reasoning tokens.
    pub reasoning: TokenCount,
}

/// A sum of token counts does not fit in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("token usage overflows at {field}")]
pub struct UsageOverflow {
    /// The field whose addition went over.
    pub field: UsageField,
}

/// A field of [`Usage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UsageField {
    /// [`Usage::input`].
    Input,
    /// [`Usage::output`].
    Output,
    /// [`Usage::cache_read`].
    CacheRead,
    /// [`Usage::cache_creation`].
    CacheCreation,
    /// [`Usage::reasoning`].
    Reasoning,
}

impl std::fmt::Display for UsageField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::CacheRead => "cache_read",
            Self::CacheCreation => "cache_creation",
            Self::Reasoning => "reasoning",
        })
    }
}

impl Usage {
    /// What the request occupied of the window: input, cached input read and written.
    ///
    /// # Errors
    /// [`UsageOverflow`] naming the field whose addition went over.
    pub fn context_tokens(&self) -> Result<TokenCount, UsageOverflow> {
        let read = checked(self.input, self.cache_read, UsageField::CacheRead)?;
        checked(read, self.cache_creation, UsageField::CacheCreation)
    }

    /// Context and output together. Reasoning is part of output and not added again.
    ///
    /// # Errors
    /// [`UsageOverflow`] naming the field whose addition went over.
    pub fn total_tokens(&self) -> Result<TokenCount, UsageOverflow> {
        checked(self.context_tokens()?, self.output, UsageField::Output)
    }

    /// The sum, field by field.
    ///
    /// # Errors
    /// [`UsageOverflow`] naming the first field, in declaration order, that went over.
    pub fn checked_add(&self, other: &Self) -> Result<Self, UsageOverflow> {
        let Self { input, output, cache_read, cache_creation, reasoning } = *other;
        Ok(Self {
            input: checked(self.input, input, UsageField::Input)?,
            output: checked(self.output, output, UsageField::Output)?,
            cache_read: checked(self.cache_read, cache_read, UsageField::CacheRead)?,
            cache_creation: checked(self.cache_creation, cache_creation, UsageField::CacheCreation)?,
            reasoning: checked(self.reasoning, reasoning, UsageField::Reasoning)?,
        })
    }
}

impl std::iter::Sum for Usage {
    /// What several requests cost together, field by field, at most `u64::MAX` each.
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), |sum, next| Self {
            input: sum.input.saturating_add(next.input),
            output: sum.output.saturating_add(next.output),
            cache_read: sum.cache_read.saturating_add(next.cache_read),
            cache_creation: sum.cache_creation.saturating_add(next.cache_creation),
            reasoning: sum.reasoning.saturating_add(next.reasoning),
        })
    }
}

fn checked(left: TokenCount, right: TokenCount, field: UsageField) -> Result<TokenCount, UsageOverflow> {
    left.0.checked_add(right.0).map(TokenCount).ok_or(UsageOverflow { field })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_name_the_field_that_overflows() {
        let usage = Usage {
            input: TokenCount(1),
            cache_read: TokenCount(2),
            cache_creation: TokenCount(3),
            ..Usage::default()
        };
        assert_eq!(usage.context_tokens(), Ok(TokenCount(6)));
        let full = Usage { output: TokenCount(u64::MAX), ..usage };
        assert_eq!(full.total_tokens(), Err(UsageOverflow { field: UsageField::Output }));
        assert_eq!(full.checked_add(&full).unwrap_err().field, UsageField::Output);
        let sum: Usage = [usage, full, full].into_iter().sum();
        assert_eq!((sum.input, sum.output), (TokenCount(3), TokenCount(u64::MAX)));
    }
}
