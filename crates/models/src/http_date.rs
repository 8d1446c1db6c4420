//! The dates of HTTP (RFC 9110, section 5.6.7), as seconds since 1970.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, and the two older forms `Sunday, 06-Nov-94 08:49:37 GMT` and
/// `Sun Nov  6 08:49:37 1994`. `None` for anything else, and for dates before 1970.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let (day, month, year, time) = match text.split_once(',') {
        Some((_, rest)) => {
            let rest = rest.trim().strip_suffix("GMT")?.trim();
            let (date, time) = rest.rsplit_once(' ')?;
            let mut parts = date.split([' ', '-']);
            let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
            (day, month, full_year(year)?, time)
        }
        None => {
            let mut parts = text.split_ascii_whitespace().skip(1);
            let (month, day, time, year) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            (day, month, full_year(year)?, time)
        }
    };
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let day = number(day).filter(|day| (1..=31).contains(day))?;
    let mut clock = time.split(':').map(number);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    // A leap second is one.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = days_since_epoch(year, month, day)?;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Two digits are of 1970 to 2069.
fn full_year(text: &str) -> Option<u64> {
    let year = number(text)?;
    match text.len() {
        2 if year < 70 => Some(2000 + year),
        2 => Some(1900 + year),
        4 => Some(year),
        _ => None,
    }
}

/// At most four digits.
fn number(text: &str) -> Option<u64> {
    let digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Days from 1970-01-01 in the Gregorian calendar.
fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 {
        return None;
    }
    // Years begin in March, so that the day of February comes last.
    let year = if month <= 2 { year - 1 } else { year };
    let days_before_month = (153 * ((month + 9) % 12) + 2) / 5;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + days_before_month + day - 1;
    days.checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_read_and_nothing_else() {
        let moment = 784_111_777;
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(moment));
        assert_eq!(seconds("Sunday, 06-Nov-94 08:49:37 GMT"), Some(moment));
        assert_eq!(seconds("Sun Nov  6 08:49:37 1994"), Some(moment));
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Tue, 29 Feb 2028 23:59:59 GMT"), Some(1_835_481_599));
        assert_eq!(seconds("Wed, 21 Oct 2015 07:28:00 GMT"), Some(1_445_412_480));
        for bad in [
            "",
            "GMT",
            ",",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1969 08:49:37 GMT",
            "Sun, 06 Nov 99999 08:49:37 GMT",
            "Sun, 06 Nov \u{661}994 08:49:37 GMT",
        ] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
