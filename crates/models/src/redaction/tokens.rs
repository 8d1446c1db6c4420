//! Keys and tokens that are known by how they begin, and JSON web tokens.

use super::SecretKind::{self, ChatToken, CloudKey, CodeToken, Jwt, PrivateKey, ProviderKey};
use super::scan::{Found, run};

/// What may stand behind the beginning.
#[derive(Clone, Copy)]
enum Body {
    /// Letters and digits.
    Plain,
    /// Letters, digits, `-` and `_`.
    Url,
    /// Letters, digits, `-`, `_` and `.`.
    Dotted,
    /// Capitals and digits.
    Capital,
}

/// How a token looks.
struct Form {
    begins: &'static str,
    body: Body,
    /// The body has at least so many bytes.
    least: usize,
    /// Somewhere in it stand so many letters and digits in a row: words joined by dashes have less.
    least_run: usize,
    kind: SecretKind,
}

const fn form(begins: &'static str, body: Body, least: usize, least_run: usize, kind: SecretKind) -> Form {
    Form { begins, body, least, least_run, kind }
}

/// The forms by their makers' documents, a longer beginning in front of a shorter one.
const FORMS: &[Form] = &[
    form("sk-ant-", Body::Url, 16, 10, ProviderKey),
    form("sk-or-v1-", Body::Url, 20, 16, ProviderKey),
    form("sk-", Body::Url, 20, 16, ProviderKey),
    form("sk_live_", Body::Plain, 16, 16, ProviderKey),
    form("sk_test_", Body::Plain, 16, 16, ProviderKey),
    form("rk_live_", Body::Plain, 16, 16, ProviderKey),
    form("AIza", Body::Url, 30, 1, ProviderKey),
    form("gsk_", Body::Plain, 32, 32, ProviderKey),
    form("xai-", Body::Plain, 32, 32, ProviderKey),
    form("hf_", Body::Plain, 30, 30, ProviderKey),
    form("pplx-", Body::Plain, 32, 32, ProviderKey),
    form("ya29.", Body::Url, 20, 1, ProviderKey),
    form("SG.", Body::Dotted, 40, 10, ProviderKey),
    form("rk_test_", Body::Plain, 16, 16, ProviderKey),
    form("GOCSPX-", Body::Url, 20, 8, ProviderKey),
    form("whsec_", Body::Plain, 24, 24, ProviderKey),
    form("shpat_", Body::Plain, 32, 32, ProviderKey),
    form("shpss_", Body::Plain, 32, 32, ProviderKey),
    form("hvs.", Body::Url, 24, 16, ProviderKey),
    form("AGE-SECRET-KEY-1", Body::Plain, 50, 50, PrivateKey),
    form("AKIA", Body::Capital, 16, 16, CloudKey),
    form("ASIA", Body::Capital, 16, 16, CloudKey),
    form("dop_v1_", Body::Plain, 40, 40, CloudKey),
    form("ghp_", Body::Plain, 20, 20, CodeToken),
    form("gho_", Body::Plain, 20, 20, CodeToken),
    form("ghu_", Body::Plain, 20, 20, CodeToken),
    form("ghs_", Body::Plain, 20, 20, CodeToken),
    form("ghr_", Body::Plain, 20, 20, CodeToken),
    form("github_pat_", Body::Url, 20, 16, CodeToken),
    form("glpat-", Body::Url, 18, 8, CodeToken),
    form("glrt-", Body::Url, 18, 8, CodeToken),
    form("gldt-", Body::Url, 18, 8, CodeToken),
    form("dckr_pat_", Body::Url, 20, 8, CodeToken),
    form("npm_", Body::Plain, 30, 30, CodeToken),
    form("pypi-", Body::Url, 50, 20, CodeToken),
    form("xoxa-", Body::Url, 10, 8, ChatToken),
    form("xoxb-", Body::Url, 10, 8, ChatToken),
    form("xoxc-", Body::Url, 10, 8, ChatToken),
    form("xoxd-", Body::Url, 10, 8, ChatToken),
    form("xoxe-", Body::Url, 10, 8, ChatToken),
    form("xoxe.", Body::Dotted, 10, 8, ChatToken),
    form("xoxo-", Body::Url, 10, 8, ChatToken),
    form("xoxp-", Body::Url, 10, 8, ChatToken),
    form("xoxr-", Body::Url, 10, 8, ChatToken),
    form("xoxs-", Body::Url, 10, 8, ChatToken),
    form("xapp-", Body::Url, 10, 8, ChatToken),
];

/// How a JSON object begins in base64.
const WEB_TOKEN: &[u8] = b"eyJ";

impl Body {
    fn admits(self, byte: u8) -> bool {
        match self {
            Self::Plain => byte.is_ascii_alphanumeric(),
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
            Self::Capital => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        }
    }
}

/// Whether a character may stand in a token of any form.
pub(super) fn is_of_token(byte: u8) -> bool {
    Body::Dotted.admits(byte)
}

/// Whether a token may begin at this byte.
pub(super) fn may_begin(bytes: &[u8], start: usize) -> bool {
    let rest = bytes.get(start..).unwrap_or_default();
    rest.starts_with(WEB_TOKEN) || FORMS.iter().any(|form| rest.starts_with(form.begins.as_bytes()))
}

/// The token that begins at this byte.
pub(super) fn at(bytes: &[u8], start: usize) -> Option<Found> {
    let rest = bytes.get(start..)?;
    if rest.starts_with(WEB_TOKEN) {
        return web_token(bytes, start);
    }
    let form = FORMS.iter().find(|form| rest.starts_with(form.begins.as_bytes()))?;
    let body_start = start + form.begins.len();
    let length = run(bytes, body_start, |byte| form.body.admits(byte));
    let body = bytes.get(body_start..body_start + length)?;
    if length < form.least || !has_run(body, form.least_run) || !has_digit(body) {
        return None;
    }
    // Key ids of clouds have one length: a longer word is another thing.
    let exact = matches!(form.body, Body::Capital);
    if exact
        && (length != form.least || bytes.get(body_start + length).is_some_and(u8::is_ascii_alphanumeric))
    {
        return None;
    }
    Some(Found { start, end: body_start + length, kind: form.kind })
}

fn has_run(body: &[u8], least: usize) -> bool {
    body.split(|byte| !byte.is_ascii_alphanumeric()).any(|part| part.len() >= least)
}

fn has_digit(body: &[u8]) -> bool {
    body.iter().any(u8::is_ascii_digit)
}

/// Three parts of at least ten characters with dots between them, the first two of which begin like JSON objects in
/// base64.
fn web_token(bytes: &[u8], start: usize) -> Option<Found> {
    const LEAST: usize = 10;
    let part = |from: usize| run(bytes, from, |byte| Body::Url.admits(byte));
    let head = part(start);
    let second = start + head + 1;
    let claims = bytes.get(second..)?.starts_with(b"ey").then(|| part(second))?;
    let third = second + claims + 1;
    let dots = bytes.get(second - 1) == Some(&b'.') && bytes.get(third - 1) == Some(&b'.');
    let signature = part(third);
    let long = [head, claims, signature].into_iter().all(|length| length >= LEAST);
    (dots && long).then_some(Found { start, end: third + signature, kind: Jwt })
}
