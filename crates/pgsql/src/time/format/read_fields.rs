//! The fields that `to_date` and `to_timestamp` have read, put together.

use datafusion::common::{Result, exec_err};

use crate::time::calendar::{
    self, DateTimeParts, JULIAN_EPOCH, SECOND, date_from_days, days, field_out_of_range, iso_year_start,
};

/// The fields that were read. A missing month or day is the first.
#[derive(Default)]
pub(super) struct ParsedFields {
    year: Option<i64>,
    year_digits: u32,
    /// Whether years and weeks are those of ISO.
    is_iso: Option<bool>,
    month: Option<i64>,
    hour: Option<i64>,
    pub(super) is_before_christ: bool,
    pub(super) day: Option<i64>,
    pub(super) day_of_year: Option<i64>,
    /// From 1 for Sunday; 0 where it was not read.
    pub(super) weekday: i64,
    pub(super) week: Option<i64>,
    pub(super) week_of_month: Option<i64>,
    pub(super) century: Option<i64>,
    pub(super) julian: Option<i64>,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) micros: i64,
    /// The digits that `FF1` to `FF6` have.
    pub(super) fraction_digits: Option<u32>,
    pub(super) seconds_of_day: Option<i64>,
    pub(super) is_12_hours: bool,
    pub(super) is_afternoon: Option<bool>,
    /// Whether it is west of UTC, hours and minutes.
    pub(super) zone: Option<(bool, i64, i64)>,
}

fn set_once(field: &mut Option<i64>, value: i64, name: &str) -> Result<()> {
    match field.replace(value) {
        Some(before) if before != value => exec_err!("conflicting values for the {name}: {before} and {value}"),
        _ => Ok(()),
    }
}

impl ParsedFields {
    pub(super) fn set_hour(&mut self, hour: i64) -> Result<()> {
        set_once(&mut self.hour, hour, "hour")
    }

    pub(super) fn set_month(&mut self, month: i64) -> Result<()> {
        set_once(&mut self.month, month, "month")
    }

    pub(super) fn set_year(&mut self, year: i64, digits: u32) -> Result<()> {
        self.year_digits = digits;
        set_once(&mut self.year, year, "year")
    }

    /// Records whether a year, a week or a day belongs to the ISO calendar. The two calendars cannot be mixed.
    pub(super) fn set_iso(&mut self, is_iso: bool) -> Result<()> {
        if self.is_iso.replace(is_iso).is_some_and(|before| before != is_iso) {
            return exec_err!("invalid combination of date conventions: do not mix Gregorian and ISO week patterns");
        }
        Ok(())
    }

    /// Returns the instant. The default zone is UTC.
    pub(super) fn instant(&self, text: &str) -> Result<i64> {
        let time = self.time(text)?;
        let local = calendar::timestamp(self.day_since_1970(text)?, time)?;
        let Some((is_west, hours, minutes)) = self.zone else { return Ok(local) };
        if hours > 15 || minutes > 59 {
            return Err(field_out_of_range(text));
        }
        let offset = (hours * 3_600 + minutes * 60) * SECOND;
        calendar::checked_timestamp(if is_west { local + offset } else { local - offset })
    }

    fn time(&self, text: &str) -> Result<i64> {
        let seconds = self.seconds_of_day.unwrap_or(0);
        let pick = |read: i64, default: i64| if read != 0 { read } else { default };
        let mut hour = pick(self.hour.unwrap_or(0), seconds / 3_600);
        let (minute, second) = (pick(self.minute, seconds / 60 % 60), pick(self.second, seconds % 60));
        if self.is_12_hours || self.is_afternoon.is_some() {
            if !(1..=12).contains(&hour) {
                return exec_err!("hour \"{hour}\" is invalid for the 12-hour clock");
            }
            hour = hour % 12 + if self.is_afternoon == Some(true) { 12 } else { 0 };
        }
        if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
            return Err(field_out_of_range(text));
        }
        if !(0..SECOND).contains(&self.micros) {
            return Err(field_out_of_range(text));
        }
        Ok(DateTimeParts { hour, minute, second, micros: self.micros, ..DateTimeParts::default() }.time())
    }

    /// Returns the year; 0 if none was read.
    fn calendar_year(&self) -> i64 {
        match (self.year.filter(|year| *year != 0), self.century.filter(|century| *century != 0)) {
            (Some(year), Some(century)) if self.year_digits <= 2 => {
                let century = if self.is_before_christ { -century } else { century };
                let short = year % 100;
                match (century >= 0, short) {
                    (true, 0) => century * 100,
                    (true, _) => (century - 1) * 100 + short,
                    (false, 0) => (century + 1) * 100 - 99 + short,
                    (false, _) => (century + 1) * 100 - short + 1,
                }
            }
            (Some(year), _) => {
                let year = if self.is_before_christ { -year } else { year };
                if year < 0 { year + 1 } else { year }
            }
            (None, Some(century)) => {
                let century = if self.is_before_christ { -century } else { century };
                if century >= 0 { (century - 1) * 100 + 1 } else { century * 100 + 1 }
            }
            (None, None) => 0,
        }
    }

    fn day_since_1970(&self, text: &str) -> Result<i64> {
        let mut year = self.calendar_year();
        let (mut month, mut day) = (1, 1);
        if let Some(julian) = self.julian.filter(|julian| *julian != 0) {
            (year, month, day) = date_from_days(julian - JULIAN_EPOCH);
        }
        let is_iso = self.is_iso == Some(true);
        let mut day_of_year = self.day_of_year.filter(|day| *day != 0);
        if let Some(week) = self.week.filter(|week| *week != 0) {
            if is_iso {
                let monday = iso_year_start(year) + (week - 1) * 7;
                let weekday = if self.weekday == 0 { 0 } else { (self.weekday + 5) % 7 };
                (year, month, day) = date_from_days(monday + weekday);
            } else {
                day_of_year = Some((week - 1) * 7 + 1);
            }
        }
        if let Some(week) = self.week_of_month.filter(|week| *week != 0) {
            day = (week - 1) * 7 + 1;
        }
        if let Some(read) = self.day.filter(|day| *day != 0) {
            day = read;
        }
        if let Some(read) = self.month.filter(|month| *month != 0) {
            month = read;
        }
        if let Some(day_of_year) = day_of_year
            && (month <= 1 || day <= 1)
        {
            if year == 0 && !self.is_before_christ {
                return exec_err!("cannot calculate day of year without year information");
            }
            if is_iso {
                (year, month, day) = date_from_days(iso_year_start(year) + day_of_year - 1);
            } else {
                let length = if calendar::is_date(year, 2, 29) { 366 } else { 365 };
                if !(1..=length).contains(&day_of_year) {
                    return Err(field_out_of_range(text));
                }
                let (_, of_month, of_day) = date_from_days(days(year, 1, 1) + day_of_year - 1);
                month = if month <= 1 { of_month } else { month };
                day = if day <= 1 { of_day } else { day };
            }
        }
        if year.abs() > 6_000_000 || !calendar::is_date(year, month, day) {
            return Err(field_out_of_range(text));
        }
        Ok(days(year, month, day))
    }
}
