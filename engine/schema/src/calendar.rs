//! Dates and times as plans write them: `2024-06-30` and `2024-06-30 12:00:00.5`, in UTC and the Gregorian calendar.

use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{Date, PrimitiveDateTime};

/// Number of microseconds in a day.
pub const DAY_US: i64 = 86_400_000_000;

/// The Julian day of 1970-01-01.
const EPOCH: i32 = 2_440_588;

const DATE: &[BorrowedFormatItem<'_>] = format_description!(version = 2, "[year]-[month]-[day]");
const INSTANT: &[BorrowedFormatItem<'_>] = format_description!(
    version = 2,
    "[year]-[month]-[day][first [ ][T]][hour]:[minute]:[second][optional [.[subsecond]]]"
);

/// Year (1 to 9999), month and day of a number of days since 1970-01-01.
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let date = Date::from_julian_day(days as i32 + EPOCH).expect("Plan::problems rejects other years");
    (date.year().into(), u8::from(date.month()).into(), date.day().into())
}

/// Days from 1970-01-01 to `YYYY-MM-DD`; `None` for other text, and outside the years 1 to 9999.
pub fn parse_day(text: &str) -> Option<i64> {
    let date = Date::parse(text, DATE).ok().filter(|date| date.year() >= 1)?;
    Some((date.to_julian_day() - EPOCH).into())
}

/// Microseconds from 1970-01-01 to `YYYY-MM-DD`, optionally with ` HH:MM:SS` and up to six fractional digits.
pub fn parse_instant(text: &str) -> Option<i64> {
    let at = PrimitiveDateTime::parse(text, INSTANT).ok().filter(|at| at.year() >= 1);
    let micros = at.map(|at| at.assume_utc().unix_timestamp_nanos()).filter(|nanos| nanos % 1000 == 0);
    micros.map(|nanos| (nanos / 1000) as i64).or_else(|| Some(parse_day(text)? * DAY_US))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_inverts_civil_from_days() {
        for (text, number) in [
            ("1970-01-01", 0),
            ("2000-03-01", 11_017),
            ("1969-12-31", -1),
            ("0001-01-01", -719_162),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(parse_day(text), Some(number), "{text}");
        }
        for days in (-719_162..2_932_896).step_by(17) {
            let (year, month, of_month) = civil_from_days(days);
            assert_eq!(parse_day(&format!("{year:04}-{month:02}-{of_month:02}")), Some(days));
        }
    }

    #[test]
    fn invalid_dates_and_times_are_rejected() {
        for text in
            ["2023-02-29", "2024-13-01", "2024-00-10", "0000-01-01", "2024-1-01", "2024-01-01-", "x", ""]
        {
            assert_eq!(parse_day(text), None, "{text}");
        }
        for text in
            ["2024-01-01 24:00:00", "2024-01-01 10:00", "2024-01-01 10:00:00.", "2024-01-01 10:00:00.1234567"]
        {
            assert_eq!(parse_instant(text), None, "{text}");
        }
    }

    #[test]
    fn instants_have_a_fraction() {
        assert_eq!(parse_instant("1970-01-02"), Some(DAY_US));
        assert_eq!(parse_instant("1970-01-01 00:00:01.5"), Some(1_500_000));
        assert_eq!(parse_instant("1970-01-01T23:59:59.000001"), Some(DAY_US - 999_999));
    }
}
