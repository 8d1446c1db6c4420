//! Names of hustles, the bounded side tasks that a policy refers to.

use thiserror::Error;

use crate::SharedText;

/// Names that start so belong to the runtime itself (reference implementation's prefix).
const RESERVED_PREFIX: &str = "_looprig.";

/// The name of a hustle: not blank, and not in the reserved name space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HustleName(SharedText);

/// A hustle name is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HustleNameError {
    /// Empty, or only white space.
    #[error("the hustle name is missing")]
    Missing,
    /// In the name space that the runtime keeps for itself.
    #[error("the hustle name is reserved")]
    Reserved,
}

impl HustleName {
    /// Checks a name. White space around it is kept; it is ignored for the checks.
    ///
    /// # Errors
    /// [`HustleNameError`] when the name is blank or reserved.
    pub fn new(name: impl Into<SharedText>) -> Result<Self, HustleNameError> {
        let name = name.into();
        let bare = name.trim();
        if bare.is_empty() {
            return Err(HustleNameError::Missing);
        }
        if bare.starts_with(RESERVED_PREFIX) {
            return Err(HustleNameError::Reserved);
        }
        Ok(Self(name))
    }

    /// The name as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_and_reserved_names_are_refused() {
        for (name, expected) in [
            ("context.compact", None),
            ("\u{feff}", None),
            ("_looprigx", None),
            ("\u{200b}_looprig.x", None),
            ("", Some(HustleNameError::Missing)),
            ("\u{3000}\n", Some(HustleNameError::Missing)),
            ("\t_looprig.x", Some(HustleNameError::Reserved)),
        ] {
            assert_eq!(HustleName::new(name).err(), expected, "{name:?}");
        }
    }
}
