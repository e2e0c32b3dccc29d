//! Which separators the numbers of a text file have, from the values of its columns.
//!
//! Programs write `1234.5`, people also `1.234,5` or `1,234.5`. Only the configuration decides what a number means. Without it,
//! such columns are text, with a note that has the option. If one column has decimal commas, a point in the values of another
//! one (`1.000`) may be between thousands, so that they are text, too.

use std::collections::BTreeMap;

use datafusion::arrow::datatypes::{DataType, Schema};

use super::number_format::NumberFormat;
use super::text_value::{infer_type, type_note, type_reason};

const DECIMAL_COMMA: NumberFormat = NumberFormat { decimal: ',', thousands: Some('.') };
const GROUPING_COMMA: NumberFormat = NumberFormat { decimal: '.', thousands: Some(',') };

/// What the values of a column have in common.
#[derive(Debug, Clone)]
pub(crate) struct NumberEvidence {
    /// Whether all are numbers whose decimal separator is a comma.
    fits_decimal_comma: bool,
    /// Whether all are numbers with commas between thousands, if they have any.
    fits_grouping_comma: bool,
    has_comma: bool,
    has_point: bool,
    /// A value with a comma, or else with a point, and its line, which is 0 if it is not known.
    example: Option<(String, u64)>,
}

impl Default for NumberEvidence {
    fn default() -> Self {
        let (has_comma, has_point, example) = Default::default();
        Self { fits_decimal_comma: true, fits_grouping_comma: true, has_comma, has_point, example }
    }
}

/// What the separators in the numbers of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separators {
    DecimalComma,
    GroupingComma,
    /// `1,234` is either.
    AnyComma,
    /// `1.000` is a number of programs, unless other columns have decimal commas.
    AnyPoint,
}

impl NumberEvidence {
    /// Whether further values may change something.
    pub(crate) fn is_open(&self) -> bool {
        self.fits_decimal_comma || self.fits_grouping_comma
    }

    /// Adds a value of this line, 0 if it is not known. `plain` is its type without a number format.
    pub(crate) fn learn(&mut self, value: &str, plain: &DataType, line: u64) {
        // Without separators, it is a number in every format.
        if *plain == DataType::Int64 || !self.is_open() {
            return;
        }
        let is_number = |format| matches!(infer_type(value, Some(format)), DataType::Int64 | DataType::Float64);
        let (has_comma, has_point) = (value.contains(','), value.contains('.'));
        self.fits_decimal_comma = self.fits_decimal_comma && is_number(DECIMAL_COMMA);
        self.fits_grouping_comma =
            self.fits_grouping_comma && if has_comma { is_number(GROUPING_COMMA) } else { *plain == DataType::Float64 };
        if self.example.is_none() || has_comma && !self.has_comma {
            self.example = Some((value.to_owned(), line));
        }
        self.has_comma |= has_comma;
        self.has_point |= has_point;
    }

    fn separators(&self) -> Option<Separators> {
        match (self.has_comma, self.fits_decimal_comma, self.fits_grouping_comma) {
            (true, true, true) => Some(Separators::AnyComma),
            (true, true, false) => Some(Separators::DecimalComma),
            (true, false, true) => Some(Separators::GroupingComma),
            (false, true, _) if self.has_point => Some(Separators::AnyPoint),
            _ => None,
        }
    }
}

/// Makes columns text whose points may be between thousands, and returns why columns are text, by their positions. `numbers` is
/// the declared format, and `suggest` says where to declare an option.
pub(crate) fn review_separators(
    columns: &[NumberEvidence],
    types: &mut [DataType],
    numbers: Option<NumberFormat>,
    location: &str,
    suggest: impl Fn(&str) -> String,
) -> BTreeMap<usize, String> {
    let any = |separators| columns.iter().any(|column| column.separators() == Some(separators));
    let has_decimal_comma = any(Separators::DecimalComma);
    let is_meant = |column: &NumberEvidence| match column.separators() {
        Some(Separators::AnyPoint) => has_decimal_comma,
        separators => separators.is_some(),
    };
    for (column, data_type) in columns.iter().zip(types.iter_mut()) {
        if is_meant(column) && *data_type == DataType::Float64 && numbers.is_none() {
            *data_type = DataType::Utf8;
        }
    }
    let has_decimal_point = columns
        .iter()
        .zip(types.iter())
        .any(|(column, data_type)| *data_type == DataType::Float64 && !column.fits_decimal_comma);
    let has_grouping_point = columns.iter().any(|column| is_meant(column) && column.has_point);
    let write = |option: &str| format!("write {}", suggest(option));
    let decimal_option = if has_grouping_point { "decimal: \",\", thousands: \".\"" } else { "decimal: \",\"" };
    let advice = match (has_decimal_comma, any(Separators::GroupingComma)) {
        // A table has one format of numbers.
        (true, true) => "the numbers of its columns have different decimal separators".to_owned(),
        (true, false) if has_decimal_point && numbers.is_none() => {
            "the numbers of other columns have a decimal point".to_owned()
        }
        (true, false) => format!("for decimal commas, {}", write(decimal_option)),
        (false, true) => format!("for commas between thousands, {}", write("thousands: \",\"")),
        (false, false) if has_decimal_point => format!("for commas between thousands, {}", write("thousands: \",\"")),
        (false, false) => format!(
            "if commas are between thousands, {}; if they are decimal, {decimal_option}",
            write("thousands: \",\"")
        ),
    };
    // Another format would be wrong for the columns that the declared one fits.
    let is_possible = match numbers {
        None => true,
        Some(declared) => has_decimal_comma && declared == NumberFormat { thousands: None, ..DECIMAL_COMMA },
    };
    let noted = columns
        .iter()
        .zip(types.iter())
        .enumerate()
        .filter(|(_, (column, data_type))| is_possible && is_meant(column) && **data_type == DataType::Utf8);
    let note = |(position, (column, _)): (usize, (&NumberEvidence, &DataType))| {
        let (value, line) = column.example.as_ref()?;
        Some((position, format!("{}; {advice}", type_reason(&DataType::Utf8, value, *line, location))))
    };
    noted.filter_map(note).collect()
}

/// Why a late value of a line of a file gives a column of the type `earlier` the type `wide`, as [`type_note`]. If it makes whole
/// numbers text, no column has a decimal point, and no format of numbers is declared, the note has the option for decimal commas.
pub(crate) fn late_type_note(
    (value, line, location): (&str, u64, &str),
    (earlier, wide): (&DataType, &DataType),
    numbers: Option<NumberFormat>,
    schema: &Schema,
    suggest: impl Fn(&str) -> String,
) -> Option<String> {
    let has_floats = schema.fields().iter().any(|field| *field.data_type() == DataType::Float64);
    let mut notes = BTreeMap::new();
    if (earlier, wide) == (&DataType::Int64, &DataType::Utf8) && !has_floats && numbers.is_none() {
        let mut evidence = NumberEvidence::default();
        evidence.learn(value, &infer_type(value, None), line);
        notes = review_separators(&[evidence], &mut [DataType::Utf8], None, location, suggest);
    }
    notes.remove(&0).or_else(|| type_note(earlier, wide, value, line, location))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;

    use super::super::table_options::suggest_yaml;
    use super::*;

    fn review(columns: &[&[&str]], numbers: Option<NumberFormat>) -> (Vec<DataType>, BTreeMap<usize, String>) {
        let (mut evidence, mut types) = (Vec::new(), Vec::new());
        for values in columns {
            let mut column = NumberEvidence::default();
            let plain: Vec<DataType> = values.iter().map(|value| infer_type(value, None)).collect();
            (2..).zip(values.iter().zip(&plain)).for_each(|(line, (value, plain))| column.learn(value, plain, line));
            let is_float = plain.contains(&DataType::Float64) && !plain.contains(&DataType::Utf8);
            types.push(if is_float { DataType::Float64 } else { DataType::Utf8 });
            evidence.push(column);
        }
        let notes = review_separators(&evidence, &mut types, numbers, "t.csv", |option| suggest_yaml("t.csv", option));
        (types, notes)
    }

    fn note(columns: &[&[&str]]) -> String {
        review(columns, None).1.remove(&0).unwrap_or_default()
    }

    #[test]
    fn notes_have_the_option_for_the_numbers_of_all_columns() {
        assert_eq!(
            note(&[&["12", "1.234,50", "12,5"]]),
            "text, because line 3 of t.csv has \"1.234,50\"; for decimal commas, write in tidegate.yaml, under its \
             database, tables: {t: {decimal: \",\", thousands: \".\"}}"
        );
        assert!(note(&[&["12,5"]]).ends_with("tables: {t: {decimal: \",\"}}"));
        assert!(note(&[&["1,234.5"], &["0.5"]]).ends_with("tables: {t: {thousands: \",\"}}"));
        assert!(note(&[&["1,234"], &["0.5"]]).ends_with("tables: {t: {thousands: \",\"}}"));
        assert!(note(&[&["1,234"]]).contains("if they are decimal, decimal: \",\""));
        assert!(note(&[&["1,5"], &["0.5"]]).ends_with("; the numbers of other columns have a decimal point"));
        for text in ["a,b", "1,5 m", "1.2.3", "10,20,30", "00,5"] {
            assert_eq!(note(&[&[text]]), "", "{text}");
        }
    }

    #[test]
    fn points_are_decimal_unless_other_columns_have_decimal_commas() {
        let thousands: &[&str] = &["1.000", "2.500"];
        assert_eq!(review(&[thousands], None).0, [DataType::Float64]);
        let (types, notes) = review(&[thousands, &["12,5"]], None);
        assert_eq!(types, [DataType::Utf8, DataType::Utf8]);
        assert!(notes.values().all(|note| note.ends_with("{decimal: \",\", thousands: \".\"}}")), "{notes:?}");
        assert_eq!(notes.len(), 2);
        let (types, _) = review(&[&["0.25"], &["12,5"]], None);
        assert_eq!(types, [DataType::Float64, DataType::Utf8]);
    }

    #[test]
    fn a_late_comma_among_whole_numbers_has_the_option() {
        let note = |value: &str, column: DataType| {
            let schema =
                Schema::new(vec![Field::new("a", column.clone(), true), Field::new("b", DataType::Utf8, true)]);
            let suggest = |option: &str| suggest_yaml("t.csv", option);
            late_type_note((value, 7, "t.csv"), (&column, &DataType::Utf8), None, &schema, suggest).unwrap()
        };
        let plain = "text, because line 7 of t.csv has";
        assert!(note("12,5", DataType::Int64).ends_with("tables: {t: {decimal: \",\"}}"));
        assert_eq!(note("12,5", DataType::Float64), format!("{plain} \"12,5\""));
        assert_eq!(note("x", DataType::Int64), format!("{plain} \"x\""));
    }

    #[test]
    fn a_declared_format_is_completed_only() {
        let comma = NumberFormat { decimal: ',', thousands: None };
        let (_, notes) = review(&[&["1.234,5"]], Some(comma));
        assert!(notes.values().all(|note| note.ends_with("{decimal: \",\", thousands: \".\"}}")) && notes.len() == 1);
        let swiss = NumberFormat { decimal: '.', thousands: Some('\'') };
        assert_eq!(review(&[&["1.234,5"]], Some(swiss)).1, BTreeMap::new());
    }
}
