//! Passwords in URLs: `scheme://user:password@host`.

use super::MARK;
use super::scan::run;
use super::tokens;

/// What stands between `//` and the path is no longer.
const MOST_AUTHORITY: usize = 1024;

/// The password of the URL whose scheme ends at this colon.
pub(super) fn at(bytes: &[u8], colon: usize) -> Option<(usize, usize)> {
    let start = colon + 3;
    if !bytes.get(colon..)?.starts_with(b"://") {
        return None;
    }
    let rest = bytes.get(start..)?;
    let rest = rest.get(..rest.len().min(MOST_AUTHORITY))?;
    let length = run(rest, 0, |byte| {
        !byte.is_ascii_whitespace()
            && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\' | b'|')
    });
    let authority = rest.get(..length)?;
    let at_sign = memchr::memrchr(b'@', authority)?;
    let credentials = authority.get(..at_sign)?;
    if memchr::memmem::find(credentials, MARK).is_some() {
        return None;
    }
    let Some(user) = memchr::memchr(b':', credentials) else {
        // A token alone in the place of a name.
        let is_known = tokens::at(bytes, start).is_some();
        return (!is_known && is_token(credentials)).then_some((start, start + at_sign));
    };
    let password = authority.get(user + 1..at_sign)?;
    // Nothing, a variable or a place to be filled in.
    let is_open = matches!(password.first(), None | Some(b'$' | b'{' | b'*'));
    (!is_open).then_some((start + user + 1, start + at_sign))
}

/// Whether a name is long and made of letters and digits, as nobody's name is.
fn is_token(name: &[u8]) -> bool {
    const LEAST: usize = 20;
    let digits = name.iter().filter(|byte| byte.is_ascii_digit()).count();
    let plain = name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    name.len() >= LEAST && plain && digits >= 3
}
