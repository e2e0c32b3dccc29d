//! A table that takes rows, as its file describes it, its columns, from their declared types, and Arrow values as SQLite stores
//! them.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, PrimitiveArray,
    StringArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Field, Float64Type, Int64Type, TimeUnit};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{ExtensionType, TargetColumn, with_type_name};

use super::write::write_error;
use crate::tables::{MAIN_SCHEMA, SqliteTable, TableKind, has_key_index, list_all_tables, quote_identifier};

const COLUMNS_SQL: &str = "SELECT name, type, \"notnull\", dflt_value IS NOT NULL, pk FROM pragma_table_xinfo(?1, ?2) \
                           WHERE hidden = 0";

/// A table that takes rows.
#[derive(Debug)]
pub(super) struct TargetTable {
    /// The name for SQL.
    pub(super) sql_name: String,
    pub(super) columns: Vec<TargetColumn<ValueForm>>,
}

/// A column as its file declares it.
struct DeclaredColumn {
    name: String,
    declared_type: String,
    is_not_null: bool,
    has_default: bool,
    is_key: bool,
}

impl TargetTable {
    /// The table `table`, which is declared as `name`.
    pub(super) fn look_up(connection: &Connection, name: &str, table: &str, database: &str) -> Result<Self, Error> {
        let failed = |error| write_error(error, database);
        let tables = list_all_tables(connection).map_err(failed)?;
        let is_named = |found: &&SqliteTable| found.schema == MAIN_SCHEMA && found.name.eq_ignore_ascii_case(table);
        let Some(found) = tables.iter().find(is_named) else {
            return Err(missing_table_error(name, database));
        };
        let kind = match found.kind {
            TableKind::Table => None,
            TableKind::View => Some("a view"),
            TableKind::Virtual => Some("a virtual table"),
        };
        if let Some(kind) = kind {
            let message = format!("the table {name:?} of the database {database:?} takes no rows: it is {kind}");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let columns = load_columns(connection, found).map_err(failed)?;
        let sql_name = format!("{}.{}", quote_identifier(MAIN_SCHEMA), quote_identifier(&found.name));
        Ok(Self { sql_name, columns })
    }
}

pub(super) fn missing_table_error(name: &str, database: &str) -> Error {
    let message = format!("the table {name:?} is declared, but the database {database:?} has none");
    Error::new(ErrorKind::NotFound, message).with_hint("The owner of the node corrects the name.")
}

fn load_columns(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<Vec<TargetColumn<ValueForm>>> {
    let mut statement = connection.prepare(COLUMNS_SQL)?;
    let declared = statement.query_map([&table.name, &table.schema], |row| {
        Ok(DeclaredColumn {
            name: row.get(0)?,
            declared_type: row.get(1)?,
            is_not_null: row.get(2)?,
            has_default: row.get(3)?,
            is_key: row.get::<_, i64>(4)? > 0,
        })
    })?;
    let declared = declared.collect::<rusqlite::Result<Vec<_>>>()?;
    // A primary key without an index is the rowid itself, which SQLite chooses for null.
    let has_rowid_key = !table.is_without_rowid && !has_key_index(connection, table)?;
    let columns = declared.into_iter().map(|column| {
        let is_rowid = column.is_key && has_rowid_key;
        // In other tables, SQLite allows null in a primary key, because of an old bug.
        let is_strict_key = column.is_key && (table.is_without_rowid || table.is_strict);
        let takes_nulls = is_rowid || !(column.is_not_null || is_strict_key);
        target_column(&column.name, &column.declared_type, table.is_strict, column.has_default, takes_nulls)
    });
    Ok(columns.collect())
}

/// The maximum number of digits of a decimal.
const DECIMAL_DIGITS: u8 = 38;
/// The digits after the point of a decimal without a declared precision; SQLite stores no more exactly.
const DECIMAL_SCALE: i8 = 15;

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueForm {
    Integer,
    Boolean,
    Real,
    Text,
    /// Text in a column that converts numbers.
    TextNotNumber,
    Json,
    Blob,
    Decimal,
    Date,
    Time,
    Timestamp {
        is_utc: bool,
    },
}

/// The column `name`, declared with this type, as a target of rows.
fn target_column(
    name: &str,
    declared_type: &str,
    is_strict: bool,
    has_default: bool,
    takes_nulls: bool,
) -> TargetColumn<ValueForm> {
    let (data_type, form) = value_form(declared_type, is_strict);
    let mut field = Field::new(name, data_type, takes_nulls || has_default);
    if form == ValueForm::Json {
        field = ExtensionType::Json.annotate(field);
    }
    if !declared_type.is_empty() {
        field = with_type_name(field, declared_type);
    }
    TargetColumn { field, form, has_default, takes_nulls }
}

/// The type of a body and the form of a column. In STRICT tables, types are exact; in others, the rules of SQLite about
/// affinity come first, in their order.
fn value_form(declared: &str, is_strict: bool) -> (DataType, ValueForm) {
    let declared = declared.to_uppercase();
    let has = |part: &str| declared.contains(part);
    let microseconds = TimeUnit::Microsecond;
    match () {
        () if has("INT") => (DataType::Int64, ValueForm::Integer),
        () if has("CHAR") || has("CLOB") || has("TEXT") || declared.is_empty() => (DataType::Utf8, ValueForm::Text),
        () if has("BLOB") => (DataType::Binary, ValueForm::Blob),
        () if has("REAL") || has("FLOA") || has("DOUB") => (DataType::Float64, ValueForm::Real),
        // The only type of a STRICT table that is left is ANY, which keeps text.
        () if is_strict => (DataType::Utf8, ValueForm::Text),
        () if declared.starts_with("BOOL") => (DataType::Boolean, ValueForm::Boolean),
        () if declared == "DATE" => (DataType::Date32, ValueForm::Date),
        () if declared == "TIME" => (DataType::Time64(microseconds), ValueForm::Time),
        () if declared == "DATETIME" || declared.starts_with("TIMESTAMP") => {
            let is_utc = declared.starts_with("TIMESTAMPTZ") || has("WITH TIME ZONE");
            let zone = is_utc.then(|| "UTC".into());
            (DataType::Timestamp(microseconds, zone), ValueForm::Timestamp { is_utc })
        }
        () if declared.starts_with("DECIMAL") || declared.starts_with("NUMERIC") => {
            let (precision, scale) = decimal_bounds(&declared).unwrap_or((DECIMAL_DIGITS, DECIMAL_SCALE));
            (DataType::Decimal128(precision, scale), ValueForm::Decimal)
        }
        () if declared == "JSON" => (DataType::Utf8, ValueForm::Json),
        () => (DataType::Utf8, ValueForm::TextNotNumber),
    }
}

/// The precision and the scale of `DECIMAL(10, 2)`.
fn decimal_bounds(declared: &str) -> Option<(u8, i8)> {
    let (_, bounds) = declared.split_once('(')?;
    let (bounds, _) = bounds.split_once(')')?;
    let (precision, scale) = match bounds.split_once(',') {
        Some((precision, scale)) => (precision.trim().parse().ok()?, scale.trim().parse().ok()?),
        None => (bounds.trim().parse().ok()?, 0_i8),
    };
    let fits = (1..=DECIMAL_DIGITS).contains(&precision) && (0..=precision.cast_signed()).contains(&scale);
    fits.then_some((precision, scale))
}

/// Decimals with no more digits survive as floats of 64 bits.
const FLOAT_DIGITS_MAX: usize = 15;
const SECONDS_OF_DAY: i64 = 86_400;
/// The days of the years 0 to 9999, which SQLite has, from 1970-01-01.
const DAYS: RangeInclusive<i64> = -719_528..=2_932_896;

/// Why a value cannot be stored as it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit(pub(super) String);

/// The values of one column of a batch.
pub(super) struct ColumnValues {
    nulls: Option<NullBuffer>,
    values: TypedValues,
}

enum TypedValues {
    Integer(Int64Array),
    Boolean(BooleanArray),
    Real(Float64Array),
    Text { array: StringArray, is_number_refused: bool },
    Blob(BinaryArray),
    Decimal(Decimal128Array, i8),
    Date(PrimitiveArray<Date32Type>),
    Time(Int64Array, i64),
    Timestamp { array: Int64Array, per_second: i64, is_utc: bool },
}

/// Whether each value of the type `from` has a place in `form`; single values may still not fit.
pub(super) fn is_fitting(from: &DataType, form: ValueForm) -> bool {
    match (form, from) {
        (_, DataType::Null) => true,
        (_, DataType::Dictionary(_, values)) => is_fitting(values, form),
        (ValueForm::Integer, _) => from.is_integer() && *from != DataType::UInt64,
        (ValueForm::Boolean, _) => *from == DataType::Boolean,
        (ValueForm::Real, _) => matches!(from, DataType::Float32 | DataType::Float64),
        (ValueForm::Text | ValueForm::TextNotNumber | ValueForm::Json, _) => from.is_string(),
        (ValueForm::Blob, _) => from.is_binary(),
        (ValueForm::Decimal, _) => matches!(from, DataType::Decimal128(..)),
        (ValueForm::Date, _) => *from == DataType::Date32,
        (ValueForm::Time, _) => matches!(from, DataType::Time32(_) | DataType::Time64(_)),
        (ValueForm::Timestamp { is_utc }, DataType::Timestamp(_, zone)) => zone.is_some() == is_utc,
        (ValueForm::Timestamp { .. }, _) => false,
    }
}

impl ColumnValues {
    /// The values of `array`, whose type [`is_fitting`].
    pub(super) fn new(array: &ArrayRef, form: ValueForm) -> Result<Self, Error> {
        let to = |data_type: &DataType| -> Result<ArrayRef, Error> {
            cast(array, data_type).map_err(|error| Error::internal(format!("a batch cannot be converted: {error}")))
        };
        let plain = match array.data_type() {
            DataType::Dictionary(_, values) => to(values)?,
            _ => array.clone(),
        };
        let text = |is_number_refused| -> Result<TypedValues, Error> {
            Ok(TypedValues::Text { array: to(&DataType::Utf8)?.as_string::<i32>().clone(), is_number_refused })
        };
        let values = match form {
            ValueForm::Integer => TypedValues::Integer(to(&DataType::Int64)?.as_primitive::<Int64Type>().clone()),
            ValueForm::Boolean => TypedValues::Boolean(to(&DataType::Boolean)?.as_boolean().clone()),
            ValueForm::Real => TypedValues::Real(to(&DataType::Float64)?.as_primitive::<Float64Type>().clone()),
            ValueForm::Text => text(false)?,
            ValueForm::TextNotNumber | ValueForm::Json => text(true)?,
            ValueForm::Blob => TypedValues::Blob(to(&DataType::Binary)?.as_binary::<i32>().clone()),
            ValueForm::Decimal => match plain.data_type() {
                DataType::Decimal128(_, scale) => {
                    TypedValues::Decimal(plain.as_primitive::<Decimal128Type>().clone(), *scale)
                }
                _ => TypedValues::Decimal(Decimal128Array::new_null(array.len()), 0),
            },
            ValueForm::Date => TypedValues::Date(to(&DataType::Date32)?.as_primitive::<Date32Type>().clone()),
            ValueForm::Time => {
                let (array, per_second) = integers(&plain)?;
                TypedValues::Time(array, per_second)
            }
            ValueForm::Timestamp { is_utc } => {
                let (array, per_second) = integers(&plain)?;
                TypedValues::Timestamp { array, per_second, is_utc }
            }
        };
        // A column of nulls without a type has no buffer of them.
        Ok(Self { nulls: plain.logical_nulls(), values })
    }

    /// The value of `row`. Text that is made from it is written to `scratch`.
    pub(super) fn value<'a>(&'a self, row: usize, scratch: &'a mut String) -> Result<ValueRef<'a>, Misfit> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(ValueRef::Null);
        }
        scratch.clear();
        match &self.values {
            TypedValues::Integer(array) => return Ok(ValueRef::Integer(array.value(row))),
            TypedValues::Boolean(array) => return Ok(ValueRef::Integer(array.value(row).into())),
            TypedValues::Real(array) => return real(array.value(row)),
            TypedValues::Text { array, is_number_refused } => {
                return text(array.value(row), *is_number_refused);
            }
            TypedValues::Blob(array) => return Ok(ValueRef::Blob(array.value(row))),
            TypedValues::Decimal(array, scale) => return decimal(array.value(row), *scale),
            TypedValues::Date(array) => write_date(i64::from(array.value(row)), scratch)?,
            TypedValues::Time(array, per_second) => write_time(array.value(row), *per_second, scratch)?,
            TypedValues::Timestamp { array, per_second, is_utc } => {
                let per_day = per_second * SECONDS_OF_DAY;
                write_date(array.value(row).div_euclid(per_day), scratch)?;
                scratch.push(' ');
                write_time(array.value(row).rem_euclid(per_day), *per_second, scratch)?;
                if *is_utc {
                    scratch.push('Z');
                }
            }
        }
        Ok(ValueRef::Text(scratch.as_bytes()))
    }
}

/// Times or timestamps as integers, and their number in a second.
fn integers(array: &ArrayRef) -> Result<(Int64Array, i64), Error> {
    let failed = |error| Error::internal(format!("times cannot be converted: {error}"));
    let unit = match array.data_type() {
        DataType::Time32(unit) | DataType::Time64(unit) | DataType::Timestamp(unit, _) => *unit,
        _ => TimeUnit::Microsecond,
    };
    let per_second = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let narrow = match array.data_type() {
        DataType::Time32(_) => cast(array, &DataType::Int32).map_err(failed)?,
        _ => array.clone(),
    };
    let integers = cast(&narrow, &DataType::Int64).map_err(failed)?;
    Ok((integers.as_primitive::<Int64Type>().clone(), per_second))
}

fn real(value: f64) -> Result<ValueRef<'static>, Misfit> {
    match value.is_nan() {
        true => Err(Misfit("the number is NaN, which SQLite stores as null".to_owned())),
        false => Ok(ValueRef::Real(value)),
    }
}

fn text(text: &str, is_number_refused: bool) -> Result<ValueRef<'_>, Misfit> {
    if text.as_bytes().contains(&0) {
        return Err(Misfit("the text holds a NUL character, where the functions of SQLite end it".to_owned()));
    }
    if is_number_refused && is_number(text) {
        return Err(Misfit("SQLite would store the text as a number".to_owned()));
    }
    Ok(ValueRef::Text(text.as_bytes()))
}

/// Whether a column with numeric affinity converts the text.
fn is_number(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    text.bytes().all(is_part) && text.parse::<f64>().is_ok()
}

/// An integer, or the float that has the same digits.
fn decimal(mut value: i128, mut scale: i8) -> Result<ValueRef<'static>, Misfit> {
    while scale > 0 && value % 10 == 0 {
        value /= 10;
        scale -= 1;
    }
    let too_long =
        || Misfit(format!("SQLite stores the number exactly only up to {FLOAT_DIGITS_MAX} digits, or as integer"));
    if scale <= 0 {
        let factor = 10_i128.checked_pow(u32::from(scale.unsigned_abs()));
        let integer = factor.and_then(|factor| value.checked_mul(factor)).and_then(|value| i64::try_from(value).ok());
        return integer.map(ValueRef::Integer).ok_or_else(too_long);
    }
    let digits = value.unsigned_abs().to_string();
    if digits.len() > FLOAT_DIGITS_MAX {
        return Err(too_long());
    }
    let float = format!("{value}e-{scale}").parse::<f64>();
    float.map(ValueRef::Real).map_err(|_| too_long())
}

/// Writes the date that is `days` after 1970-01-01.
fn write_date(days: i64, out: &mut String) -> Result<(), Misfit> {
    if !DAYS.contains(&days) {
        return Err(Misfit("the year is not between 0 and 9999".to_owned()));
    }
    tidegate_query::write_date(days, out);
    Ok(())
}

fn write_time(time: i64, per_second: i64, out: &mut String) -> Result<(), Misfit> {
    let seconds = time.div_euclid(per_second);
    if !(0..SECONDS_OF_DAY).contains(&seconds) {
        return Err(Misfit("the time is outside of a day".to_owned()));
    }
    // Writing to a String cannot fail; below too.
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = time.rem_euclid(per_second);
    if fraction > 0 {
        // As many digits as the unit has, without zeros at the end.
        let width = per_second.ilog10() as usize;
        let digits = format!("{fraction:0width$}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::NullArray;

    use super::*;

    #[test]
    fn declared_types_have_the_affinity_of_sqlite() {
        let form = |declared: &str| value_form(declared, false);
        assert_eq!(form("UNSIGNED BIG INT").1, ValueForm::Integer);
        assert_eq!(form("FLOATING POINT").1, ValueForm::Integer);
        assert_eq!(form("varchar(255)").1, ValueForm::Text);
        assert_eq!(form("STRING").1, ValueForm::TextNotNumber);
        assert_eq!(form("decimal(10, 2)").0, DataType::Decimal128(10, 2));
        assert_eq!(form("NUMERIC(5)").0, DataType::Decimal128(5, 0));
        assert_eq!(form("NUMERIC").0, DataType::Decimal128(38, 15));
        assert_eq!(form("DECIMAL(50,2)").0, DataType::Decimal128(38, 15));
        assert_eq!(form("timestamp with time zone").1, ValueForm::Timestamp { is_utc: true });
        assert_eq!(value_form("ANY", true).1, ValueForm::Text);
        assert_eq!(value_form("ANY", false).1, ValueForm::TextNotNumber);
    }

    #[test]
    fn nulls_without_a_type_are_null() {
        let array: ArrayRef = Arc::new(NullArray::new(1));
        for form in [ValueForm::Integer, ValueForm::Text, ValueForm::Blob, ValueForm::Decimal, ValueForm::Time] {
            let values = ColumnValues::new(&array, form).unwrap();
            let mut scratch = String::new();
            assert_eq!(values.value(0, &mut scratch), Ok(ValueRef::Null), "{form:?}");
        }
    }

    #[test]
    fn dates_and_times_are_iso_8601() {
        let date = |days| {
            let mut out = String::new();
            write_date(days, &mut out).map(|()| out)
        };
        assert_eq!(date(0).unwrap(), "1970-01-01");
        assert_eq!(date(11_016).unwrap(), "2000-02-29");
        assert_eq!(date(-719_528).unwrap(), "0000-01-01");
        assert_eq!(date(2_932_896).unwrap(), "9999-12-31");
        assert!(date(-719_529).is_err() && date(2_932_897).is_err() && date(i64::MAX).is_err());
        let mut out = String::new();
        write_time(86_399_000_100, 1_000_000, &mut out).unwrap();
        assert_eq!(out, "23:59:59.0001");
        assert!(write_time(86_400, 1, &mut out).is_err() && write_time(-1, 1, &mut out).is_err());
    }

    #[test]
    fn decimals_are_exact_or_refused() {
        assert_eq!(decimal(1_250, 2), Ok(ValueRef::Real(12.5)));
        assert_eq!(decimal(1_200, 2), Ok(ValueRef::Integer(12)));
        assert_eq!(decimal(i128::from(i64::MAX) * 100, 2), Ok(ValueRef::Integer(i64::MAX)));
        assert_eq!(decimal(-999_999_999_999_999, 15), Ok(ValueRef::Real(-0.999_999_999_999_999)));
        assert!(decimal(1_234_567_890_123_456, 2).is_err());
        assert!(decimal(i128::MAX, 0).is_err());
        assert_eq!(decimal(3, -2), Ok(ValueRef::Integer(300)));
    }

    #[test]
    fn numbers_are_recognised_as_sqlite_does() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (c NUMERIC)").unwrap();
        for text in [
            "1",
            " 1 ",
            "1.",
            ".5",
            "+1e5",
            "-1E-3",
            "\t7\n",
            "1e400",
            "",
            "-",
            "e5",
            "1 2",
            "0x10",
            "inf",
            "nan",
            "1e",
            "2024-01-01",
            "12:00",
            ".",
            "+.5",
            "1_0",
            "\u{a0}1",
        ] {
            connection.execute("DELETE FROM t", []).unwrap();
            connection.execute("INSERT INTO t VALUES (?1)", [text]).unwrap();
            let kind: String = connection.query_row("SELECT typeof(c) FROM t", [], |row| row.get(0)).unwrap();
            // Whatever SQLite converts is recognised.
            assert!(is_number(text) || kind == "text", "{text:?} became {kind}");
        }
    }
}
