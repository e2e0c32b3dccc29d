//! Statistics of the columns of a data file.
//!
//! Only statements that hold are written: long text is cut, down for the minimum and up for the maximum; a column with
//! NaN has no bounds; infinite bounds, which JSON cannot write, and times outside of the years 1 to 9999 are omitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Float64Array, Int64Array, PrimitiveArray, StringArray,
};
use arrow::compute;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema,
    TimestampMicrosecondType,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::calendar::{
    DAY_MICROSECONDS, format_date, format_decimal, format_timestamp, is_common_year, parse_date, parse_decimal,
    parse_timestamp,
};
use crate::types::{convert, stored_type};

/// Longer text is cut to this number of characters.
const TEXT_CHARACTERS_MAX: usize = 32;

/// What is known of the values of a column in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnStatistics {
    /// The name of the column.
    pub column: String,
    /// No value is smaller. `None` if unknown, or if all values are null.
    pub minimum: Option<StatisticsValue>,
    /// No value is greater. `None` if unknown, or if all values are null.
    pub maximum: Option<StatisticsValue>,
    /// Whether minimum and maximum are values of the column, and not only bounds.
    pub is_exact: bool,
    /// The number of nulls, if known.
    pub null_count: Option<u64>,
}

/// A bound of a column.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub enum StatisticsValue {
    /// A number of a type without fraction; a decimal without its point; a date or time in the unit of its type.
    Integer(i128),
    /// A floating-point number: neither NaN nor infinite.
    Float(f64),
    /// Text, perhaps cut.
    Text(Box<str>),
}

impl StatisticsValue {
    /// The value in the type of its column, as an array of one row. `None` if the type does not have the value.
    #[must_use]
    pub fn to_array(&self, data_type: &DataType) -> Option<ArrayRef> {
        let stored_type = stored_type(data_type).ok()?;
        let values: ArrayRef = match (self, &stored_type) {
            (Self::Integer(value), DataType::Decimal128(precision, scale)) => {
                let values = PrimitiveArray::<Decimal128Type>::from(vec![*value]);
                Arc::new(values.with_precision_and_scale(*precision, *scale).ok()?)
            }
            (Self::Integer(value), DataType::Date32) => {
                Arc::new(PrimitiveArray::<Date32Type>::from(vec![i32::try_from(*value).ok()?]))
            }
            (Self::Integer(value), _) => Arc::new(Int64Array::from(vec![i64::try_from(*value).ok()?])),
            (Self::Float(value), _) => Arc::new(Float64Array::from(vec![*value])),
            (Self::Text(value), _) => Arc::new(StringArray::from(vec![value.as_ref()])),
        };
        convert(&convert(&values, &stored_type).ok()?, data_type).ok()
    }
}

/// Collects the statistics of a stored column.
#[derive(Debug)]
pub(super) struct StatisticsBuilder {
    column: String,
    minimum: Option<StatisticsValue>,
    maximum: Option<StatisticsValue>,
    null_count: u64,
    has_nan: bool,
}

impl StatisticsBuilder {
    pub(super) fn new(column: &str) -> Self {
        Self { column: column.to_owned(), minimum: None, maximum: None, null_count: 0, has_nan: false }
    }

    /// Adds the values of a stored column.
    pub(super) fn add(&mut self, values: &ArrayRef) {
        self.null_count += values.null_count() as u64;
        match values.data_type() {
            DataType::Int8 => self.add_integers::<Int8Type>(values),
            DataType::Int16 => self.add_integers::<Int16Type>(values),
            DataType::Int32 => self.add_integers::<Int32Type>(values),
            DataType::Int64 => self.add_integers::<Int64Type>(values),
            DataType::Date32 => self.add_integers::<Date32Type>(values),
            DataType::Timestamp(_, _) => self.add_integers::<TimestampMicrosecondType>(values),
            DataType::Decimal128(_, _) => self.add_integers::<Decimal128Type>(values),
            DataType::Float32 => self.add_floats(values.as_primitive::<Float32Type>().iter().flatten().map(f64::from)),
            DataType::Float64 => self.add_floats(values.as_primitive::<Float64Type>().iter().flatten()),
            DataType::Utf8 => {
                let values = values.as_string::<i32>();
                self.extend(compute::min_string(values).map(prefix), compute::max_string(values).map(prefix));
            }
            _ => {}
        }
    }

    fn add_integers<T: ArrowPrimitiveType>(&mut self, values: &ArrayRef)
    where
        T::Native: Into<i128>,
    {
        let values = values.as_primitive::<T>();
        let value = |value: T::Native| StatisticsValue::Integer(value.into());
        self.extend(compute::min(values).map(value), compute::max(values).map(value));
    }

    fn add_floats(&mut self, values: impl Iterator<Item = f64>) {
        let mut bounds: Option<(f64, f64)> = None;
        for value in values {
            self.has_nan |= value.is_nan();
            let (minimum, maximum) = bounds.unwrap_or((value, value));
            bounds = Some((minimum.min(value), maximum.max(value)));
        }
        let value = |value| StatisticsValue::Float(value);
        self.extend(bounds.map(|(minimum, _)| value(minimum)), bounds.map(|(_, maximum)| value(maximum)));
    }

    fn extend(&mut self, minimum: Option<StatisticsValue>, maximum: Option<StatisticsValue>) {
        if let Some(minimum) = minimum
            && self.minimum.as_ref().is_none_or(|known| minimum < *known)
        {
            self.minimum = Some(minimum);
        }
        if let Some(maximum) = maximum
            && self.maximum.as_ref().is_none_or(|known| maximum > *known)
        {
            self.maximum = Some(maximum);
        }
    }

    /// The statistics of all values. `stored` is the type of the column.
    pub(super) fn finish(self, stored: &DataType) -> ColumnStatistics {
        let has_bounds = !self.has_nan;
        let minimum = self.minimum.filter(|_| has_bounds).and_then(|value| limit(value, stored, false));
        let maximum = self.maximum.filter(|_| has_bounds).and_then(|value| limit(value, stored, true));
        let is_exact = is_exact(minimum.as_ref()) && is_exact(maximum.as_ref());
        ColumnStatistics { column: self.column, minimum, maximum, is_exact, null_count: Some(self.null_count) }
    }
}

/// A text with at most one character more than is written, which marks it as longer.
fn prefix(text: &str) -> StatisticsValue {
    let end = text.char_indices().nth(TEXT_CHARACTERS_MAX + 1).map_or(text.len(), |(position, _)| position);
    StatisticsValue::Text(text.get(..end).unwrap_or(text).into())
}

/// The bound as it can be written, or `None`.
fn limit(value: StatisticsValue, stored: &DataType, is_maximum: bool) -> Option<StatisticsValue> {
    match value {
        StatisticsValue::Float(value) if !value.is_finite() => None,
        // Some readers order the two zeros, and some take them for the same.
        StatisticsValue::Float(0.0) => Some(StatisticsValue::Float(if is_maximum { 0.0 } else { -0.0 })),
        StatisticsValue::Integer(value) => {
            let is_writable = match stored {
                DataType::Date32 => is_common_year(i64::try_from(value).ok()?),
                DataType::Timestamp(_, _) => is_common_year(i64::try_from(value).ok()?.div_euclid(DAY_MICROSECONDS)),
                _ => true,
            };
            is_writable.then_some(StatisticsValue::Integer(value))
        }
        StatisticsValue::Text(text) => cut(&text, is_maximum).map(StatisticsValue::Text),
        float => Some(float),
    }
}

/// Cuts long text so that it remains a bound.
fn cut(text: &str, is_maximum: bool) -> Option<Box<str>> {
    let Some((end, _)) = text.char_indices().nth(TEXT_CHARACTERS_MAX) else { return Some(text.into()) };
    let mut characters: Vec<char> = text.get(..end)?.chars().collect();
    if is_maximum {
        // The next character of the last one. If it has none, there is no bound.
        let last = characters.pop()?;
        characters.push(((u32::from(last) + 1)..=u32::from(char::MAX)).find_map(char::from_u32)?);
    }
    Some(characters.into_iter().collect::<String>().into())
}

/// Whether a bound that was written is a value of the column.
fn is_exact(value: Option<&StatisticsValue>) -> bool {
    match value {
        None => false,
        Some(StatisticsValue::Text(text)) => text.chars().count() < TEXT_CHARACTERS_MAX,
        Some(StatisticsValue::Float(value)) => *value != 0.0,
        Some(StatisticsValue::Integer(_)) => true,
    }
}

/// The statistics of a file as the log writes them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FileStatistics {
    #[serde(skip_serializing_if = "Option::is_none")]
    num_records: Option<u64>,
    min_values: BTreeMap<String, Box<RawValue>>,
    max_values: BTreeMap<String, Box<RawValue>>,
    null_count: BTreeMap<String, Box<RawValue>>,
}

/// The statistics of a file with `rows` rows as JSON.
pub(super) fn to_json(rows: u64, columns: &[ColumnStatistics], schema: &Schema) -> Result<String, serde_json::Error> {
    let mut file = FileStatistics { num_records: Some(rows), ..FileStatistics::default() };
    for column in columns {
        let Ok(field) = schema.field_with_name(&column.column) else { continue };
        let Ok(stored) = stored_type(field.data_type()) else { continue };
        for (bound, bounds) in [(&column.minimum, &mut file.min_values), (&column.maximum, &mut file.max_values)] {
            if let Some(value) = bound {
                bounds.insert(column.column.clone(), RawValue::from_string(bound_to_json(value, &stored)?)?);
            }
        }
        if let Some(nulls) = column.null_count {
            file.null_count.insert(column.column.clone(), RawValue::from_string(nulls.to_string())?);
        }
    }
    serde_json::to_string(&file)
}

fn bound_to_json(value: &StatisticsValue, stored: &DataType) -> Result<String, serde_json::Error> {
    let quoted = |text: &str| serde_json::to_string(text);
    match (value, stored) {
        (StatisticsValue::Text(text), _) => quoted(text),
        // The shortest text that is this number in the type of the column.
        #[expect(clippy::cast_possible_truncation, reason = "the value came from a float of this size")]
        (StatisticsValue::Float(value), DataType::Float32) => serde_json::to_string(&(*value as f32)),
        (StatisticsValue::Float(value), _) => serde_json::to_string(value),
        (StatisticsValue::Integer(value), DataType::Decimal128(_, scale)) => Ok(format_decimal(*value, *scale)),
        (StatisticsValue::Integer(value), DataType::Date32) => {
            quoted(&format_date(i64::try_from(*value).unwrap_or_default()))
        }
        (StatisticsValue::Integer(value), DataType::Timestamp(_, zone)) => {
            quoted(&format_timestamp(i64::try_from(*value).unwrap_or_default(), zone.is_some()))
        }
        (StatisticsValue::Integer(value), _) => Ok(value.to_string()),
    }
}

/// The rows and the statistics that the log has of a file. `is_ours`: this writer wrote it, so that times are not cut to
/// milliseconds. What cannot be read is unknown.
pub(super) fn from_json(text: &str, schema: &Schema, is_ours: bool) -> (Option<u64>, Vec<ColumnStatistics>) {
    let Ok(file) = serde_json::from_str::<FileStatistics>(text) else { return (None, Vec::new()) };
    let mut columns = Vec::new();
    for field in schema.fields() {
        let Ok(stored) = stored_type(field.data_type()) else { continue };
        let bound = |bounds: &BTreeMap<String, Box<RawValue>>, is_maximum: bool| {
            bound_from_json(bounds.get(field.name())?.get(), &stored, is_maximum, is_ours)
        };
        let null_count = file.null_count.get(field.name()).and_then(|count| count.get().parse().ok());
        let (minimum, maximum) = (bound(&file.min_values, false), bound(&file.max_values, true));
        if minimum.is_some() || maximum.is_some() || null_count.is_some() {
            let is_exact = is_ours && is_exact(minimum.as_ref()) && is_exact(maximum.as_ref());
            columns.push(ColumnStatistics { column: field.name().clone(), minimum, maximum, is_exact, null_count });
        }
    }
    (file.num_records, columns)
}

fn bound_from_json(json: &str, stored: &DataType, is_maximum: bool, is_ours: bool) -> Option<StatisticsValue> {
    let text = || serde_json::from_str::<String>(json).ok();
    let integer = |value: i64| StatisticsValue::Integer(i128::from(value));
    match stored {
        DataType::Utf8 => Some(StatisticsValue::Text(text()?.into())),
        DataType::Date32 => parse_date(&text()?).map(integer),
        DataType::Timestamp(_, _) => {
            let value = parse_timestamp(&text()?)?;
            // Other writers cut times to milliseconds; the true maximum may be that much later.
            let is_cut = is_maximum && !is_ours && value % 1_000 == 0;
            Some(integer(if is_cut { value.saturating_add(999) } else { value }))
        }
        // The bounds of other writers may leave NaN out.
        DataType::Float32 | DataType::Float64 if !is_ours => None,
        DataType::Float32 => {
            let value = json.parse::<f32>().ok().filter(|value| value.is_finite())?;
            Some(StatisticsValue::Float(f64::from(value)))
        }
        DataType::Float64 => json.parse::<f64>().ok().filter(|value| value.is_finite()).map(StatisticsValue::Float),
        DataType::Decimal128(_, scale) => parse_decimal(json, *scale).map(StatisticsValue::Integer),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => json.parse::<i64>().ok().map(integer),
        _ => None,
    }
}
