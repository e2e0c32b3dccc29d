//! The table function `generate_series`.
//!
//! The module of rusqlite counts a series with a negative step from its smaller end, and its numbers overflow at the end
//! of the range. Statements therefore pass the arguments through [`SERIES_ARGUMENT`], which converts them.

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::vtab::series;
use rusqlite::{Connection, Error, Result};

pub(crate) const SERIES: &str = "generate_series";
/// `(0, …)` is the start, `(1, …)` the end and `(2, …)` the step for the module; `…` are the arguments as written.
pub(crate) const SERIES_ARGUMENT: &str = "tidegate_series_argument";
/// The number of arguments of the module.
pub(crate) const SERIES_ARGUMENTS: usize = 3;

/// The end of a series without one, as in SQLite's own extension.
const END_DEFAULT: i64 = 0xffff_ffff;
/// The maximum absolute value of an argument: sums of two do not overflow.
const ARGUMENT_MAX: i64 = 1 << 61;

pub(super) fn add_series(connection: &Connection) -> Result<()> {
    series::load_module(connection)?;
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function(SERIES_ARGUMENT, -1, flags, series_argument)
}

fn series_argument(context: &Context<'_>) -> Result<Option<i64>> {
    let mut given = Vec::with_capacity(SERIES_ARGUMENTS);
    for index in 1..context.len() {
        match whole_number(context.get_raw(index))? {
            Some(number) => given.push(number),
            // A series with a NULL has no rows.
            None => return Ok(None),
        }
    }
    let (start, end, step) = match given.as_slice() {
        [start] => (*start, END_DEFAULT, 1),
        [start, end] => (*start, *end, 1),
        [start, end, step] => (*start, *end, if *step == 0 { 1 } else { *step }),
        _ => return Err(user_error("generate_series takes a start, an end and a step; the last two are optional")),
    };
    let converted = match step {
        1.. => [start, end, step],
        // Without rows.
        _ if start < end => [1, 0, 1],
        // The module begins at the last number that is a multiple of steps away from the smaller end.
        _ => [start - (start - end) / -step * -step, start, step],
    };
    let index = usize::try_from(context.get::<i64>(0)?).unwrap_or_default();
    Ok(converted.get(index).copied())
}

fn whole_number(value: ValueRef<'_>) -> Result<Option<i64>> {
    let number = match value {
        ValueRef::Null => return Ok(None),
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) if number.fract() == 0.0 && number.abs() <= ARGUMENT_MAX as f64 => Some(number as i64),
        ValueRef::Text(text) => std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok()),
        ValueRef::Real(_) | ValueRef::Blob(_) => None,
    };
    let in_range = number.filter(|number| (-ARGUMENT_MAX..=ARGUMENT_MAX).contains(number));
    in_range.map(Some).ok_or_else(|| user_error("generate_series takes whole numbers of at most 2305843009213693952"))
}

fn user_error(message: &str) -> Error {
    Error::UserFunctionError(message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(arguments: &str) -> String {
        let connection = Connection::open_in_memory().unwrap();
        add_series(&connection).unwrap();
        let converted = |index| format!("{SERIES_ARGUMENT}({index}, {arguments})");
        let sql = format!(
            "SELECT group_concat(value) FROM generate_series({}, {}, {})",
            converted(0),
            converted(1),
            converted(2)
        );
        let text = connection.query_row(&sql, [], |row| row.get::<_, Option<String>>(0));
        text.map_or_else(|error| error.to_string(), Option::unwrap_or_default)
    }

    #[test]
    fn series_counts_in_both_directions_within_its_ends() {
        for (arguments, expected) in [
            ("1, 3", "1,2,3"),
            ("4294967294", "4294967294,4294967295"),
            ("0, 10, 4", "0,4,8"),
            ("10, 0, -4", "10,6,2"),
            ("0, -3, -1", "0,-1,-2,-3"),
            ("3, 1", ""),
            ("1, 3, -1", ""),
            ("1, 3, 0", "1,2,3"),
            ("1, NULL", ""),
            ("'2', 3.0", "2,3"),
            ("2305843009213693952, 2305843009213693952, 2305843009213693952", "2305843009213693952"),
            (
                "-2305843009213693952, 2305843009213693952, 2305843009213693952",
                "-2305843009213693952,0,2305843009213693952",
            ),
            (
                "2305843009213693952, -2305843009213693952, -2305843009213693952",
                "2305843009213693952,0,-2305843009213693952",
            ),
        ] {
            assert_eq!(series(arguments), expected, "{arguments}");
        }
        for refused in ["1.5, 2", "'a', 2", "1, 9223372036854775807", "-9223372036854775808, 1", "x'00', 1"] {
            assert_eq!(
                series(refused),
                "generate_series takes whole numbers of at most 2305843009213693952",
                "{refused}"
            );
        }
    }
}
