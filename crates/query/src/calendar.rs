//! The proleptic Gregorian calendar for all days that columns can have, which are more than chrono has.

use chrono::{Datelike, NaiveDate};

/// The calendar repeats after so many years and days.
const CYCLE_YEARS: i64 = 400;
const CYCLE_DAYS: i64 = 146_097;

/// The year, month and day of the date that is `days` after 1970-01-01.
pub fn date_from_days(days: i64) -> (i64, u32, u32) {
    let (cycles, day) = (days.div_euclid(CYCLE_DAYS), days.rem_euclid(CYCLE_DAYS));
    // The days of a cycle fit an `i32`, and chrono has them.
    let date = NaiveDate::from_epoch_days(day as i32).unwrap_or_default();
    (cycles * CYCLE_YEARS + i64::from(date.year()), date.month(), date.day())
}

/// The days since 1970-01-01 of a date; `None` if the calendar does not have it.
pub fn days_from_date(year: i64, month: u32, day: u32) -> Option<i64> {
    let (cycles, year) = (year.div_euclid(CYCLE_YEARS), year.rem_euclid(CYCLE_YEARS));
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    Some(cycles * CYCLE_DAYS + i64::from(date.to_epoch_days()))
}

/// Writes the date that is `days` after 1970-01-01 in ISO 8601: years outside of 0 to 9999 have a sign and six digits.
pub fn write_date(days: i64, out: &mut String) {
    let (year, month, day) = date_from_days(days);
    let digits = match year {
        0..=9_999 => 4,
        _ => {
            out.push(if year < 0 { '-' } else { '+' });
            6
        }
    };
    write_digits(year.abs(), digits, out);
    out.push('-');
    write_digits(month.into(), 2, out);
    out.push('-');
    write_digits(day.into(), 2, out);
}

/// Writes a number that is not negative with at least `width` digits.
pub(crate) fn write_digits(number: i64, width: usize, out: &mut String) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    let mut rest = number;
    while rest > 0 || digits.len() - start < width {
        start -= 1;
        // One decimal digit fits a byte.
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend(digits[start..].iter().map(|digit| char::from(*digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(days: i64) -> String {
        let mut out = String::new();
        write_date(days, &mut out);
        out
    }

    #[test]
    fn dates_across_leap_years_and_cycles() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(-1), "1969-12-31");
        assert_eq!(date(19_782), "2024-02-29");
        assert_eq!(date(19_783), "2024-03-01");
        assert_eq!(date(-719_528), "0000-01-01");
        assert_eq!(date(-719_529), "-000001-12-31");
        assert_eq!(date(2_932_896), "9999-12-31");
        assert_eq!(date(2_932_897), "+010000-01-01");
        // The extremes of dates of 32 bits.
        assert_eq!(date(i32::MAX.into()), "+5881580-07-11");
        assert_eq!(date(i32::MIN.into()), "-5877641-06-23");
    }

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-4_000_000_000..4_000_000_000).step_by(9_999_991) {
            let (year, month, day) = date_from_days(days);
            assert_eq!(days_from_date(year, month, day), Some(days), "{year}-{month}-{day}");
        }
        assert_eq!(days_from_date(1900, 2, 29), None);
        assert_eq!(days_from_date(-400_000, 2, 29), Some(-719_469 - 1_000 * CYCLE_DAYS));
        assert_eq!(days_from_date(2024, 13, 1), None);
    }
}
