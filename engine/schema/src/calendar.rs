//! Dates and times as plans write them: `2024-06-30` and `2024-06-30 12:00:00.5`, in UTC and the Gregorian calendar.

/// Microseconds of a day.
pub const DAY_US: i64 = 86_400_000_000;

/// Days from 1970-01-01 to a date (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2013).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01; the inverse, by the same author.
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let years = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (years + era * 400 + i64::from(month <= 2), month as u32, day as u32)
}

/// Days since 1970-01-01 of `YYYY-MM-DD`; `None` where it is no day from the year 1 to 9999.
pub fn day(text: &str) -> Option<i64> {
    let [year, month, day] = numbers(text, '-', [4, 2, 2])?;
    let days = days_from_civil(year, month, day);
    let is_one = year >= 1 && civil_from_days(days) == (year, month as u32, day as u32);
    is_one.then_some(days)
}

/// Microseconds since 1970-01-01 of `YYYY-MM-DD`, alone or with ` HH:MM:SS` and up to six digits of a fraction.
pub fn instant(text: &str) -> Option<i64> {
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 59 || fraction.len() > 6 || fraction.is_empty() {
        return None;
    }
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    Some(day(date)? * DAY_US + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros)
}

/// Three numbers of so many digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(between);
    let mut next = |digits: usize| {
        let part = parts.next()?;
        let is_one = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        is_one.then(|| part.parse().ok()).flatten()
    };
    let found = [next(digits[0])?, next(digits[1])?, next(digits[2])?];
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_each_others_inverse() {
        for (text, number) in [
            ("1970-01-01", 0),
            ("2000-03-01", 11_017),
            ("1969-12-31", -1),
            ("0001-01-01", -719_162),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(day(text), Some(number), "{text}");
        }
        for days in (-719_162..2_932_896).step_by(17) {
            let (year, month, of_month) = civil_from_days(days);
            assert_eq!(day(&format!("{year:04}-{month:02}-{of_month:02}")), Some(days));
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in
            ["2023-02-29", "2024-13-01", "2024-00-10", "0000-01-01", "2024-1-01", "2024-01-01-", "x", ""]
        {
            assert_eq!(day(text), None, "{text}");
        }
        for text in
            ["2024-01-01 24:00:00", "2024-01-01 10:00", "2024-01-01 10:00:00.", "2024-01-01 10:00:00.1234567"]
        {
            assert_eq!(instant(text), None, "{text}");
        }
    }

    #[test]
    fn instants_have_a_fraction() {
        assert_eq!(instant("1970-01-02"), Some(DAY_US));
        assert_eq!(instant("1970-01-01 00:00:01.5"), Some(1_500_000));
        assert_eq!(instant("1970-01-01T23:59:59.000001"), Some(DAY_US - 999_999));
    }
}
