//! The display form of a value: the text by which facets count values and selections compare them.
//!
//! It is the form that answers show, so that a caller can send a value of an answer back as a selection.
//!
//! A column of a batch has each distinct value once. Facets, selections and histograms work on the codes, so that a row
//! costs an index and no allocation.
//!
//! The numbers of columns whose name says what they count have names, too.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use arrow::array::timezone::Tz;
use arrow::array::{AnyDictionaryArray, Array, ArrowPrimitiveType, AsArray, RecordBatch, RunArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{
    ArrowNativeType, ArrowTimestampType, DataType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DecimalType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    RunEndIndexType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, ToByteSlice, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::downcast_primitive_array;
use arrow::temporal_conversions::{as_datetime, as_datetime_with_timezone, date32_to_datetime};
use arrow::util::display::array_value_to_string;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foldhash::fast::RandomState;
use tidegate_log_formats::{NormalizedSeverity, SeverityNumberScale};

/// The display form of a missing value. Many log formats write the same sign, so text `-` is a missing value too.
pub const MISSING: &str = "-";

/// The display form of the value in `row`: numbers with all digits, floats with a point or an exponent, timestamps as
/// ISO 8601, bytes as base64, and [`MISSING`] for null and for a row that does not exist.
pub fn display_value(array: &dyn Array, row: usize) -> String {
    let mut text = String::new();
    write_display_value(array, row, &mut text);
    text
}

/// Appends [`display_value`] to `out`.
pub fn write_display_value(array: &dyn Array, row: usize, out: &mut String) {
    if row >= array.len() || array.is_null(row) {
        return out.push_str(MISSING);
    }
    // Writing to a String cannot fail; below too.
    match array.data_type() {
        DataType::Utf8 => out.push_str(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => out.push_str(array.as_string::<i64>().value(row)),
        DataType::Utf8View => out.push_str(array.as_string_view().value(row)),
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Int8 => write_integer::<Int8Type>(array, row, out),
        DataType::Int16 => write_integer::<Int16Type>(array, row, out),
        DataType::Int32 => write_integer::<Int32Type>(array, row, out),
        DataType::Int64 => write_integer::<Int64Type>(array, row, out),
        DataType::UInt8 => write_integer::<UInt8Type>(array, row, out),
        DataType::UInt16 => write_integer::<UInt16Type>(array, row, out),
        DataType::UInt32 => write_integer::<UInt32Type>(array, row, out),
        DataType::UInt64 => write_integer::<UInt64Type>(array, row, out),
        DataType::Float16 => {
            let value = array.as_primitive::<Float16Type>().value(row).to_f32();
            write_float(f64::from(value), &value, out);
        }
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            write_float(f64::from(value), &value, out);
        }
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            write_float(value, &value, out);
        }
        DataType::Decimal32(..) => write_decimal::<Decimal32Type>(array, row, out),
        DataType::Decimal64(..) => write_decimal::<Decimal64Type>(array, row, out),
        DataType::Decimal128(..) => write_decimal::<Decimal128Type>(array, row, out),
        DataType::Decimal256(..) => write_decimal::<Decimal256Type>(array, row, out),
        DataType::Timestamp(..) | DataType::Date32 => write_time(array, row, out),
        DataType::Binary => STANDARD.encode_string(array.as_binary::<i32>().value(row), out),
        DataType::LargeBinary => STANDARD.encode_string(array.as_binary::<i64>().value(row), out),
        DataType::BinaryView => STANDARD.encode_string(array.as_binary_view().value(row), out),
        DataType::FixedSizeBinary(_) => STANDARD.encode_string(array.as_fixed_size_binary().value(row), out),
        _ => write_nested(array, row, out),
    }
}

/// Whether the value in `row` is missing.
pub(super) fn is_missing(text: &str) -> bool {
    text == MISSING
}

/// The text in `row` where the array itself contains it, without a copy.
pub fn borrowed_text(array: &dyn Array, row: usize) -> Option<&str> {
    if row >= array.len() || array.is_null(row) {
        return Some(MISSING);
    }
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Some(array.as_string_view().value(row)),
        _ => None,
    }
}

/// The index into the values of a dictionary that `keys` has in `row`; `None` for null.
fn dictionary_key(keys: &dyn Array, row: usize) -> Option<usize> {
    fn key<T: ArrowPrimitiveType>(keys: &dyn Array, row: usize) -> Option<usize> {
        keys.as_primitive::<T>().value(row).to_usize()
    }
    if row >= keys.len() || keys.is_null(row) {
        return None;
    }
    match keys.data_type() {
        DataType::Int8 => key::<Int8Type>(keys, row),
        DataType::Int16 => key::<Int16Type>(keys, row),
        DataType::Int32 => key::<Int32Type>(keys, row),
        DataType::Int64 => key::<Int64Type>(keys, row),
        DataType::UInt8 => key::<UInt8Type>(keys, row),
        DataType::UInt16 => key::<UInt16Type>(keys, row),
        DataType::UInt32 => key::<UInt32Type>(keys, row),
        DataType::UInt64 => key::<UInt64Type>(keys, row),
        _ => None,
    }
}

fn write_nested(array: &dyn Array, row: usize, out: &mut String) {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        return match dictionary_key(dictionary.keys(), row) {
            Some(key) => write_display_value(dictionary.values().as_ref(), key, out),
            None => out.push_str(MISSING),
        };
    }
    if let DataType::RunEndEncoded(ends, _) = array.data_type() {
        return match ends.data_type() {
            DataType::Int16 => write_run::<Int16Type>(array, row, out),
            DataType::Int32 => write_run::<Int32Type>(array, row, out),
            _ => write_run::<Int64Type>(array, row, out),
        };
    }
    match array_value_to_string(array, row) {
        Ok(text) => out.push_str(&text),
        Err(error) => drop(write!(out, "{error}")),
    }
}

fn write_run<T: RunEndIndexType>(array: &dyn Array, row: usize, out: &mut String) {
    match array.as_any().downcast_ref::<RunArray<T>>() {
        Some(run) => write_display_value(run.values().as_ref(), run.get_physical_index(row), out),
        None => out.push_str(MISSING),
    }
}

fn write_integer<T: ArrowPrimitiveType<Native: std::fmt::Display>>(array: &dyn Array, row: usize, out: &mut String) {
    let _ = write!(out, "{}", array.as_primitive::<T>().value(row));
}

/// `shortest` has the digits of the original type, which a conversion to `f64` would extend.
fn write_float(value: f64, shortest: &dyn std::fmt::Debug, out: &mut String) {
    if value.is_nan() {
        out.push_str("NaN");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        let _ = write!(out, "{shortest:?}");
    }
}

fn write_decimal<T: DecimalType + ArrowPrimitiveType>(array: &dyn Array, row: usize, out: &mut String) {
    let array = array.as_primitive::<T>();
    out.push_str(&T::format_decimal(array.value(row), array.precision(), array.scale()));
}

fn write_time(array: &dyn Array, row: usize, out: &mut String) {
    match array.data_type() {
        DataType::Timestamp(unit, zone) => match unit {
            TimeUnit::Second => write_timestamp::<TimestampSecondType>(array, row, zone.as_deref(), out),
            TimeUnit::Millisecond => write_timestamp::<TimestampMillisecondType>(array, row, zone.as_deref(), out),
            TimeUnit::Microsecond => write_timestamp::<TimestampMicrosecondType>(array, row, zone.as_deref(), out),
            TimeUnit::Nanosecond => write_timestamp::<TimestampNanosecondType>(array, row, zone.as_deref(), out),
        },
        _ => {
            let days = array.as_primitive::<Date32Type>().value(row);
            match date32_to_datetime(days) {
                Some(time) => drop(write!(out, "{:?}", time.date())),
                None => drop(write!(out, "{days}")),
            }
        }
    }
}

fn write_timestamp<T: ArrowTimestampType>(array: &dyn Array, row: usize, zone: Option<&str>, out: &mut String) {
    let value = array.as_primitive::<T>().value(row);
    let other_zone = zone.filter(|zone| !is_utc(zone)).and_then(|zone| zone.parse::<Tz>().ok());
    if let Some(time) = other_zone.and_then(|zone| as_datetime_with_timezone::<T>(value, zone)) {
        return out.push_str(&time.to_rfc3339());
    }
    match as_datetime::<T>(value) {
        // UTC, or an unknown zone: the moment is the same.
        Some(time) => drop(write!(out, "{time:?}{}", if zone.is_some() { "Z" } else { "" })),
        None => drop(write!(out, "{value}")),
    }
}

fn is_utc(zone: &str) -> bool {
    ["UTC", "Etc/UTC", "Z", "+00:00", "+0000", "+00", "-00:00", "GMT"].contains(&zone)
}

/// The code of a row that was not encoded.
const NO_CODE: u32 = u32::MAX;

/// A code for each row, and the display value of each code. Two codes may have the same value.
pub(crate) struct EncodedColumn<'a> {
    codes: Vec<u32>,
    values: Vec<Cow<'a, str>>,
}

impl<'a> EncodedColumn<'a> {
    /// Encodes the column `name` in the given rows. In a batch without such a column, the value of every row is missing.
    pub(super) fn from_batch(batch: &'a RecordBatch, name: &str, rows: &BooleanBuffer) -> Self {
        match batch.column_by_name(name) {
            Some(array) => Self::new(array.as_ref(), rows),
            None => Self { codes: vec![0; batch.num_rows()], values: vec![Cow::Borrowed(MISSING)] },
        }
    }

    /// Encodes the given rows of `array`.
    pub(crate) fn new(array: &'a dyn Array, rows: &BooleanBuffer) -> Self {
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            return Self::from_dictionary(dictionary, rows);
        }
        let mut encoded = Self { codes: vec![NO_CODE; array.len()], values: Vec::new() };
        match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => encoded.add_strings(array, rows),
            kind if kind.is_primitive() => encoded.add_primitives(array, rows),
            _ => encoded.add_others(array, rows),
        }
        encoded
    }

    /// The code of `row`; `None` if the row was not encoded.
    pub(crate) fn code(&self, row: usize) -> Option<usize> {
        self.codes.get(row).filter(|code| **code != NO_CODE).map(|code| *code as usize)
    }

    /// The display value of each code.
    pub(crate) fn values(&self) -> &[Cow<'a, str>] {
        &self.values
    }

    /// The number of the given rows that have each code.
    pub(super) fn count(&self, rows: &BooleanBuffer) -> Vec<u64> {
        let mut counts = vec![0; self.values.len()];
        for row in rows.set_indices() {
            if let Some(count) = self.code(row).and_then(|code| counts.get_mut(code)) {
                *count += 1;
            }
        }
        counts
    }

    /// The given rows whose value `matches`.
    pub(super) fn filter(&self, rows: &BooleanBuffer, mut matches: impl FnMut(&str) -> bool) -> BooleanBuffer {
        let matching: Vec<bool> = self.values.iter().map(|value| matches(value)).collect();
        let is_match = |row| self.code(row).and_then(|code| matching.get(code)).copied().unwrap_or(false);
        BooleanBuffer::collect_bool(rows.len(), |row| rows.value(row) && is_match(row))
    }

    fn push_value(&mut self, value: Cow<'a, str>) -> u32 {
        self.values.push(value);
        // A batch has fewer rows than codes.
        u32::try_from(self.values.len() - 1).unwrap_or(NO_CODE)
    }

    fn set(&mut self, row: usize, code: u32) {
        if let Some(place) = self.codes.get_mut(row) {
            *place = code;
        }
    }

    fn from_dictionary(dictionary: &'a dyn AnyDictionaryArray, rows: &BooleanBuffer) -> Self {
        let values: &'a dyn Array = dictionary.values().as_ref();
        let mut encoded = Self { codes: vec![NO_CODE; dictionary.len()], values: Vec::new() };
        // One code for each key that occurs, and the last one for null.
        let mut code_of_key = vec![NO_CODE; values.len() + 1];
        for row in rows.set_indices() {
            let key = dictionary_key(dictionary.keys(), row).unwrap_or(values.len());
            let Some(known) = code_of_key.get_mut(key) else { continue };
            if *known == NO_CODE {
                let value = borrowed_text(values, key).map(Cow::Borrowed);
                *known = encoded.push_value(value.unwrap_or_else(|| Cow::Owned(display_value(values, key))));
            }
            encoded.set(row, *known);
        }
        encoded
    }

    fn add_strings(&mut self, array: &'a dyn Array, rows: &BooleanBuffer) {
        let mut known: HashMap<&'a str, u32, RandomState> = HashMap::default();
        let mut previous: Option<(&'a str, u32)> = None;
        for row in rows.set_indices() {
            let text = borrowed_text(array, row).unwrap_or(MISSING);
            let code = match previous {
                Some((same, code)) if same == text => code,
                _ => *known.entry(text).or_insert_with(|| self.push_value(Cow::Borrowed(text))),
            };
            previous = Some((text, code));
            self.set(row, code);
        }
    }

    fn add_primitives(&mut self, array: &'a dyn Array, rows: &BooleanBuffer) {
        let is_valid = |row| array.nulls().is_none_or(|nulls: &NullBuffer| nulls.is_valid(row));
        let mut known: HashMap<Option<&[u8]>, u32, RandomState> = HashMap::default();
        downcast_primitive_array!(
            array => {
                let natives = array.values();
                for row in rows.set_indices() {
                    let bytes = natives.get(row).filter(|_| is_valid(row)).map(ToByteSlice::to_byte_slice);
                    let new = || self.push_value(Cow::Owned(display_value(array, row)));
                    let code = *known.entry(bytes).or_insert_with(new);
                    self.set(row, code);
                }
            }
            _ => self.add_others(array, rows)
        );
    }

    fn add_others(&mut self, array: &'a dyn Array, rows: &BooleanBuffer) {
        let mut known: HashMap<String, u32, RandomState> = HashMap::default();
        let mut text = String::new();
        for row in rows.set_indices() {
            text.clear();
            write_display_value(array, row, &mut text);
            let code = match known.get(&text) {
                Some(code) => *code,
                None => {
                    let code = self.push_value(Cow::Owned(text.clone()));
                    known.insert(text.clone(), code);
                    code
                }
            };
            self.set(row, code);
        }
    }
}

/// What the numbers of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeScale {
    /// Severities.
    Severity(SeverityNumberScale),
    /// Status codes of HTTP, by their first digit. They have no severity, because a 404 may be normal.
    HttpStatus,
}

impl CodeScale {
    /// The scale of a column, where its name makes it clear.
    pub fn from_column_name(name: &str) -> Option<Self> {
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        match name.as_str() {
            "priority" | "syslogpriority" | "syslogseverity" | "logsyslogseveritycode" => {
                Some(Self::Severity(SeverityNumberScale::Syslog))
            }
            "severitynumber" => Some(Self::Severity(SeverityNumberScale::OpenTelemetry)),
            "httpstatus" | "httpstatuscode" | "httpresponsestatuscode" | "statuscode" => Some(Self::HttpStatus),
            _ => None,
        }
    }

    /// The severity of a number of this scale.
    pub fn severity(self, value: &str) -> Option<NormalizedSeverity> {
        match self {
            Self::Severity(scale) => NormalizedSeverity::from_number(value.parse().ok()?, scale),
            Self::HttpStatus => None,
        }
    }

    /// The display name beside a raw value, such as `info` for priority 6. `None` if the value has none.
    pub fn display_name(self, value: &str) -> Option<&'static str> {
        if self != Self::HttpStatus {
            return self.severity(value).map(NormalizedSeverity::name);
        }
        match value.parse::<u16>().ok()? {
            100..=199 => Some("informational"),
            200..=299 => Some("success"),
            300..=399 => Some("redirection"),
            400..=499 => Some("client error"),
            500..=599 => Some("server error"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BooleanArray, Decimal128Array, Decimal256Array, DictionaryArray, Float32Array, Float64Array,
        Int64Array, StringArray, StringViewArray, TimestampMillisecondArray, TimestampNanosecondArray,
        TimestampSecondArray,
    };
    use arrow::datatypes::i256;

    use super::*;

    fn all(array: ArrayRef) -> Vec<String> {
        (0..array.len()).map(|row| display_value(array.as_ref(), row)).collect()
    }

    #[test]
    fn each_type_has_its_display_form() {
        assert_eq!(all(Arc::new(Int64Array::from(vec![Some(-5), None]))), ["-5", "-"]);
        assert_eq!(all(Arc::new(Float64Array::from(vec![1.0, f64::NAN, -1e300]))), ["1.0", "NaN", "-1e300"]);
        assert_eq!(all(Arc::new(Float32Array::from(vec![0.1]))), ["0.1"]);
        assert_eq!(all(Arc::new(BooleanArray::from(vec![true, false]))), ["true", "false"]);
        assert_eq!(all(Arc::new(StringViewArray::from(vec![Some("a"), None]))), ["a", "-"]);
        let decimals = Decimal128Array::from(vec![1_250]).with_precision_and_scale(10, 2).unwrap();
        assert_eq!(all(Arc::new(decimals)), ["12.50"]);
        let dictionary: DictionaryArray<Int8Type> = vec![Some("b"), None, Some("b")].into_iter().collect();
        assert_eq!(all(Arc::new(dictionary)), ["b", "-", "b"]);
        assert_eq!(display_value(&StringArray::from(vec!["a"]), 5), "-");
    }

    #[test]
    fn timestamps_are_iso_8601() {
        let plain = TimestampMillisecondArray::from(vec![1_500]);
        assert_eq!(display_value(&plain, 0), "1970-01-01T00:00:01.500");
        assert_eq!(display_value(&plain.clone().with_timezone("UTC"), 0), "1970-01-01T00:00:01.500Z");
        let berlin = TimestampSecondArray::from(vec![0]).with_timezone("Europe/Berlin");
        assert_eq!(display_value(&berlin, 0), "1970-01-01T01:00:00+01:00");
        let late = TimestampSecondArray::from(vec![i64::MAX]);
        assert_eq!(display_value(&late, 0), i64::MAX.to_string());
    }

    #[test]
    fn codes_have_the_display_values_of_their_rows() {
        let dictionary: DictionaryArray<Int32Type> = vec![Some("b"), None, Some("b"), Some("-")].into_iter().collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![Some("x"), None, Some("x"), Some("y")])),
            Arc::new(dictionary),
            Arc::new(Int64Array::from(vec![Some(1), None, Some(1), Some(2)])),
            Arc::new(Float64Array::from(vec![Some(0.0), None, Some(-0.0), Some(f64::NAN)])),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(true), Some(false)])),
            Arc::new(TimestampNanosecondArray::from(vec![Some(1), None, Some(1), Some(2)])),
            Arc::new(Decimal256Array::from(vec![Some(i256::ONE), None, Some(i256::ONE), Some(i256::ZERO)])),
        ];
        for array in columns {
            let encoded = EncodedColumn::new(array.as_ref(), &BooleanBuffer::new_set(4));
            let values: Vec<_> = (0..4).map(|row| encoded.values()[encoded.code(row).unwrap()].to_string()).collect();
            let expected: Vec<_> = (0..4).map(|row| display_value(array.as_ref(), row)).collect();
            assert_eq!(values, expected, "{:?}", array.data_type());
            assert_eq!(encoded.count(&BooleanBuffer::new_set(4)).iter().sum::<u64>(), 4);
            assert!(encoded.filter(&BooleanBuffer::new_set(4), |text| text == "-").value(1));
        }
    }

    #[test]
    fn numbers_have_names() {
        let display_name = |column, value| CodeScale::from_column_name(column).unwrap().display_name(value);
        assert_eq!(display_name("PRIORITY", "6"), Some("info"));
        assert_eq!(display_name("PRIORITY", "0"), Some("emergency"));
        assert_eq!(display_name("PRIORITY", "8"), None);
        assert_eq!(display_name("severity_number", "9"), Some("info"));
        assert_eq!(display_name("severity_number", "10"), Some("notice"));
        assert_eq!(display_name("severity_number", "-"), None);
        assert_eq!(display_name("http_status_code", "503"), Some("server error"));
        assert_eq!(CodeScale::from_column_name("level"), None);
    }
}
