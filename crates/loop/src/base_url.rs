//! Which addresses a model may be served at: https with a host, or http on this machine; no credentials.
//!
//! The reading is that of Go's `net/url`, as the reference judges by it and a model's address is part of every
//! fingerprint: what is an address there is one here.

use std::net::Ipv6Addr;

/// Whether a model may be served at this address.
pub(crate) fn is_allowed(url: &str) -> bool {
    let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
    if url.bytes().any(|byte| byte.is_ascii_control()) || !has_valid_escapes(fragment) {
        return false;
    }
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let secure = scheme.eq_ignore_ascii_case("https");
    if !secure && !scheme.eq_ignore_ascii_case("http") {
        return false;
    }
    // A query may hold anything.
    let rest = rest.split('?').next().unwrap_or_default();
    let Some(rest) = rest.strip_prefix("//") else { return false };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if authority.is_empty() || authority.contains('@') || !has_valid_escapes(path) {
        return false;
    }
    let Some(host) = host_of(authority) else { return false };
    secure || ["localhost", "127.0.0.1", "::1"].iter().any(|local| host.eq_ignore_ascii_case(local))
}

/// The host without its port and brackets, if the authority is well-formed.
fn host_of(authority: &str) -> Option<&str> {
    if authority.starts_with('[') {
        let (host, port) = authority.strip_prefix('[')?.rsplit_once(']')?;
        let address = host.split_once("%25").map_or(host, |(address, _zone)| address);
        return (address.parse::<Ipv6Addr>().is_ok() && is_port(port)).then_some(host);
    }
    let (host, port) = authority.rfind(':').map_or((authority, ""), |at| authority.split_at(at));
    (is_port(port) && has_host_characters(authority)).then_some(host)
}

/// Nothing, or a colon and digits, of which there may be none.
fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Letters, digits, some marks, anything beyond ASCII; escapes only for what is beyond ASCII and for the percent
/// sign.
fn has_host_characters(host: &str) -> bool {
    let marks_hold = host.bytes().all(|byte| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte)
    });
    let escapes_hold = host.split('%').skip(1).all(|after| {
        after.starts_with("25")
            || after.bytes().next().is_some_and(|digit| !digit.is_ascii_digit() || digit >= b'8')
    });
    marks_hold && escapes_hold && has_valid_escapes(host)
}

/// Every percent sign stands before two hex digits.
fn has_valid_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let mut digits = after.bytes();
        matches!((digits.next(), digits.next()), (Some(one), Some(two))
            if one.is_ascii_hexdigit() && two.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_https_or_on_this_machine() {
        for good in [
            "https://x.com/v1",
            "HTTPS://x.com",
            "https://h/p?q#f",
            "https://h/a b",
            "https://h?q=%zz",
            "https://h:/p",
            "https://[2001:db8::1]:8443/v1",
            "https://[fe80::1%25en0]/",
            "https://b\u{fc}cher.example",
            "https://b%C3%BCcher.example",
            "http://localhost:8080",
            "http://LocalHost",
            "http://127.0.0.1/",
            "http://[::1]:1/",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in [
            "",
            "x.com",
            "//x.com",
            "http://x.com",
            "ftp://x.com",
            "https:x.com",
            "https:/x.com",
            "https://",
            "https:///path",
            "https://?q",
            "https://x.com/%zz",
            "https://x.com#%z",
            "https://x.com/\n",
            "https://x.com\u{7f}",
            "https://a b",
            "https://x%41.com",
            "https://[::1",
            "https://[x]",
            "https://[::1]x",
            "https://x.com:p",
            "https://u@x.com",
            "https://u:p@x.com",
            "http://u@localhost",
            "http://127.0.0.2",
            "http://localhost.evil.com",
            "http://::1",
            "http://[::1%25lo]/",
            "mailto:a@b",
            "://",
        ] {
            assert!(!is_allowed(bad), "{bad}");
        }
    }
}
