//! Points in time as people and machines read them, without a table of time zones.

use std::time::{Duration, SystemTime};

/// A point in time in UTC, as in `2026-01-05T10:00:00Z`.
pub(crate) fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// How long ago a point in time was, in one unit; the day in UTC where it was more than four weeks ago.
pub(crate) fn ago(time: SystemTime, now: SystemTime) -> String {
    // A clock that was set back leaves times in the future; they are now, as far as anybody can tell.
    let passed = now.duration_since(time).unwrap_or(Duration::ZERO).as_secs();
    match passed {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", passed / 60),
        3_600..86_400 => format!("{} h ago", passed / 3_600),
        86_400..2_419_200 => format!("{} d ago", passed / 86_400),
        _ => utc(time).chars().take(10).collect(),
    }
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar. The year is counted from
/// March, so that the day that some years have more is its last.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // From 0000-03-01.
    let days = days + 719_468;
    let (era, of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn days_have_their_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_767_607_445, "2026-01-05T10:04:05Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(at(seconds)), expected);
        }
    }

    #[test]
    fn ages_are_told_in_one_unit() {
        let now = at(1_767_607_445);
        for (passed, expected) in [
            (0, "just now"),
            (59, "just now"),
            (61, "1 min ago"),
            (7_300, "2 h ago"),
            (86_400, "1 d ago"),
            (27 * 86_400, "27 d ago"),
            (28 * 86_400, "2025-12-08"),
        ] {
            assert_eq!(ago(now - Duration::from_secs(passed), now), expected);
        }
        assert_eq!(ago(now + Duration::from_secs(500), now), "just now");
    }
}
