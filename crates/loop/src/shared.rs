//! Text and bytes that come from a transcript or a model: cheap to clone, silent in `Debug`.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Untrusted text, shared: a clone copies a pointer, and `Debug` prints the length alone.
///
/// Transcript and model output must never reach an error, a log line or a metric. Holding them in this
/// type keeps derived `Debug` implementations from leaking them. Use [`SharedText::as_str`] where the text
/// itself is wanted. The default is empty and costs no allocation.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedText(Arc<str>);

impl SharedText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for SharedText {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self(Arc::from(text))
    }
}

impl From<Arc<str>> for SharedText {
    fn from(text: Arc<str>) -> Self {
        Self(text)
    }
}

impl PartialEq<str> for SharedText {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for SharedText {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes of text>", self.0.len())
    }
}

/// Untrusted binary payload (an image, a recording, a file), shared; `Debug` prints the length alone.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct SharedBytes(bytes::Bytes);

impl SharedBytes {
    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<bytes::Bytes> for SharedBytes {
    fn from(bytes: bytes::Bytes) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}
