//! Times as records write them.

/// Milliseconds since 1970 of a time such as `2026-02-01T10:00:03.250Z` or `2026-02-01T12:00:03+02:00`.
///
/// Compared as text, `10:00:03.250Z` would stand before `10:00:03Z`.
pub(crate) fn millis(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (date, time) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (clock, shift) = match time.find(['Z', 'z', '+', '-']).and_then(|at| time.split_at_checked(at)) {
        Some((clock, zone)) => (clock, shift_of(zone)?),
        None => (time, 0),
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.splitn(3, ':').map(number);
    let (hour, minute) = (clock.next()??, clock.next()??);
    let second = clock.next().unwrap_or(Some(0))?;
    if hour > 23 || minute > 59 || second > 60 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - shift;
    u64::try_from(seconds * 1_000 + number(&thousandths)?).ok()
}

fn number(digits: &str) -> Option<i64> {
    let plain = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// Seconds that a zone such as `+02:00` is ahead of Greenwich.
fn shift_of(zone: &str) -> Option<i64> {
    let (ahead, zone) = match zone.strip_prefix('-') {
        Some(zone) => (-1, zone),
        None => (1, zone.strip_prefix('+').unwrap_or_default()),
    };
    if zone.is_empty() {
        return Some(0);
    }
    let (hours, minutes) = zone.split_once(':').or_else(|| zone.split_at_checked(2))?;
    Some(ahead * (number(hours)? * 3_600 + if minutes.is_empty() { 0 } else { number(minutes)? * 60 }))
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, counted in years that begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_milliseconds_since_1970() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00.5Z", Some(951_825_600_500)),
            ("2026-02-01T10:00:03.250Z", Some(1_769_940_003_250)),
            ("2026-02-01T10:00:03.250987Z", Some(1_769_940_003_250)),
            ("2026-02-01T12:00:03+02:00", Some(1_769_940_003_000)),
            ("2026-02-01T08:30:03-0130", Some(1_769_940_003_000)),
            ("2026-02-01T10:00", Some(1_769_940_000_000)),
            ("", None),
            ("2026-02-01", None),
            ("2026-13-01T10:00:03Z", None),
            ("2026-02-01T25:00:03Z", None),
            ("-026-02-01T10:00:03Z", None),
            ("1969-12-31T23:59:59Z", None),
            ("2026-02-01T10:00:03.xZ", None),
            ("2026-02-01T10:00:\u{1f600}Z", None),
        ] {
            assert_eq!(millis(text.as_bytes()), expected, "{text}");
        }
    }
}
