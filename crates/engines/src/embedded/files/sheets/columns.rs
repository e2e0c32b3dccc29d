//! Columns of a sheet: names from the first row, types from the cells.

use std::sync::Arc;

use calamine::Data;
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Schema};

use super::super::names::column_names;
use super::super::number_format::is_null_marker;
use super::super::table_options::TextTableOptions;
use super::super::type_widening::{CoercionMode, TEXT_TIMESTAMP, replace_null_type, wider};

/// Beyond this, a float cannot represent every integer.
const EXACT_INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

enum CellValue {
    Null,
    Integer(i64),
    Number(f64),
    Boolean(bool),
    Date(NaiveDate),
    DateTime(NaiveDateTime),
    Text(String),
}

impl CellValue {
    fn from_cell(cell: Data) -> Self {
        match cell {
            Data::Empty => Self::Null,
            Data::Int(number) => Self::Integer(number),
            #[allow(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
            Data::Float(number) if number.fract() == 0.0 && number.abs() <= EXACT_INTEGER_MAX => {
                Self::Integer(number as i64)
            }
            Data::Float(number) => Self::Number(number),
            Data::Bool(truth) => Self::Boolean(truth),
            Data::DateTime(moment) if !moment.is_duration() && moment.as_f64() >= 1.0 => match moment.as_datetime() {
                Some(moment) => Self::from_datetime(moment),
                None => Self::Number(moment.as_f64()),
            },
            // A time of day or a duration.
            Data::DateTime(time) => match time.as_duration() {
                Some(time) => {
                    let seconds = time.num_seconds();
                    Self::Text(format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60))
                }
                None => Self::Number(time.as_f64()),
            },
            Data::DateTimeIso(text) => match text.parse::<NaiveDateTime>() {
                Ok(moment) => Self::from_datetime(moment),
                Err(_) => text.parse().map_or(Self::Text(text), Self::Date),
            },
            Data::DurationIso(text) | Data::String(text) => Self::Text(text),
            // Formula errors such as `#N/A` are null.
            Data::Error(_) => Self::Null,
        }
    }

    fn from_datetime(moment: NaiveDateTime) -> Self {
        if moment.time() == NaiveTime::MIN { Self::Date(moment.date()) } else { Self::DateTime(moment) }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Null => DataType::Null,
            Self::Integer(_) => DataType::Int64,
            Self::Number(_) => DataType::Float64,
            Self::Boolean(_) => DataType::Boolean,
            Self::Date(_) => DataType::Date32,
            Self::DateTime(_) => TEXT_TIMESTAMP,
            Self::Text(_) => DataType::Utf8,
        }
    }

    fn text(&self) -> Option<String> {
        Some(match self {
            Self::Null => return None,
            Self::Integer(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Boolean(truth) => truth.to_string(),
            Self::Date(day) => day.to_string(),
            Self::DateTime(moment) => moment.format("%Y-%m-%dT%H:%M:%S%.f").to_string(),
            Self::Text(text) => text.clone(),
        })
    }

    /// Whether it is a year, which may name a column.
    fn is_year(&self) -> bool {
        matches!(self, Self::Integer(year) if (1800..2200).contains(year))
    }
}

/// A column, and whether texts such as `N/A` mean null in it.
struct SheetColumn {
    values: Vec<CellValue>,
    data_type: DataType,
}

impl SheetColumn {
    fn from_values(values: Vec<CellValue>, options: &TextTableOptions) -> Self {
        let is_marker = |text: &str| options.null.is_none() && is_null_marker(text);
        let is_null = |text: &String| options.null.as_ref().is_some_and(|nulls| nulls.contains(text));
        let without_nulls = |value| match value {
            CellValue::Text(text) if text.is_empty() || is_null(&text) => CellValue::Null,
            value => value,
        };
        let values: Vec<CellValue> = values.into_iter().map(without_nulls).collect();
        let mut data_type = DataType::Null;
        for value in &values {
            if !matches!(value, CellValue::Text(text) if is_marker(text)) {
                data_type = wider(&data_type, &value.data_type(), CoercionMode::ToText).unwrap_or(DataType::Utf8);
            }
        }
        Self { values, data_type: replace_null_type(&data_type) }
    }

    fn into_array(self) -> ArrayRef {
        let values = self.values.into_iter();
        match self.data_type {
            DataType::Int64 => {
                let number = |value| if let CellValue::Integer(number) = value { Some(number) } else { None };
                Arc::new(values.map(number).collect::<Int64Array>())
            }
            DataType::Float64 => {
                #[allow(clippy::cast_precision_loss, reason = "it came from a float")]
                let number = |value| match value {
                    CellValue::Integer(number) => Some(number as f64),
                    CellValue::Number(number) => Some(number),
                    _ => None,
                };
                Arc::new(values.map(number).collect::<Float64Array>())
            }
            DataType::Boolean => {
                let truth = |value| if let CellValue::Boolean(truth) = value { Some(truth) } else { None };
                Arc::new(values.map(truth).collect::<BooleanArray>())
            }
            DataType::Date32 => {
                let day = |value| match value {
                    CellValue::Date(day) => i32::try_from((day - NaiveDate::default()).num_days()).ok(),
                    _ => None,
                };
                Arc::new(values.map(day).collect::<Date32Array>())
            }
            DataType::Timestamp(..) => {
                let moment = |value| match value {
                    CellValue::Date(day) => Some(day.and_time(NaiveTime::MIN).and_utc().timestamp_micros()),
                    CellValue::DateTime(moment) => Some(moment.and_utc().timestamp_micros()),
                    _ => None,
                };
                Arc::new(values.map(moment).collect::<TimestampMicrosecondArray>())
            }
            _ => Arc::new(values.map(|value| value.text()).collect::<StringArray>()),
        }
    }
}

/// The table of `rows`. The first row names the columns unless its cells are values.
pub(super) fn build_sheet_batch(rows: Vec<Vec<Data>>, options: &TextTableOptions) -> Result<RecordBatch, String> {
    let is_blank = |row: &Vec<Data>| row.iter().all(|cell| *cell == Data::Empty);
    let mut rows = rows.into_iter().filter(|row| !is_blank(row));
    let first: Vec<CellValue> = rows.next().unwrap_or_default().into_iter().map(CellValue::from_cell).collect();
    let mut cells: Vec<Vec<CellValue>> = first.iter().map(|_| Vec::new()).collect();
    for row in rows {
        cells.iter_mut().zip(row).for_each(|(column, cell)| column.push(CellValue::from_cell(cell)));
    }
    let has_header = options.has_header.unwrap_or_else(|| !is_row_of_values(&first));
    let header: Vec<String> = first.iter().map(|value| value.text().unwrap_or_default()).collect();
    let names = column_names(&header, has_header);
    if !has_header {
        cells.iter_mut().zip(first).for_each(|(column, value)| column.insert(0, value));
    }
    options.check_columns(&names)?;
    let columns = cells.into_iter().map(|values| SheetColumn::from_values(values, options)).collect();
    build_batch(names, columns, options)
}

/// Whether the first row contains values and not names: most of its cells are neither text nor a year.
fn is_row_of_values(first: &[CellValue]) -> bool {
    let is_value = |value: &&CellValue| !matches!(value, CellValue::Null | CellValue::Text(_)) && !value.is_year();
    let cells = first.iter().filter(|value| !matches!(value, CellValue::Null)).count();
    first.iter().filter(is_value).count() * 2 > cells
}

fn build_batch(
    names: Vec<String>,
    columns: Vec<SheetColumn>,
    table_options: &TextTableOptions,
) -> Result<RecordBatch, String> {
    let rows = columns.first().map_or(0, |column| column.values.len());
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (name, column) in names.into_iter().zip(columns) {
        let array = match table_options.columns.get(&name).map(|kind| kind.data_type()) {
            Some(data_type) if data_type != column.data_type => {
                let texts: ArrayRef = Arc::new(column.values.iter().map(CellValue::text).collect::<StringArray>());
                let options = CastOptions { safe: false, ..CastOptions::default() };
                cast_with_options(&texts, &data_type, &options)
                    .map_err(|error| format!("column {name:?} does not have the configured type: {error}"))?
            }
            _ => column.into_array(),
        };
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: Vec<Vec<Data>>) -> String {
        let batch = build_sheet_batch(rows, &TextTableOptions::default()).unwrap();
        let schema = batch.schema();
        let columns = schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
        format!("{}: {} rows", columns.collect::<Vec<_>>().join(", "), batch.num_rows())
    }

    #[test]
    fn names_and_types_come_from_cells() {
        let text = |text: &str| Data::String(text.to_owned());
        let rows = vec![
            vec![text("id"), text("price"), Data::Float(2024.0), text("note")],
            vec![Data::Float(1.0), Data::Float(1.5), Data::Float(3.0), text("007")],
            vec![Data::Float(2.0), text("n/a"), Data::Empty, Data::Bool(true)],
        ];
        assert_eq!(table(rows.clone()), "id Int64, price Float64, 2024 Int64, note Utf8: 2 rows");
        assert_eq!(
            table(rows[1..].to_vec()),
            "column_1 Int64, column_2 Float64, column_3 Int64, column_4 Utf8: 2 rows"
        );
    }
}
