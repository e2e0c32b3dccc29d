//! Infers the types of the columns of a CSV file from values.

use std::collections::BTreeSet;

use datafusion::arrow::array::{Array, RecordBatch, StringArray};
use datafusion::arrow::compute::kernels::cast_utils::Parser;
use datafusion::arrow::datatypes::{DataType, Date32Type, Float64Type, Int64Type, TimestampMicrosecondType};

use super::super::number_format::{NumberFormat, is_null_marker};
use super::super::type_widening::{CoercionMode, TEXT_TIMESTAMP, wider};

#[derive(Debug)]
pub(super) struct ColumnTypes {
    /// `Null` if no value determines the type.
    pub(super) types: Vec<DataType>,
    /// Positions of columns that contain null markers.
    null_marker_columns: BTreeSet<usize>,
    numbers: Option<NumberFormat>,
    accepts_null_markers: bool,
}

impl ColumnTypes {
    pub(super) fn new(columns: usize, numbers: Option<NumberFormat>, accepts_null_markers: bool) -> Self {
        let (types, null_marker_columns) = (vec![DataType::Null; columns], BTreeSet::new());
        Self { types, null_marker_columns, numbers, accepts_null_markers }
    }

    /// Widens the types to hold the values of `sample`, whose columns are text.
    pub(super) fn learn(&mut self, sample: &RecordBatch) {
        for (position, column) in sample.columns().iter().enumerate() {
            let Some(values) = column.as_any().downcast_ref::<StringArray>() else { continue };
            for value in values.iter().flatten() {
                if self.types.get(position) == Some(&DataType::Utf8) {
                    break;
                }
                self.learn_value(position, value);
            }
        }
    }

    pub(super) fn learn_value(&mut self, position: usize, value: &str) {
        if self.accepts_null_markers && is_null_marker(value) {
            self.null_marker_columns.insert(position);
        } else if let Some(data_type) = self.types.get_mut(position) {
            *data_type =
                wider(data_type, &infer_type(value, self.numbers), CoercionMode::ToText).unwrap_or(DataType::Utf8);
        }
    }

    pub(super) fn typed_null_marker_columns<'a>(&self, names: &'a [String]) -> impl Iterator<Item = &'a String> {
        let has_type = |position: &&usize| !matches!(self.types.get(**position), Some(DataType::Utf8 | DataType::Null));
        self.null_marker_columns.iter().filter(has_type).filter_map(|position| names.get(*position))
    }

    /// Whether `first`, the first line, contains values and not names: there are typed columns, and its values fit all
    /// of them.
    pub(super) fn is_row_of_values(&self, first: &[String]) -> bool {
        let typed =
            || self.types.iter().zip(first).filter(|(kind, _)| !matches!(kind, DataType::Utf8 | DataType::Null));
        let fits = |(kind, value): (&DataType, &String)| {
            let found = infer_type(value, self.numbers);
            value.is_empty() || wider(kind, &found, CoercionMode::ToText).as_ref() == Some(kind)
        };
        // Columns are often named after years.
        let is_year = |(_, value): (&DataType, &String)| {
            value.len() == 4 && value.parse().is_ok_and(|year: i32| (1800..2200).contains(&year))
        };
        first.len() == self.types.len()
            && typed().any(|(_, value)| !value.is_empty())
            && typed().all(fits)
            && !typed().all(is_year)
    }
}

pub(crate) fn infer_type(value: &str, format: Option<NumberFormat>) -> DataType {
    let Some(format) = format else { return infer_plain_type(value) };
    if let Some(number) = format.normalize(value) {
        return infer_plain_type(&number);
    }
    match infer_plain_type(value) {
        // It would be read as a different number than the other values.
        DataType::Int64 | DataType::Float64 => DataType::Utf8,
        other => other,
    }
}

/// The narrowest type that the reader parses `value` as.
fn infer_plain_type(value: &str) -> DataType {
    let digits = value.strip_prefix('-').unwrap_or(value);
    // Digits with a leading zero are a code. As a number they would lose the zeros.
    let is_code = digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_padded = value.trim().len() != value.len();
    let is_word = digits.bytes().all(|byte| byte.is_ascii_alphabetic());
    if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") {
        DataType::Boolean
    } else if is_code || is_padded || value.starts_with('+') || (is_word && !matches!(digits, "NaN" | "nan" | "inf")) {
        DataType::Utf8
    } else if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // Integers beyond 64 bits stay text, exactly.
        if Int64Type::parse(value).is_some() { DataType::Int64 } else { DataType::Utf8 }
    } else if Float64Type::parse(value).is_some() {
        DataType::Float64
    } else if value.len() == 10 && Date32Type::parse(value).is_some() {
        DataType::Date32
    } else if value.len() > 10 && TimestampMicrosecondType::parse(value).is_some() {
        TEXT_TIMESTAMP
    } else {
        DataType::Utf8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infers_types_from_values() {
        let cases = [
            ("12", DataType::Int64),
            ("-7", DataType::Int64),
            ("0", DataType::Int64),
            ("007", DataType::Utf8),
            ("99999999999999999999", DataType::Utf8),
            ("1.5", DataType::Float64),
            ("-1e3", DataType::Float64),
            ("NaN", DataType::Float64),
            ("infinity", DataType::Utf8),
            ("True", DataType::Boolean),
            ("2024-02-29", DataType::Date32),
            ("2024-02-30", DataType::Utf8),
            ("2024-02-29 10:00:00", TEXT_TIMESTAMP),
            ("2024-02-29T10:00:00.123456Z", TEXT_TIMESTAMP),
            ("-", DataType::Utf8),
            (" 1", DataType::Utf8),
            ("+1", DataType::Utf8),
            ("NA", DataType::Utf8),
        ];
        for (value, expected) in cases {
            assert_eq!(infer_type(value, None), expected, "{value}");
        }
    }

    #[test]
    fn markers_are_null_where_the_rest_has_a_type() {
        let mut columns = ColumnTypes::new(3, None, true);
        for (position, value) in [(0, "1"), (0, "N/A"), (1, "NA"), (1, "DE"), (2, "-")] {
            columns.learn_value(position, value);
        }
        assert_eq!(columns.types, [DataType::Int64, DataType::Utf8, DataType::Null]);
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(columns.typed_null_marker_columns(&names).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn first_line_of_values_is_not_a_header() {
        let mut columns = ColumnTypes::new(2, None, true);
        columns.learn_value(0, "x");
        columns.learn_value(1, "5");
        let line = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        assert!(columns.is_row_of_values(&line("y", "7")));
        assert!(!columns.is_row_of_values(&line("name", "count")));
        assert!(!columns.is_row_of_values(&line("name", "2024")), "a year is a name");
        assert!(!ColumnTypes::new(2, None, true).is_row_of_values(&line("a", "b")), "nothing has a type");
    }

    #[test]
    fn numbers_of_another_format_stay_text() {
        let german = Some(NumberFormat { decimal: ',', thousands: Some('.') });
        assert_eq!(infer_type("1.234,5", german), DataType::Float64);
        assert_eq!(infer_type("1.234", german), DataType::Int64);
        assert_eq!(infer_type("12.34", german), DataType::Utf8);
        assert_eq!(infer_type("2024-02-29", german), DataType::Date32);
    }
}
