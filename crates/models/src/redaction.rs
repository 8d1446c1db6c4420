//! Secrets in text: found by their form, replaced by a fixed mark, counted by kind. No network, no randomness, no
//! guess by how strange a word looks: hashes, ids and pictures stay.

mod assignment;
mod json;
mod private_key;
mod scan;
mod tokens;
mod url_password;

use std::fmt;

pub(crate) use json::redact_json;

/// How every mark begins.
const MARK: &[u8] = b"[redacted:";

/// What kind of secret was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SecretKind {
    /// A key of a provider of models, maps, payments and the like: `sk-...`, `sk-ant-...`, `AIza...`.
    ProviderKey,
    /// A key id of a cloud: `AKIA...`.
    CloudKey,
    /// A token of a place for code or packages: `ghp_...`, `github_pat_...`, `glpat-...`.
    CodeToken,
    /// A token of a chat: `xoxb-...`.
    ChatToken,
    /// A JSON web token.
    Jwt,
    /// What stands behind `Bearer` or `Basic` in a header.
    HeaderCredential,
    /// A block with a private key.
    PrivateKey,
    /// The password in a URL.
    UrlPassword,
    /// What is assigned to a name such as `password` or `api_key`.
    AssignedSecret,
}

impl SecretKind {
    /// Every kind, in the order of [`RedactionCounts`].
    pub const ALL: [Self; 9] = [
        Self::ProviderKey,
        Self::CloudKey,
        Self::CodeToken,
        Self::ChatToken,
        Self::Jwt,
        Self::HeaderCredential,
        Self::PrivateKey,
        Self::UrlPassword,
        Self::AssignedSecret,
    ];

    /// The stable name used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProviderKey => "provider_key",
            Self::CloudKey => "cloud_key",
            Self::CodeToken => "code_token",
            Self::ChatToken => "chat_token",
            Self::Jwt => "jwt",
            Self::HeaderCredential => "header_credential",
            Self::PrivateKey => "private_key",
            Self::UrlPassword => "url_password",
            Self::AssignedSecret => "assigned_secret",
        }
    }

    /// What stands in the place of such a secret. It is found to be no secret itself.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::ProviderKey => "[redacted:provider_key]",
            Self::CloudKey => "[redacted:cloud_key]",
            Self::CodeToken => "[redacted:code_token]",
            Self::ChatToken => "[redacted:chat_token]",
            Self::Jwt => "[redacted:jwt]",
            Self::HeaderCredential => "[redacted:header_credential]",
            Self::PrivateKey => "[redacted:private_key]",
            Self::UrlPassword => "[redacted:url_password]",
            Self::AssignedSecret => "[redacted:assigned_secret]",
        }
    }
}

impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many secrets of each kind were replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct RedactionCounts([u64; SecretKind::ALL.len()]);

impl RedactionCounts {
    /// How many of this kind.
    #[must_use]
    pub fn of(&self, kind: SecretKind) -> u64 {
        self.by_kind().find(|(known, _)| *known == kind).map_or(0, |(_, count)| count)
    }

    /// How many in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Each kind with its number, in fixed order, zeros included.
    pub fn by_kind(&self) -> impl Iterator<Item = (SecretKind, u64)> + '_ {
        SecretKind::ALL.into_iter().zip(self.0)
    }

    pub(crate) fn count(&mut self, kind: SecretKind) {
        for (known, count) in SecretKind::ALL.iter().zip(&mut self.0) {
            *count = count.saturating_add(u64::from(*known == kind));
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_add(more);
        }
    }
}

/// Text without its secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Redacted {
    /// The text; `None` when nothing was found, so that it stays as it was.
    pub text: Option<String>,
    /// What was replaced.
    pub counts: RedactionCounts,
}

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.text.as_ref().map(String::len);
        f.debug_struct("Redacted").field("text_bytes", &bytes).field("counts", &self.counts).finish()
    }
}

/// So many times a text is walked through at most. Twice is the rule where anything was found.
const MOST_PASSES: usize = 8;

/// Replaces every secret that has one of the known forms by its mark. All else stays byte for byte.
///
/// Takes time in proportion to the text, and changes nothing the second time.
#[must_use]
pub fn redact(text: &str) -> Redacted {
    let mut counts = RedactionCounts::default();
    let mut redacted = None;
    // What stands beside a secret may be read otherwise once there is a mark.
    for _ in 0..MOST_PASSES {
        match pass(redacted.as_deref().unwrap_or(text), &mut counts) {
            Some(changed) => redacted = Some(changed),
            None => break,
        }
    }
    Redacted { text: redacted, counts }
}

/// One walk through the text; `None` when nothing was found.
fn pass(text: &str, counts: &mut RedactionCounts) -> Option<String> {
    let mut redacted = String::new();
    let mut kept = 0;
    for scan::Found { start, end, kind } in scan::Scan::new(text) {
        redacted.push_str(text.get(kept..start).unwrap_or_default());
        redacted.push_str(kind.mark());
        counts.count(kind);
        kept = end;
    }
    if kept == 0 {
        return None;
    }
    redacted.push_str(text.get(kept..).unwrap_or_default());
    Some(redacted)
}

#[cfg(test)]
mod tests;
