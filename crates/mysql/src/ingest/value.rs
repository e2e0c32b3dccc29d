//! The columns of a table that takes rows, from their types, and Arrow values as the server takes them.
//!
//! The server rounds, pads, cuts and converts some values without an error, whatever its mode. These values are refused here:
//! a value is stored as it is, or not at all.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use mysql_async::Value;
use tidegate_core::Error;
use tidegate_query::date_from_days;

const MICROSECONDS: i64 = 1_000_000;
const SECONDS_OF_DAY: i64 = 86_400;
/// The days of the years 1 to 9999, from 1970-01-01.
const DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;
/// The maximum number of digits of Arrow's smaller decimals.
const DECIMAL128_DIGITS: u8 = 38;

/// How values are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoredForm {
    /// Integers and decimals, which the server checks itself.
    Number,
    /// Only finite numbers.
    Float,
    /// The number of bits.
    Bits(u32),
    Year,
    Text(TextBounds),
    /// The words of which a value is one.
    Enum(Vec<String>),
    /// The words of which a value has some, in their order, separated by commas.
    Set(Vec<String>),
    /// The number of bytes that a value must have, if it would be padded.
    Bytes(Option<usize>),
    Date,
    /// The microseconds between two times that can be stored.
    Timestamp(i64),
    /// The number of digits of the fraction.
    Time(usize),
}

/// The lengths of texts that the server stores as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextBounds {
    /// The maximum number of characters; without spaces at the end, which it removes.
    Padded(usize),
    /// The maximum number of characters.
    Characters(usize),
    /// The number of bytes beyond which it removes spaces at the end.
    Bytes(usize),
}

/// The type of a body and the form of a column with the type `declared`, as the catalog has it. `None` for a type whose
/// values are not taken.
pub(super) fn stored_form(declared: &str) -> Option<(DataType, StoredForm)> {
    let (name, rest) = declared.split_once('(').unwrap_or((declared, ""));
    let name = name.split(' ').next().unwrap_or_default().to_ascii_lowercase();
    let is_unsigned = declared.to_ascii_lowercase().contains("unsigned");
    let arguments = rest.rsplit_once(')').map_or(rest, |(arguments, _)| arguments);
    let length = arguments.split(',').next().and_then(|length| length.trim().parse::<usize>().ok());
    let integer =
        |signed: DataType, unsigned: DataType| (if is_unsigned { unsigned } else { signed }, StoredForm::Number);
    let text = |bounds: TextBounds| (DataType::Utf8, StoredForm::Text(bounds));
    let timestamp = |zone: Option<Arc<str>>| {
        let digits = u32::try_from(length.unwrap_or(0)).unwrap_or(0).min(6);
        (DataType::Timestamp(TimeUnit::Microsecond, zone), StoredForm::Timestamp(10_i64.pow(6 - digits)))
    };
    Some(match name.as_str() {
        "tinyint" => integer(DataType::Int8, DataType::UInt8),
        "smallint" => integer(DataType::Int16, DataType::UInt16),
        "mediumint" | "int" => integer(DataType::Int32, DataType::UInt32),
        "bigint" => integer(DataType::Int64, DataType::UInt64),
        "decimal" => (decimal_type(arguments)?, StoredForm::Number),
        "float" if arguments.is_empty() => (DataType::Float32, StoredForm::Float),
        "double" if arguments.is_empty() => (DataType::Float64, StoredForm::Float),
        "bit" => (DataType::UInt64, StoredForm::Bits(u32::try_from(length?).ok()?)),
        "year" => (DataType::UInt16, StoredForm::Year),
        "char" => text(TextBounds::Padded(length?)),
        "varchar" => text(TextBounds::Characters(length?)),
        "tinytext" => text(TextBounds::Bytes(255)),
        "text" => text(TextBounds::Bytes(65_535)),
        "mediumtext" => text(TextBounds::Bytes(16_777_215)),
        "longtext" | "json" => text(TextBounds::Bytes(usize::MAX)),
        "enum" => (DataType::Utf8, StoredForm::Enum(quoted_words(arguments)?)),
        "set" => (DataType::Utf8, StoredForm::Set(quoted_words(arguments)?)),
        "binary" => (DataType::Binary, StoredForm::Bytes(Some(length?))),
        "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => (DataType::Binary, StoredForm::Bytes(None)),
        "date" => (DataType::Date32, StoredForm::Date),
        "datetime" => timestamp(None),
        "timestamp" => timestamp(Some(Arc::from("UTC"))),
        "time" => (DataType::Utf8, StoredForm::Time(length.unwrap_or(0))),
        _ => return None,
    })
}

/// The type of `DECIMAL(precision, scale)`.
fn decimal_type(arguments: &str) -> Option<DataType> {
    let (precision, scale) = arguments.split_once(',').unwrap_or((arguments, "0"));
    let (precision, scale) = (precision.trim().parse::<u8>().ok()?, scale.trim().parse::<i8>().ok()?);
    Some(match precision <= DECIMAL128_DIGITS {
        true => DataType::Decimal128(precision, scale),
        false => DataType::Decimal256(precision, scale),
    })
}

/// The words of `'a','it''s'`.
fn quoted_words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let mut word = String::new();
        let mut characters = rest.strip_prefix('\'')?.char_indices().peekable();
        let end = loop {
            match characters.next()? {
                (at, '\'') if characters.next_if(|(_, next)| *next == '\'').is_none() => break at,
                (_, character) => word.push(character),
            }
        };
        words.push(word);
        // The quotation mark before the word, and the one behind it.
        rest = rest.get(end + 2..)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Some(words)
}

/// Whether values of the type `from` are taken by a column with the type `column`.
pub(super) fn is_fitting(from: &DataType, column: &DataType) -> bool {
    match (from, column) {
        (DataType::Null, _) => true,
        (DataType::Dictionary(_, values), _) => is_fitting(values, column),
        (DataType::Timestamp(TimeUnit::Microsecond, one), DataType::Timestamp(_, other)) => {
            one.is_some() == other.is_some()
        }
        _ => from == column || from.is_string() && column.is_string() || from.is_binary() && column.is_binary(),
    }
}

/// The values of one column of a batch.
pub(super) struct ColumnValues<'a> {
    array: ArrayRef,
    form: &'a StoredForm,
}

impl<'a> ColumnValues<'a> {
    /// The values of `array`, whose type fits that of the column, `data_type`.
    pub(super) fn new(array: &ArrayRef, data_type: &DataType, form: &'a StoredForm) -> Result<Self, Error> {
        let array = match array.data_type() == data_type {
            true => array.clone(),
            false => cast(array, data_type)
                .map_err(|error| Error::internal(format!("a batch cannot be converted: {error}")))?,
        };
        Ok(Self { array, form })
    }

    /// The value of `row`. The error says why it cannot be stored as it is.
    pub(super) fn value(&self, row: usize) -> Result<Value, String> {
        if self.array.is_null(row) {
            return Ok(Value::NULL);
        }
        match self.form {
            StoredForm::Number => number(&self.array, row),
            StoredForm::Float => float(&self.array, row),
            StoredForm::Bits(bits) => {
                let value = self.array.as_primitive::<UInt64Type>().value(row);
                let fits = *bits >= u64::BITS || value >> bits == 0;
                fits.then_some(Value::UInt(value)).ok_or_else(|| format!("the number has more than {bits} bits"))
            }
            StoredForm::Year => {
                let value = self.array.as_primitive::<UInt16Type>().value(row);
                let fits = value == 0 || (1901..=2155).contains(&value);
                fits.then(|| Value::UInt(value.into()))
                    .ok_or_else(|| "the year is not between 1901 and 2155".to_owned())
            }
            StoredForm::Bytes(length) => {
                let value = self.array.as_binary::<i32>().value(row);
                match length {
                    Some(length) if value.len() != *length => Err(format!("the value has not {length} bytes")),
                    _ => Ok(Value::Bytes(value.to_vec())),
                }
            }
            StoredForm::Date => {
                let days = i64::from(self.array.as_primitive::<Date32Type>().value(row));
                let (year, month, day) = calendar_date(days)?;
                Ok(Value::Date(year, month, day, 0, 0, 0, 0))
            }
            StoredForm::Timestamp(step) => {
                timestamp(self.array.as_primitive::<TimestampMicrosecondType>().value(row), *step)
            }
            StoredForm::Text(_) | StoredForm::Enum(_) | StoredForm::Set(_) | StoredForm::Time(_) => {
                let text = self.array.as_string::<i32>().value(row);
                check_text(text, self.form)?;
                Ok(Value::Bytes(text.as_bytes().to_vec()))
            }
        }
    }
}

fn number(array: &ArrayRef, row: usize) -> Result<Value, String> {
    Ok(match array.data_type() {
        DataType::Int8 => Value::Int(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Value::Int(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Value::Int(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Value::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => Value::UInt(array.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => Value::UInt(array.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => Value::UInt(array.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => Value::UInt(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Decimal128(..) => text_value(array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Decimal256(..) => text_value(array.as_primitive::<Decimal256Type>().value_as_string(row)),
        other => return Err(format!("a column of numbers has values of {other}")),
    })
}

fn text_value(text: String) -> Value {
    Value::Bytes(text.into_bytes())
}

fn float(array: &ArrayRef, row: usize) -> Result<Value, String> {
    let (value, is_finite) = match array.data_type() {
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            (Value::Float(value), value.is_finite())
        }
        _ => {
            let value = array.as_primitive::<Float64Type>().value(row);
            (Value::Double(value), value.is_finite())
        }
    };
    if is_finite { Ok(value) } else { Err("the number is not finite".to_owned()) }
}

fn calendar_date(days: i64) -> Result<(u16, u8, u8), String> {
    let out_of_range = || "the year is not between 1 and 9999".to_owned();
    if !DAYS.contains(&days) {
        return Err(out_of_range());
    }
    let (year, month, day) = date_from_days(days);
    let date = (u16::try_from(year).ok(), u8::try_from(month).ok(), u8::try_from(day).ok());
    let (Some(year), Some(month), Some(day)) = date else { return Err(out_of_range()) };
    Ok((year, month, day))
}

/// A time in microseconds since 1970.
fn timestamp(microseconds: i64, step: i64) -> Result<Value, String> {
    if microseconds.rem_euclid(step) != 0 {
        return Err("the time has more digits after its seconds than the column".to_owned());
    }
    let (seconds, fraction) = (microseconds.div_euclid(MICROSECONDS), microseconds.rem_euclid(MICROSECONDS));
    let (year, month, day) = calendar_date(seconds.div_euclid(SECONDS_OF_DAY))?;
    let of_day = seconds.rem_euclid(SECONDS_OF_DAY);
    // Each is less than 60, and the fraction less than a million.
    let (hour, minute, second) = ((of_day / 3600) as u8, (of_day / 60 % 60) as u8, (of_day % 60) as u8);
    Ok(Value::Date(year, month, day, hour, minute, second, fraction as u32))
}

fn check_text(text: &str, form: &StoredForm) -> Result<(), String> {
    match form {
        StoredForm::Text(TextBounds::Padded(characters)) if text.ends_with(' ') => {
            Err(format!("the server removes the spaces at the end of a text of CHAR({characters})"))
        }
        StoredForm::Text(TextBounds::Padded(characters) | TextBounds::Characters(characters)) => {
            match text.chars().nth(*characters) {
                None => Ok(()),
                Some(_) => Err(format!("the text has more than {characters} characters")),
            }
        }
        StoredForm::Text(TextBounds::Bytes(bytes)) => match text.len() > *bytes && text.ends_with(' ') {
            false => Ok(()),
            true => Err(format!("the text has more than {bytes} bytes")),
        },
        StoredForm::Enum(words) => match words.iter().any(|word| word == text) {
            true => Ok(()),
            false => Err(format!("the text is none of {}", words.join(", "))),
        },
        StoredForm::Set(words) => {
            let mut left = words.iter();
            match text.is_empty() || text.split(',').all(|part| left.any(|word| word == part)) {
                true => Ok(()),
                false => Err(format!("the text is no list of {}, in this order and each once", words.join(", "))),
            }
        }
        StoredForm::Time(digits) => check_time(text, *digits),
        _ => Ok(()),
    }
}

/// Checks that `text` has the form `-838:59:59.000000`, of which the server would accept many others as something else.
fn check_time(text: &str, digits: usize) -> Result<(), String> {
    let (clock, fraction) = text.split_once('.').map_or((text, None), |(clock, fraction)| (clock, Some(fraction)));
    let parts: Vec<&str> = clock.strip_prefix('-').unwrap_or(clock).split(':').collect();
    let is_number = |part: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_sixtieth = |part: &str| is_number(part, 2..=2) && part < "60";
    let has_form = match parts.as_slice() {
        [hours, minutes, seconds] => is_number(hours, 2..=3) && is_sixtieth(minutes) && is_sixtieth(seconds),
        _ => false,
    };
    match has_form && fraction.is_none_or(|fraction| is_number(fraction, 1..=digits)) {
        true => Ok(()),
        false => Err(format!("the time has not the form 12:34:56 with at most {digits} digits behind a point")),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Date32Array, Float64Array, StringArray, TimestampMicrosecondArray, UInt16Array};

    use super::*;

    fn outcome(declared: &str, array: ArrayRef) -> Result<Value, String> {
        let (data_type, form) = stored_form(declared).unwrap();
        ColumnValues::new(&array, &data_type, &form).unwrap().value(0)
    }

    fn takes_text(declared: &str, text: &str) -> bool {
        outcome(declared, Arc::new(StringArray::from(vec![text]))).is_ok()
    }

    #[test]
    fn types_have_the_arrow_types_of_reading() {
        let data_type = |declared: &str| stored_form(declared).map(|(data_type, _)| data_type);
        assert_eq!(data_type("int(10) unsigned"), Some(DataType::UInt32));
        assert_eq!(data_type("decimal(65,10)"), Some(DataType::Decimal256(65, 10)));
        assert_eq!(data_type("timestamp"), Some(DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")))));
        assert_eq!(data_type("geometry"), None);
        let set = StoredForm::Set(vec!["a".to_owned(), "it's".to_owned()]);
        assert_eq!(stored_form("set('a','it''s')"), Some((DataType::Utf8, set)));
    }

    #[test]
    fn texts_that_the_server_would_change_are_refused() {
        for (declared, text, is_taken) in [
            ("char(3)", "abc", true),
            ("char(3)", "ab ", false),
            ("varchar(3)", "ab ", true),
            ("varchar(3)", "abc ", false),
            ("varchar(3)", "äöü", true),
            ("enum('a','b')", "A", false),
            ("enum('a','b')", "1", false),
            ("set('x','y')", "x,y", true),
            ("set('x','y')", "y,x", false),
            ("set('x','y')", "x,x", false),
            ("time(2)", "-838:59:59.25", true),
            ("time", "12:00:00.5", false),
            ("time", "12:00", false),
            ("time", "12:60:00", false),
        ] {
            assert_eq!(takes_text(declared, text), is_taken, "{declared}: {text:?}");
        }
    }

    #[test]
    fn numbers_and_times_that_the_server_would_change_are_refused() {
        assert!(outcome("double", Arc::new(Float64Array::from(vec![f64::NAN]))).is_err());
        assert!(outcome("year(4)", Arc::new(UInt16Array::from(vec![70]))).is_err());
        let date = outcome("date", Arc::new(Date32Array::from(vec![19_782])));
        assert_eq!(date, Ok(Value::Date(2024, 2, 29, 0, 0, 0, 0)));
        let time = |declared: &str, microseconds: i64| {
            outcome(declared, Arc::new(TimestampMicrosecondArray::from(vec![microseconds])))
        };
        assert_eq!(time("datetime(6)", -1), Ok(Value::Date(1969, 12, 31, 23, 59, 59, 999_999)));
        assert!(time("datetime(3)", 1_000).is_ok() && time("datetime(3)", 1).is_err());
    }
}
