//! Columns of a sheet: names from the first row, types from the cells.

use std::collections::BTreeMap;
use std::sync::Arc;

use calamine::Data;
use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use datafusion::arrow::array::{
    ArrayRef, AsArray as _, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use tidegate_query::field_type_name;

use super::column_type::{CoercionMode, ColumnType, TEXT_TIMESTAMP, replace_null_type, wider};
use super::names::column_names;
use super::number_format::{NumberEvidence, NumberFormat, ReviewedColumn, is_null_marker, review_separators};
use super::table_options::TextTableOptions;
use super::text_value::{ColumnValues, TextReading, TypeOrigin, infer_type, parse_float, parse_integer};

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
            // No day is before the first one.
            Data::DateTime(moment) if !moment.is_duration() && moment.as_f64() < 0.0 => Self::Number(moment.as_f64()),
            // A time of day or a duration.
            Data::DateTime(time) => match time.as_duration() {
                Some(time) => Self::Text(clock_text(time)),
                None => Self::Number(time.as_f64()),
            },
            Data::DateTimeIso(text) => match text.parse::<NaiveDateTime>() {
                Ok(moment) => Self::from_datetime(moment),
                Err(_) => text.parse().map_or(Self::Text(text), Self::Date),
            },
            Data::DurationIso(text) => Self::Text(parse_duration(&text).map_or(text, clock_text)),
            Data::String(text) => Self::Text(text),
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

    /// The type, where texts that are numbers in a declared format are numbers.
    fn type_in(&self, numbers: Option<NumberFormat>) -> DataType {
        match (self, numbers) {
            (Self::Text(text), Some(format)) => {
                let number = format.normalize(text);
                let is_float = number.is_some_and(|number| parse_float(&number, TypeOrigin::Inferred).is_some());
                match infer_type(text, numbers) {
                    number @ (DataType::Int64 | DataType::Float64) if is_float => number,
                    _ => DataType::Utf8,
                }
            }
            _ => self.data_type(),
        }
    }

    /// Whether it is a year, which may name a column.
    fn is_year(&self) -> bool {
        matches!(self, Self::Integer(year) if (1800..2200).contains(year))
    }
}

/// A time of day or a duration as `HH:MM:SS`, with the fraction of its last second if there is one.
fn clock_text(time: TimeDelta) -> String {
    let (sign, time) = if time < TimeDelta::zero() { ("-", time.abs()) } else { ("", time) };
    let seconds = time.num_seconds();
    let clock = format!("{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match time.subsec_nanos() {
        0 => clock,
        nanoseconds => format!("{clock}.{nanoseconds:09}").trim_end_matches('0').to_owned(),
    }
}

/// Parses a duration of an `.ods` file, such as `PT10H30M15.5S` (XML Schema Part 2, 3.2.6), without years and months.
fn parse_duration(text: &str) -> Option<TimeDelta> {
    let (is_negative, parts) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (days, clock) = parts.strip_prefix('P')?.split_once('T')?;
    let (mut rest, mut seconds) = (clock, 0_i64);
    if !days.is_empty() {
        seconds = days.strip_suffix('D')?.parse::<u32>().ok().map(i64::from)?.checked_mul(86_400)?;
    }
    for (unit, of_unit) in [('H', 3_600), ('M', 60)] {
        if let Some((number, after)) = rest.split_once(unit) {
            seconds = seconds.checked_add(i64::from(number.parse::<u32>().ok()?) * of_unit)?;
            rest = after;
        }
    }
    let mut nanoseconds = 0;
    if !rest.is_empty() {
        let (whole, fraction) = rest.strip_suffix('S')?.split_once('.').unwrap_or((rest.strip_suffix('S')?, ""));
        if fraction.len() > 9 || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        nanoseconds = format!("{fraction:0<9}").parse().ok()?;
        seconds = seconds.checked_add(i64::from(whole.parse::<u32>().ok()?))?;
    }
    let time = TimeDelta::new(seconds, nanoseconds)?;
    Some(if is_negative { -time } else { time })
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
                data_type =
                    wider(&data_type, &value.type_in(options.numbers), CoercionMode::ToText).unwrap_or(DataType::Utf8);
            }
        }
        Self { values, data_type: replace_null_type(&data_type) }
    }

    /// The values with their own type. `numbers` is the declared format of texts that are numbers.
    fn into_array(self, numbers: Option<NumberFormat>) -> ArrayRef {
        let values = self.values.into_iter();
        let written = |text: &str| numbers?.normalize(text);
        match self.data_type {
            DataType::Int64 => {
                let number = |value| match value {
                    CellValue::Integer(number) => Some(number),
                    CellValue::Text(text) => parse_integer(&written(&text)?, TypeOrigin::Inferred),
                    _ => None,
                };
                Arc::new(values.map(number).collect::<Int64Array>())
            }
            DataType::Float64 => {
                #[allow(clippy::cast_precision_loss, reason = "it came from a float")]
                let number = |value| match value {
                    CellValue::Integer(number) => Some(number as f64),
                    CellValue::Number(number) => Some(number),
                    CellValue::Text(text) => parse_float(&written(&text)?, TypeOrigin::Inferred),
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

/// The table of `rows`, which `rows_before` rows of the sheet precede. The first row names the columns unless its cells are
/// values.
pub(super) fn build_sheet_batch(
    rows: Vec<Vec<Data>>,
    rows_before: usize,
    options: &TextTableOptions,
) -> Result<RecordBatch, String> {
    let is_blank = |row: &Vec<Data>| row.iter().all(|cell| *cell == Data::Empty);
    let mut rows = (rows_before + 1..).zip(rows).filter(|(_, row)| !is_blank(row));
    let (first_number, first) = rows.next().unwrap_or_default();
    let first: Vec<CellValue> = first.into_iter().map(CellValue::from_cell).collect();
    let mut cells: Vec<Vec<CellValue>> = first.iter().map(|_| Vec::new()).collect();
    let mut row_numbers = Vec::new();
    for (number, row) in rows {
        row_numbers.push(number);
        cells.iter_mut().zip(row).for_each(|(column, cell)| column.push(CellValue::from_cell(cell)));
    }
    let has_header = options.has_header.unwrap_or_else(|| !is_row_of_values(&first));
    let header: Vec<String> = first.iter().map(|value| value.text().unwrap_or_default()).collect();
    let names = column_names(&header, has_header);
    if !has_header {
        cells.iter_mut().zip(first).for_each(|(column, value)| column.insert(0, value));
        row_numbers.insert(0, first_number);
    }
    options.check_columns(&names)?;
    let columns = cells.into_iter().map(|values| SheetColumn::from_values(values, options)).collect();
    build_batch(names, columns, &row_numbers, options)
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
    row_numbers: &[usize],
    table_options: &TextTableOptions,
) -> Result<RecordBatch, String> {
    let rows = columns.first().map_or(0, |column| column.values.len());
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (name, column) in names.into_iter().zip(columns) {
        let array = match table_options.columns.get(&name) {
            // The format of a column replaces that of the table, by which its type was found.
            Some(declared) if declared.number_format().is_some() || declared.data_type() != column.data_type => {
                declared_array(&name, declared, &column.values, row_numbers, table_options)?
            }
            _ => column.into_array(table_options.numbers),
        };
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|error| error.to_string())
}

/// The cells of a column with a declared type. Its form and the format of numbers are those of texts.
fn declared_array(
    name: &str,
    declared: &ColumnType,
    cells: &[CellValue],
    row_numbers: &[usize],
    options: &TextTableOptions,
) -> Result<ArrayRef, String> {
    let data_type = declared.data_type();
    let is_marker = |text: &str| options.null.is_none() && data_type != DataType::Utf8 && is_null_marker(text);
    let of_texts = TextReading::new(Some(declared), &data_type, options.numbers);
    let of_others = TextReading::new(Some(declared.plain()), &data_type, None);
    let mut values = ColumnValues::new(&data_type);
    for (cell, row) in cells.iter().zip(row_numbers) {
        let appended = match cell {
            CellValue::Text(text) if !is_marker(text) => values.append(text, &of_texts),
            CellValue::Null | CellValue::Text(_) => {
                values.append_null();
                continue;
            }
            CellValue::Number(number) if matches!(data_type, DataType::Decimal128(..)) => {
                values.append(&displayed_number(*number), &of_others)
            }
            other => values.append(&other.text().unwrap_or_default(), &of_others),
        };
        if appended.is_none() {
            let type_name = field_type_name(&Field::new(name, data_type, true));
            // Reasons are in the log, where values of files do not belong.
            return Err(format!(
                "the cell in row {row} of column {name:?} does not have the type and the form that the configuration \
                 declares: {type_name}"
            ));
        }
    }
    Ok(values.finish())
}

/// Why columns of the sheet `sheet` are text whose cells are texts of numbers, by name. `suggest` says where to declare an
/// option.
pub(super) fn number_notes(
    rows: &RecordBatch,
    options: &TextTableOptions,
    sheet: &str,
    suggest: impl Fn(&str) -> String,
) -> BTreeMap<String, String> {
    let schema = rows.schema();
    let (mut columns, location) = (Vec::new(), format!("the sheet {sheet:?}"));
    for (field, column) in schema.fields().iter().zip(rows.columns()) {
        // Options of numbers are for texts only.
        let texts = column.as_string_opt::<i32>();
        let mut evidence = NumberEvidence::default();
        for text in texts.into_iter().flat_map(|texts| texts.iter().flatten()) {
            if options.null.is_some() || !is_null_marker(text) {
                evidence.learn(text, &infer_type(text, None), 0);
            }
        }
        let evidence = evidence.at_location(&location);
        let is_declared = options.columns.contains_key(field.name());
        columns.push(ReviewedColumn {
            name: field.name(),
            evidence: if is_declared { evidence.declared() } else { evidence },
            data_type: texts.map_or(DataType::Null, |_| DataType::Utf8),
        });
    }
    let notes = review_separators(&mut columns, options.numbers, false, suggest);
    notes.into_iter().map(|(position, note)| (schema.field(position).name().clone(), note)).collect()
}

/// A number with the 15 digits that programs for sheets show: 0.1 + 0.2 is 0.3.
fn displayed_number(number: f64) -> String {
    format!("{number:.14e}").parse::<f64>().unwrap_or(number).to_string()
}

#[cfg(test)]
mod tests {
    use calamine::{ExcelDateTime, ExcelDateTimeType};
    use datafusion::arrow::compute::cast;

    use super::*;

    fn table(rows: Vec<Vec<Data>>) -> String {
        let batch = build_sheet_batch(rows, 0, &TextTableOptions::default()).unwrap();
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

    #[test]
    fn times_of_day_and_durations_keep_their_sign_and_fraction() {
        let days = |days: f64| Data::DateTime(ExcelDateTime::new(days, ExcelDateTimeType::TimeDelta, false));
        let iso = |text: &str| Data::DurationIso(text.to_owned());
        let text = |cell: Data| CellValue::from_cell(cell).text().unwrap();
        assert_eq!(text(days(0.437_679_398_148_148_15)), "10:30:15.5");
        assert_eq!(text(days(1.5)), "36:00:00");
        assert_eq!(text(days(-0.25)), "-06:00:00");
        let before_the_first_day = ExcelDateTime::new(-1.2, ExcelDateTimeType::DateTime, false);
        assert_eq!(text(Data::DateTime(before_the_first_day)), "-1.2");
        for (written, read) in [
            ("PT10H30M15S", "10:30:15"),
            ("PT10H30M15.500000000S", "10:30:15.5"),
            ("-PT0H0M0.25S", "-00:00:00.25"),
            ("P1DT2H", "26:00:00"),
            ("PT5M", "00:05:00"),
            // No form of a duration that has hours: the text stays as it is.
            ("P1M", "P1M"),
            ("PT1.5H", "PT1.5H"),
            ("PT-1S", "PT-1S"),
        ] {
            assert_eq!(text(iso(written)), read);
        }
    }

    #[test]
    fn texts_of_numbers_have_a_note_with_the_option() {
        let text = |text: &str| Data::String(text.to_owned());
        let rows =
            vec![vec![text("price"), text("note")], vec![text("12,5"), text("a")], vec![text("n/a"), text("1,5")]];
        let options = TextTableOptions::default();
        let batch = build_sheet_batch(rows, 0, &options).unwrap();
        let suggest = |option: &str| format!("tables: {{budget_Plan: {{{option}}}}}");
        let notes = number_notes(&batch, &options, "Plan", suggest);
        assert_eq!(notes.len(), 1);
        assert!(
            notes["price"].starts_with("text, because the sheet \"Plan\" has \"12,5\"; for decimal commas, write ")
        );
        assert!(notes["price"].ends_with("tables: {budget_Plan: {decimal: \",\"}}"), "{notes:?}");
    }

    #[test]
    fn declared_types_and_numbers_read_the_texts_of_cells() {
        let text = |text: &str| Data::String(text.to_owned());
        let rows = vec![
            vec![text("day"), text("price"), text("sum")],
            vec![text("15.06.2025"), text("1.234,50"), Data::Float(0.1 + 0.2)],
            vec![],
            vec![Data::DateTimeIso("2025-06-16".to_owned()), Data::Float(12.5), text("n/a")],
        ];
        let types = [("day", "date DD.MM.YYYY"), ("sum", "decimal(5,2)")];
        let types = types.map(|(name, text)| (name.to_owned(), ColumnType::parse(text).unwrap()));
        let numbers = Some(NumberFormat { decimal: ',', thousands: Some('.') });
        let options = TextTableOptions { columns: types.into(), numbers, ..TextTableOptions::default() };
        let batch = build_sheet_batch(rows.clone(), 0, &options).unwrap();
        let values = |batch: &RecordBatch, column: usize| {
            let texts = cast(batch.column(column), &DataType::Utf8).unwrap();
            texts.as_string::<i32>().iter().map(|text| text.unwrap_or("null").to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(values(&batch, 0), "2025-06-15 2025-06-16");
        assert_eq!(values(&batch, 1), "1234.5 12.5");
        assert_eq!(values(&batch, 2), "0.30 null");
        // The format of a column replaces that of the table.
        let types = [("price".to_owned(), ColumnType::parse("number 1,234.5").unwrap())];
        let decimal_comma = Some(NumberFormat { decimal: ',', thousands: None });
        let options = TextTableOptions { columns: types.into(), numbers: decimal_comma, ..TextTableOptions::default() };
        let prices = vec![vec![text("price")], vec![text("1,234")], vec![Data::Float(12.5)]];
        let batch = build_sheet_batch(prices, 0, &options).unwrap();
        assert_eq!(values(&batch, 0), "1234.0 12.5");
        let wrong = [("day".to_owned(), ColumnType::Date)];
        let options = TextTableOptions { columns: wrong.into(), ..TextTableOptions::default() };
        assert_eq!(
            build_sheet_batch(rows, 3, &options).unwrap_err(),
            "the cell in row 5 of column \"day\" does not have the type and the form that the configuration declares: date"
        );
    }
}
