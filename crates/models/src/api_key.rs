//! Keys: from a named variable of the environment, never shown.

use std::fmt;

use reqwest::header::HeaderValue;

/// Reads a variable of this process's environment; `None` when it is not set or no text.
///
/// Hand it to what asks for an environment, or something else in tests.
#[must_use]
pub fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A key. Nothing shows it: `Debug` says that it is there, and there is no `Display`.
#[derive(Clone)]
pub(crate) struct ApiKey(String);

impl ApiKey {
    /// The key in a variable; `None` when there is none, or when it could not stand in a header.
    ///
    /// White space around it is a slip of whoever set the variable.
    pub(crate) fn read(variable: &str, environment: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let value = environment(variable)?;
        let key = value.trim();
        let fits = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(key.to_owned()))
    }

    /// The key as a header's value, behind a prefix, marked so that nothing prints it.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("{prefix}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The key's bytes, to be digested.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<key>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_trimmed_and_never_shown() {
        let environment = |name: &str| match name {
            "GOOD" => Some(" sk-canary\n".to_owned()),
            "BLANK" => Some("  ".to_owned()),
            "TWO" => Some("a b".to_owned()),
            "BEYOND" => Some("schl\u{fc}ssel".to_owned()),
            _ => None,
        };
        let key = ApiKey::read("GOOD", &environment).unwrap();
        assert_eq!(key.as_bytes(), b"sk-canary");
        let header = key.header("Bearer ").unwrap();
        assert_eq!(header.to_str().unwrap(), "Bearer sk-canary");
        assert!(!format!("{key:?} {header:?}").contains("canary"));
        for missing in ["BLANK", "TWO", "BEYOND", "ABSENT"] {
            assert!(ApiKey::read(missing, &environment).is_none(), "{missing}");
        }
    }
}
