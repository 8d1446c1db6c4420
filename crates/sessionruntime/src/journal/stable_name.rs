//! Names of reasons and repairs in records.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

/// A name out of a closed list of ours, such as `nothing_to_compact`: lower-case letters, digits and underscores, 1 to
/// 64 of them. It stands for a rule, never for content, so it may be shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StableName(Cow<'static, str>);

/// Text that is no stable name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a name of lower-case letters, digits and underscores")]
pub struct StableNameError;

impl StableName {
    /// The attempt was under way when the process ended.
    pub const CRASHED: Self = Self(Cow::Borrowed("crashed"));

    const LONGEST: usize = 64;

    /// Takes a name.
    ///
    /// # Errors
    /// [`StableNameError`] for any other text.
    pub fn new(name: &'static str) -> Result<Self, StableNameError> {
        if Self::is_one(name) { Ok(Self(Cow::Borrowed(name))) } else { Err(StableNameError) }
    }

    /// Takes a name that was read or put together; a reader may know fewer names than the writer did.
    ///
    /// # Errors
    /// [`StableNameError`] for any other text.
    pub fn read(name: &str) -> Result<Self, StableNameError> {
        if Self::is_one(name) { Ok(Self(Cow::Owned(name.to_owned()))) } else { Err(StableNameError) }
    }

    fn is_one(name: &str) -> bool {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        (1..=Self::LONGEST).contains(&name.len()) && name.bytes().all(fits)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for StableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for StableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_no_prose() {
        assert!(StableName::new("nothing_to_compact").is_ok());
        for text in ["", "Two words", "two words", "naïve", "a-b", "a\n"] {
            assert_eq!(StableName::read(text), Err(StableNameError), "{text}");
        }
        assert!(StableName::read(&"x".repeat(64)).is_ok());
        assert!(StableName::read(&"x".repeat(65)).is_err());
    }
}
