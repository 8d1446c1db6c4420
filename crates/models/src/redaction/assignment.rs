//! Secrets that are assigned to a name that says so, and credentials in headers.

use super::SecretKind;
use super::scan::{Found, before, run};
use super::{MARK, tokens};

/// A name is no longer.
const MOST_NAME: usize = 64;
/// A quoted value is no longer.
const MOST_QUOTED: usize = 4096;
/// A value without quotes is judged by so much of it.
const MOST_JUDGED: usize = 256;

/// What a name promises.
#[derive(Clone, Copy)]
enum Promise {
    /// A password: people choose it, so it may look like anything.
    Password,
    /// A password that may hold spaces.
    Passphrase,
    /// A key or token: machines make it.
    Token,
}

/// Ends of names, in lower case without `_` and `-`, a longer one in front of a shorter one.
const NAMES: &[(&str, Promise)] = &[
    ("passphrase", Promise::Passphrase),
    ("password", Promise::Password),
    ("passwd", Promise::Password),
    ("pwd", Promise::Password),
    ("clientsecret", Promise::Password),
    ("secret", Promise::Password),
    ("apikey", Promise::Token),
    ("apitoken", Promise::Token),
    ("secretkey", Promise::Token),
    ("accesskey", Promise::Token),
    ("secretaccesskey", Promise::Token),
    ("privatekey", Promise::Token),
    ("encryptionkey", Promise::Token),
    ("signingkey", Promise::Token),
    ("masterkey", Promise::Token),
    ("accountkey", Promise::Token),
    ("sharedkey", Promise::Token),
    ("authkey", Promise::Token),
    ("secretkeybase", Promise::Token),
    ("openaikey", Promise::Token),
    ("anthropickey", Promise::Token),
    ("geminikey", Promise::Token),
    ("azurekey", Promise::Token),
    ("dbpass", Promise::Password),
    ("userpass", Promise::Password),
    ("token", Promise::Token),
];

/// What a name promises; nothing for most.
fn promise(name: &[u8]) -> Option<Promise> {
    let plain: Vec<u8> =
        name.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect();
    let known = NAMES.iter().find(|(ending, _)| plain.ends_with(ending.as_bytes()));
    known.map(|(_, promise)| *promise)
}

/// The secret that is assigned by this colon or equals sign.
pub(super) fn at(bytes: &[u8], sign: usize) -> Option<Found> {
    let name = name_before(bytes, sign)?;
    let promise = promise(name.text)?;
    let mut start = sign + 1;
    // `:=`, `=>` and `==` are signs too; `::` leads to a part of something.
    match bytes.get(start) {
        Some(b':') => return None,
        Some(b'=' | b'>') => start += 1,
        _ => {}
    }
    let spaces = run(bytes, start, |byte| byte == b' ' || byte == b'\t').min(8);
    start += spaces;
    let escaped = bytes.get(start) == Some(&b'\\');
    let quote_at = start + usize::from(escaped);
    let quote = bytes.get(quote_at).copied().filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let (start, end) = match quote {
        Some(quote) => {
            let start = quote_at + 1;
            let end = start + quoted(bytes.get(start..)?, quote, escaped)?;
            is_secret_quoted(bytes.get(start..end)?, promise).then_some((start, end))?
        }
        None => {
            let bare = Bare::at(bytes, start, spaces == 0, name.is_constant && spaces == 0)?;
            let end = start + bare.length;
            bare.is_secret(bytes.get(start..end)?, promise).then_some(())?;
            // The rest of a value that is longer than what was judged.
            (start, end + run(bytes, end, is_bare).min(if bare.is_whole { 0 } else { usize::MAX }))
        }
    };
    // What has a form of its own is found by it next.
    tokens::at(bytes, start).is_none().then_some(Found { start, end, kind: SecretKind::AssignedSecret })
}

/// The length of a quoted value; `None` without its closing quote.
fn quoted(text: &[u8], quote: u8, escaped: bool) -> Option<usize> {
    let text = text.get(..text.len().min(MOST_QUOTED))?;
    let mut length = 0;
    loop {
        match text.get(length)? {
            b'\n' => return None,
            // The closing quote of quoted text inside quoted text is escaped; other escapes go on.
            b'\\' if escaped => return Some(length),
            b'\\' => length += 2,
            byte if *byte == quote => return Some(length),
            _ => length += 1,
        }
    }
}

/// The credential behind a word of a header that this space ends: `Bearer abc`, `Authorization: Basic abc`.
pub(super) fn header_at(bytes: &[u8], space: usize) -> Option<Found> {
    let scheme = |word: &[u8]| {
        let start = space.checked_sub(word.len())?;
        let is_word = bytes.get(start..space)?.eq_ignore_ascii_case(word);
        (is_word && before(bytes, start).is_none_or(|byte| !byte.is_ascii_alphanumeric())).then_some(start)
    };
    let start = space + 1;
    let length = run(bytes, start, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
    });
    // The end of a sentence is not of the credential.
    let text = bytes.get(start..start + length)?;
    let length = length - text.iter().rev().take_while(|byte| **byte == b'.').count();
    let text = text.get(..length)?;
    let found = Found { start, end: start + length, kind: SecretKind::HeaderCredential };
    let is_authorization = |start: usize| {
        let unquoted = |text: &'_ [u8]| -> usize {
            let text = text.trim_ascii_end();
            text.len() - usize::from(text.ends_with(b"\"") || text.ends_with(b"'"))
        };
        // The field of an object has quotes around its name and its value.
        let before = bytes.get(..start).unwrap_or_default();
        let before = before.get(..unquoted(before)).unwrap_or_default().trim_ascii_end();
        let before = before.strip_suffix(b":").unwrap_or_default();
        let before = before.get(..unquoted(before)).unwrap_or_default();
        let name = before.get(before.len().saturating_sub(13)..).unwrap_or_default();
        name.eq_ignore_ascii_case(b"authorization")
    };
    let made = scheme(b"bearer").is_some() && is_made(text, 12)
        || scheme(b"basic").is_some_and(|start| is_authorization(start) && length >= 8)
        || scheme(b"token").is_some_and(|start| is_authorization(start) && is_made(text, 12));
    (made && tokens::at(bytes, start).is_none()).then_some(found)
}

/// Whether a machine made it: long enough, with digits and letters; of a long one, with one digit, or with letters of both
/// cases in a row that no word has. A word is not.
fn is_made(text: &[u8], least: usize) -> bool {
    const LONG: usize = 16;
    if text.len() < least || !text.iter().any(u8::is_ascii_alphabetic) {
        return false;
    }
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    let row =
        text.split(|byte| !byte.is_ascii_alphanumeric()).max_by_key(|row| row.len()).unwrap_or_default();
    digits >= 2 || row.len() >= LONG && (digits == 1 || is_mixed(row))
}

/// Whether letters change their case in the middle of words more often than names do.
fn is_mixed(row: &[u8]) -> bool {
    let rises =
        row.windows(2).filter(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase()).count();
    let lows = row.iter().filter(|byte| byte.is_ascii_lowercase()).count();
    rises * 4 >= row.len().min(16) && lows > 0
}

/// The value behind an option of a command that this space ends: `--password abc`, `--api-key abc`.
pub(super) fn option_at(bytes: &[u8], space: usize) -> Option<Found> {
    let window = bytes.get(space.saturating_sub(MOST_NAME)..space)?;
    let length =
        window.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    let option = window.get(window.len() - length..)?.strip_prefix(b"--")?;
    let promise = promise(option)?;
    let start = space + 1;
    let end = start + run(bytes, start, is_bare).min(MOST_QUOTED);
    let text = bytes.get(start..end)?;
    let odd = |byte: &u8| byte.is_ascii_digit() || b"!@#$%^*+=~?".contains(byte);
    let is_secret = match promise {
        Promise::Password | Promise::Passphrase => text.len() >= 6 && text.iter().any(odd),
        Promise::Token => is_made(text, 12),
    };
    let is_value = is_secret && !is_open(text) && !text.starts_with(b"-");
    (is_value && tokens::at(bytes, start).is_none()).then_some(Found {
        start,
        end,
        kind: SecretKind::AssignedSecret,
    })
}

struct Name<'a> {
    text: &'a [u8],
    /// It is written in capitals, as variables of the environment are.
    is_constant: bool,
}

/// The name in front of a sign, with a quote or spaces between them.
fn name_before(bytes: &[u8], sign: usize) -> Option<Name<'_>> {
    let before = bytes.get(..sign)?;
    let window = before.get(before.len().saturating_sub(MOST_NAME + 8)..)?;
    let spaces = window.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let window = window.get(..window.len() - spaces)?;
    // Quotes around the name, escaped in text that quotes text, and the brackets of an index.
    let window = window
        .strip_suffix(b"]")
        .filter(|rest| rest.ends_with(b"'") || rest.ends_with(b"\""))
        .unwrap_or(window);
    let unquoted =
        [b'"', b'\'', b'`'].iter().find_map(|quote| window.strip_suffix(std::slice::from_ref(quote)));
    let window = unquoted.map_or(window, |rest| rest.strip_suffix(b"\\").unwrap_or(rest));
    let length = window
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        .count();
    let text = window.get(window.len() - length..)?;
    // The last part of a path, such as `/etc/passwd:root`.
    if window.get(..window.len() - length)?.ends_with(b"/") {
        return None;
    }
    let is_constant = text.iter().any(u8::is_ascii_uppercase) && !text.iter().any(u8::is_ascii_lowercase);
    (!text.is_empty() && text.len() <= MOST_NAME).then_some(Name { text, is_constant })
}

/// A value without quotes, where types, variables and calls may stand too.
struct Bare {
    length: usize,
    /// It ends where it was judged to.
    is_whole: bool,
    /// It is called, indexed or a path: code, not a value.
    is_code: bool,
    /// The sign touches it.
    is_close: bool,
    /// It is assigned as variables of the environment are: a name in capitals, no space.
    is_environment: bool,
    /// It is the last thing in its line or field, not one of several arguments.
    is_last: bool,
}

/// What may stand in a value without quotes.
fn is_bare(byte: u8) -> bool {
    const ENDS: &[u8] = b",;\"'`<>&|\\()[]{}";
    !byte.is_ascii_whitespace() && !byte.is_ascii_control() && !ENDS.contains(&byte)
}

impl Bare {
    fn at(bytes: &[u8], start: usize, is_close: bool, is_environment: bool) -> Option<Self> {
        let rest = bytes.get(start..)?;
        let judged = rest.get(..rest.len().min(MOST_JUDGED))?;
        let length = run(judged, 0, is_bare);
        let is_whole = length < MOST_JUDGED;
        let text = judged.get(..length)?;
        // The end of a sentence is not of the value.
        let trailing = text.iter().rev().take_while(|byte| b".:!?".contains(byte)).count();
        let length = length - if is_whole { trailing } else { 0 };
        let is_code =
            matches!(rest.get(length), Some(b'(' | b'[')) || text.windows(2).any(|two| two == b"::");
        let is_last = matches!(rest.get(length), None | Some(b'\r' | b'\n' | b'&' | b'"' | b'\''));
        Some(Self { length, is_whole, is_code, is_close, is_environment, is_last })
    }

    fn is_secret(&self, text: &[u8], promise: Promise) -> bool {
        if is_cloud_secret(text) && matches!(promise, Promise::Token) && !self.is_code {
            return true;
        }
        if self.is_code || is_open(text) {
            return false;
        }
        if !self.is_environment && (is_path(text) || is_constant(text)) {
            return false;
        }
        if !self.is_environment && is_word(text) {
            // A word alone is a password where nothing else can be meant.
            let alone = self.is_close && self.is_last && text.iter().all(u8::is_ascii_lowercase);
            return alone && matches!(promise, Promise::Password) && text.len() >= 6 && !is_placeholder(text);
        }
        match promise {
            Promise::Password | Promise::Passphrase => {
                let least = if self.is_environment { 4 } else { 6 };
                let odd = |byte: &u8| byte.is_ascii_digit() || b"!@#$%^*+=~?".contains(byte);
                text.len() >= least && (self.is_environment || text.iter().any(odd))
            }
            Promise::Token => is_made(text, if self.is_close { 8 } else { 12 }),
        }
    }
}

/// Whether it has the form of a cloud's secret key, which may begin with a slash: forty characters of base64.
fn is_cloud_secret(text: &[u8]) -> bool {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'+');
    text.len() == 40
        && text.iter().all(is_base64)
        && text.iter().any(u8::is_ascii_uppercase)
        && text.iter().any(u8::is_ascii_lowercase)
        && (text.iter().any(u8::is_ascii_digit) || is_mixed(text))
}

/// Names joined by dots: a field of something.
fn is_path(text: &[u8]) -> bool {
    text.contains(&b'.')
        && text.split(|byte| *byte == b'.').all(|name| {
            name.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
                && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        })
}

fn is_secret_quoted(text: &[u8], promise: Promise) -> bool {
    if is_open(text) || is_placeholder(text) {
        return false;
    }
    if is_constant(text) {
        return false;
    }
    let spaces = text.iter().any(u8::is_ascii_whitespace);
    match promise {
        Promise::Passphrase => text.len() >= 4,
        Promise::Password => !spaces && text.len() >= 4,
        Promise::Token => !spaces && is_made(text, 8),
    }
}

/// Whether a value in JSON, known as a whole, is a secret by the name of its field.
pub(super) fn is_secret_field(name: &str, value: &str) -> bool {
    let value = value.as_bytes();
    promise(name.as_bytes()).is_some_and(|promise| is_secret_quoted(value, promise))
}

/// A variable, a place to be filled in, a path; or text in which a mark of ours stands, so that nothing is done
/// twice.
fn is_open(text: &[u8]) -> bool {
    matches!(text.first(), None | Some(b'[' | b'$' | b'{' | b'<' | b'%' | b'*' | b'(' | b'/' | b'~' | b'.'))
        || memchr::memmem::find(text, MARK).is_some()
}

/// `SOME_NAME`, as constants are written.
fn is_constant(text: &[u8]) -> bool {
    text.contains(&b'_')
        && text.first().is_some_and(u8::is_ascii_uppercase)
        && text.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
}

/// Letters and underscores alone: a type, a variable, a word.
fn is_word(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.' | b'?'))
}

/// A word that stands for a value.
fn is_placeholder(text: &[u8]) -> bool {
    const WORDS: [&[u8]; 14] = [
        b"null",
        b"none",
        b"true",
        b"false",
        b"undefined",
        b"string",
        b"password",
        b"secret",
        b"token",
        b"required",
        b"optional",
        b"redacted",
        b"hidden",
        b"text",
    ];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}
