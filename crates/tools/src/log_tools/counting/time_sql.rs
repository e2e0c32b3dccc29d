//! The time of a source in SQL: bounds of it, and units in which rows are counted.
//!
//! In SQLite, times are texts or numbers. Texts of the same form are in the order of time. SQL compares the
//! form of most of the first rows; rows with another one are scanned.

use tidegate_query::{BoundExpression, ComparisonOperator, Operand, QueryCondition};
use tidegate_sql::{Parameter, SqlDialect};
use tidegate_telemetry::logs::{NANOS_PER_SECOND, TimeRange, format_time};

use super::column_sql::plain;
use crate::source_columns::{FieldKind, NANOS_PER_MICROSECOND};

const MINUTE: i64 = 60 * NANOS_PER_SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A column with times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeSql {
    column: String,
    dialect: SqlDialect,
    form: TimeForm,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TimeForm {
    /// A timestamp of the database.
    Timestamp { has_zone: bool },
    /// `2026-03-01T12:00:00` with a separator, a number of digits behind the seconds, and an end such as `Z`.
    Text { separator: char, digits: u32, end: String },
    /// Numbers since 1970 in this unit.
    Integer { unit: i64, first: i64, last: i64 },
}

impl TimeSql {
    /// A column of timestamps; `None` if it has none.
    pub(super) fn timestamp(dialect: SqlDialect, column: &str, kind: FieldKind) -> Option<Self> {
        let has_zone = match kind {
            FieldKind::Moment => true,
            FieldKind::LocalTime => false,
            _ => return None,
        };
        Some(Self { column: column.to_owned(), dialect, form: TimeForm::Timestamp { has_zone } })
    }

    /// A column of SQLite that has texts such as `text`; `None` if it has another form of time.
    pub(super) fn text(column: &str, text: &str) -> Option<Self> {
        let (date_time, rest) = text.split_at_checked(19)?;
        let separator = date_time.chars().nth(10).filter(|separator| matches!(separator, 'T' | ' '))?;
        let is_digit_place = |index: usize| !matches!(index, 4 | 7 | 10 | 13 | 16);
        let has_digits =
            date_time.bytes().enumerate().all(|(index, byte)| byte.is_ascii_digit() == is_digit_place(index));
        let fraction = rest.strip_prefix('.');
        let after = fraction.unwrap_or(rest);
        let end = after.trim_start_matches(|character: char| character.is_ascii_digit());
        let digits = u32::try_from(after.len() - end.len()).ok()?;
        let has_fraction = fraction.is_some();
        if !has_digits || has_fraction != (digits > 0) || digits > 9 || !["", "Z", "+00:00"].contains(&end) {
            return None;
        }
        let form = TimeForm::Text { separator, digits, end: end.to_owned() };
        Some(Self { column: column.to_owned(), dialect: SqlDialect::Sqlite, form })
    }

    /// A column of SQLite that has numbers such as `number`.
    pub(super) fn integer(column: &str, number: i64) -> Option<Self> {
        // As `parse_time` takes numbers, without those that are no time.
        let (unit, first, last) = match number {
            0..=99_999_999_999 => (NANOS_PER_SECOND, 0, 9_000_000_000),
            100_000_000_000..=99_999_999_999_999 => (1_000_000, 100_000_000_000, 9_000_000_000_000),
            100_000_000_000_000..=99_999_999_999_999_999 => (1_000, 100_000_000_000_000, 9_000_000_000_000_000),
            100_000_000_000_000_000.. => (1, 100_000_000_000_000_000, i64::MAX - 1),
            _ => return None,
        };
        let form = TimeForm::Integer { unit, first, last };
        Some(Self { column: column.to_owned(), dialect: SqlDialect::Sqlite, form })
    }

    /// The rows whose time, if any, has the form of this column.
    pub(super) fn has_form(&self) -> Option<QueryCondition> {
        let name = self.quoted_name();
        match &self.form {
            TimeForm::Timestamp { .. } => None,
            TimeForm::Integer { first, last, .. } => {
                let number = format!("typeof({name}) = 'integer' AND {name} BETWEEN {first} AND {last}");
                Some(plain(format!("{name} IS NULL OR ({number})")))
            }
            TimeForm::Text { separator, digits, end } => {
                let mut fraction = String::new();
                if *digits > 0 {
                    fraction.push('.');
                    (0..*digits).for_each(|_| fraction.push_str("[0-9]"));
                }
                let length = 19 + if *digits > 0 { digits + 1 } else { 0 } + end.len() as u32;
                let mut sql = BoundExpression::default();
                let format = sql.bind(format!("%Y-%m-%d{separator}%H:%M:%S"));
                let rest = sql.bind(fraction + end);
                let second = format!("substr({name}, 1, 19)");
                let parts = [
                    format!("typeof({name}) = 'text' AND length(CAST({name} AS blob)) = {length}"),
                    // SQLite takes February 30 for March 2, and 24:00 for the next day; the scan takes neither for a time.
                    format!("coalesce(strftime({format}, {second}), '') = {second} COLLATE BINARY"),
                    format!("glob({rest}, substr({name}, 20)) AND substr({name}, 1, 4) BETWEEN '1700' AND '2199'"),
                ];
                sql.text = format!("{name} IS NULL OR ({})", parts.join(" AND "));
                Some(QueryCondition::Bound(sql))
            }
        }
    }

    /// The rows with a time in `range`; `None` if SQL cannot compare its ends exactly.
    pub(super) fn is_in(&self, range: TimeRange) -> Option<QueryCondition> {
        let compare = |operator, operand| QueryCondition::compare(&self.column, operator, operand);
        let mut parts = vec![compare(ComparisonOperator::IsNotNull, Operand::None)];
        for (operator, bound) in
            [(ComparisonOperator::GreaterOrEqual, range.start), (ComparisonOperator::Less, range.end)]
        {
            if let Some(bound) = bound {
                parts.push(compare(operator, Operand::One(self.bound(bound)?)));
            }
        }
        Some(QueryCondition::And(parts))
    }

    pub(super) fn is_null(&self) -> QueryCondition {
        QueryCondition::compare(&self.column, ComparisonOperator::IsNull, Operand::None)
    }

    fn quoted_name(&self) -> String {
        self.dialect.quote_identifier(&self.column)
    }

    /// The first value of the column that is not before `time`.
    fn bound(&self, time: i64) -> Option<Parameter> {
        let ceil = |unit: i64| time.checked_add(unit - 1).map(|time| time.div_euclid(unit));
        match &self.form {
            TimeForm::Timestamp { has_zone } => {
                // The embedded engine may have nanoseconds in the column, and compares microseconds.
                if self.dialect.is_embedded() && time % NANOS_PER_MICROSECOND != 0 {
                    return None;
                }
                let text = format_time(ceil(NANOS_PER_MICROSECOND)?.checked_mul(NANOS_PER_MICROSECOND)?);
                Some(Parameter::Text(if *has_zone { text } else { text.trim_end_matches('Z').to_owned() }))
            }
            TimeForm::Integer { unit, .. } => ceil(*unit).map(Parameter::Integer),
            TimeForm::Text { separator, digits, end } => {
                let unit = 10i64.pow(9u32.checked_sub(*digits)?);
                let time = ceil(unit)?.checked_mul(unit)?;
                let whole = format_time(time);
                let (date, rest) = whole.split_at_checked(10)?;
                if !("1700"..="2199").contains(&date.get(..4)?) {
                    return None;
                }
                let mut text = format!("{date}{separator}{}", rest.get(1..9)?);
                if *digits > 0 {
                    let fraction = format!("{:09}", time.rem_euclid(NANOS_PER_SECOND));
                    text.push('.');
                    text.push_str(fraction.get(..*digits as usize)?);
                }
                text.push_str(end);
                Some(Parameter::Text(text))
            }
        }
    }

    /// An expression that is the same for times in the same unit, and different for times in different ones, where no
    /// time is before 1970.
    pub(super) fn unit_key(&self, unit: i64) -> Option<String> {
        let name = self.quoted_name();
        match (&self.form, self.dialect) {
            (TimeForm::Timestamp { .. }, _) if unit < NANOS_PER_MICROSECOND => None,
            (TimeForm::Timestamp { has_zone }, SqlDialect::DataFusion) => {
                let (kind, zone) = if *has_zone { ("TIMESTAMPTZ", "+00") } else { ("TIMESTAMP", "") };
                let step = format!("INTERVAL '{} microseconds'", unit / NANOS_PER_MICROSECOND);
                Some(format!("date_bin({step}, {name}, {kind} '1970-01-01 00:00:00{zone}')"))
            }
            (TimeForm::Timestamp { .. }, _) => {
                let microseconds = format!("CAST(extract(epoch FROM {name}) * 1000000 AS bigint)");
                Some(format!("{microseconds} / {}", unit / NANOS_PER_MICROSECOND))
            }
            (TimeForm::Integer { unit: own, .. }, _) => Some(match unit / own {
                0 | 1 => name,
                factor => format!("{name} / {factor}"),
            }),
            (TimeForm::Text { digits, .. }, _) => Some(match unit {
                DAY => format!("substr({name}, 1, 10)"),
                HOUR => format!("substr({name}, 1, 13)"),
                MINUTE => format!("substr({name}, 1, 16)"),
                NANOS_PER_SECOND => format!("substr({name}, 1, 19)"),
                // A power of ten below a second.
                unit => match 9u32.checked_sub(unit.checked_ilog10()?)? {
                    kept if kept < *digits => format!("substr({name}, 1, {})", 20 + kept),
                    _ => name,
                },
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_have_the_form_of_the_column_and_are_never_too_early() {
        let time = 1_772_368_200_500_000_001;
        let bound = |form: &str| format!("{:?}", TimeSql::text("t", form).unwrap().bound(time).as_slice());
        assert_eq!(bound("2026-01-01 00:00:00"), r#"[Text("2026-03-01 12:30:01")]"#);
        assert_eq!(bound("2026-01-01T00:00:00.123Z"), r#"[Text("2026-03-01T12:30:00.501Z")]"#);
        assert_eq!(bound("2026-01-01T00:00:00.123456789+00:00"), r#"[Text("2026-03-01T12:30:00.500000001+00:00")]"#);
    }

    #[test]
    fn other_texts_are_no_form() {
        for text in ["2026-01-01", "2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00.", "12:00", "2026-01-01T00:00:0xZ"]
        {
            assert_eq!(TimeSql::text("t", text), None, "{text}");
        }
    }
}
