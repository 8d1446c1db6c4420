//! How long a provider asks to wait.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::http_date;

/// What the headers of an answer ask for: `retry-after-ms`, or `Retry-After` in seconds or as a date.
///
/// A date is measured from the answer's own date, so that a clock that goes wrong does not matter; without one,
/// from this machine's.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|value| value.parse().ok()) {
        return Some(Duration::from_millis(milliseconds));
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Some(wait) = seconds(value) {
        return Some(wait);
    }
    let until = http_date::seconds(value)?;
    let from = text(DATE.as_str())
        .and_then(http_date::seconds)
        .or_else(|| Some(now.duration_since(UNIX_EPOCH).ok()?.as_secs()))?;
    Some(Duration::from_secs(until.saturating_sub(from)))
}

/// Seconds, with a fraction where a server writes one; a trailing `s` as Google writes it.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let text = text.strip_suffix('s').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    // More seconds than a number holds are for ever.
    let whole = whole.parse().unwrap_or(u64::MAX);
    let milliseconds = fraction.bytes().chain([b'0'; 3]).take(3);
    let milliseconds = milliseconds.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    Some(Duration::from_secs(whole).saturating_add(Duration::from_millis(milliseconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(&'static str, &'static str)]) -> Option<Duration> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        retry_after(&map, UNIX_EPOCH + Duration::from_secs(784_111_700))
    }

    #[test]
    fn seconds_dates_and_milliseconds_are_understood() {
        assert_eq!(asked(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(asked(&[("retry-after", " 0 ")]), Some(Duration::ZERO));
        assert_eq!(asked(&[("retry-after", "1.25")]), Some(Duration::from_millis(1250)));
        let date = ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(asked(&[date]), Some(Duration::from_secs(77)));
        let own = ("date", "Sun, 06 Nov 1994 08:49:30 GMT");
        assert_eq!(asked(&[date, own]), Some(Duration::from_secs(7)));
        let later = ("date", "Sun, 06 Nov 1994 09:49:30 GMT");
        assert_eq!(asked(&[date, later]), Some(Duration::ZERO));
        assert_eq!(
            asked(&[("retry-after-ms", "1500"), ("retry-after", "9")]),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(asked(&[("retry-after-ms", "soon"), ("retry-after", "9")]), Some(Duration::from_secs(9)));
        let ever = asked(&[("retry-after", "99999999999999999999999")]).unwrap();
        assert_eq!(ever.as_secs(), u64::MAX);
        for nothing in ["", "-1", "soon", "1e3", "NaN", "inf", "1.", ".5", "+1"] {
            assert_eq!(asked(&[("retry-after", nothing)]), None, "{nothing}");
        }
        assert_eq!(asked(&[]), None);
    }
}
