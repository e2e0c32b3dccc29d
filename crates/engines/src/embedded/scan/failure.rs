//! What rows of a text file teach when they cannot be read as their column's type.

use std::fmt;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::error::ArrowError;

use tidegate_query::type_name;

use crate::embedded::files::{Compression, Learned, TextTable, problem_of};

/// Why a file could not be read to its end, written for callers.
#[derive(Debug)]
pub(crate) struct ReadFailure {
    message: String,
    hint: Option<&'static str>,
}

impl ReadFailure {
    pub(crate) fn new(message: String) -> Self {
        Self { message, hint: None }
    }

    /// What would mend the call.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        self.hint
    }
}

impl fmt::Display for ReadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadFailure {}

/// What callers are told when a column was widened.
const ASK_AGAIN: &str = "The column's type is corrected now: ask again, and look at the table's schema first.";

/// A value that its column's type does not hold.
struct Misfit<'a> {
    column: &'a str,
    value: &'a str,
    /// Where it stands, if the reader tells.
    row: Option<&'a str>,
}

/// Explains `error`, which came up in the file at `location` with columns of `schema`, and
/// remembers what it teaches about a column.
pub(crate) fn explain(
    error: &ArrowError,
    location: &str,
    schema: &Schema,
    compression: Compression,
    learned: &Learned,
    told: &TextTable,
) -> ReadFailure {
    let text = match error {
        ArrowError::IoError(_, error) => {
            return ReadFailure::new(format!("the file {location} cannot be read: {}", problem_of(error, compression)));
        }
        ArrowError::CsvError(text) | ArrowError::ParseError(text) | ArrowError::JsonError(text) => text.as_str(),
        other => return ReadFailure::new(format!("the file {location} cannot be read: {other}")),
    };
    let Some(misfit) = csv_misfit(text, schema).or_else(|| json_misfit(text)) else {
        return ReadFailure::new(format!("the file {location} cannot be read: {text}"));
    };
    let known = schema.field_with_name(misfit.column).map(|field| field.data_type().clone()).unwrap_or(DataType::Null);
    let wide = wide_enough(&known, misfit.value);
    let place = misfit.row.map(|row| format!("row {row} of ")).unwrap_or_default();
    let is_told = told.columns.contains_key(misfit.column);
    let why = if is_told { "the configuration makes" } else { "was taken for" };
    let since = if is_told { "" } else { " after its first rows" };
    let message = format!(
        "{place}the file {location} has {} in column {:?}, which {why} {}{since}",
        misfit.value,
        misfit.column,
        type_name(&known),
    );
    if is_told || known.is_nested() || known == wide {
        return ReadFailure::new(message);
    }
    learned.learn(location, misfit.column, wide);
    ReadFailure { message, hint: Some(ASK_AGAIN) }
}

/// The type that holds both a column's values so far and `value`.
fn wide_enough(known: &DataType, value: &str) -> DataType {
    let is_number = value.trim_matches(['"', '\'']).parse::<f64>().is_ok();
    if *known == DataType::Int64 && is_number { DataType::Float64 } else { DataType::Utf8 }
}

/// Reads `Error while parsing value 'x' as type 'Int64' for column 3 at line 7. Row data: …` and
/// `Error parsing column 3 at line 7: …`.
fn csv_misfit<'a>(text: &'a str, schema: &'a Schema) -> Option<Misfit<'a>> {
    let (value, rest) = match text.strip_prefix("Error while parsing value ") {
        Some(rest) => {
            let (value, rest) = rest.split_once(" as type ")?;
            (value, rest.split_once(" for column ")?.1)
        }
        None => {
            let rest = text.strip_prefix("Error parsing column ")?;
            ("a value that is no date", rest)
        }
    };
    let (index, rest) = rest.split_once(" at line ")?;
    let row = rest.split(|character: char| !character.is_ascii_digit()).next()?;
    let column = schema.fields().get(index.parse::<usize>().ok()?)?.name();
    Some(Misfit { column, value, row: Some(row) })
}

/// Reads `whilst decoding field 'x': failed to parse "y" as Int64` and `… expected … got y`.
fn json_misfit(text: &str) -> Option<Misfit<'_>> {
    let rest = text.strip_prefix("whilst decoding field '")?;
    let (column, reason) = rest.split_once("': ")?;
    let value = match reason.strip_prefix("failed to parse ") {
        Some(rest) => rest.rsplit_once(" as ")?.0,
        None => reason.split_once(" got ")?.1,
    };
    Some(Misfit { column, value: shortened(value), row: None })
}

/// Characters of a value that a message shows.
const VALUE_CHARACTERS_MAX: usize = 60;

fn shortened(value: &str) -> &str {
    match value.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => &value[..end],
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Field;

    fn explained(error: ArrowError) -> (String, Learned) {
        let schema =
            Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("at", DataType::Date32, true)]);
        let learned = Learned::default();
        let failure = explain(&error, "a.csv", &schema, Compression::None, &learned, &TextTable::default());
        (failure.to_string(), learned)
    }

    #[test]
    fn a_value_that_does_not_fit_widens_its_column() {
        let parse = |text: &str| explained(ArrowError::ParseError(text.to_owned()));
        let (text, learned) =
            parse("Error while parsing value 'x' as type 'Int64' for column 0 at line 7. Row data: '[x,1]'");
        assert_eq!(
            text,
            "row 7 of the file a.csv has 'x' in column \"id\", which was taken for bigint after its first rows"
        );
        assert_eq!(learned.about("a.csv").unwrap()["id"], DataType::Utf8);
        let (_, learned) =
            parse("Error while parsing value '1.5' as type 'Int64' for column 0 at line 7. Row data: ''");
        assert_eq!(learned.about("a.csv").unwrap()["id"], DataType::Float64);
        let (text, learned) =
            explained(ArrowError::JsonError("whilst decoding field 'id': failed to parse \"abc\" as Int64".to_owned()));
        assert!(text.contains("\"abc\" in column \"id\""), "{text}");
        assert_eq!(learned.lessons(), 1);
    }

    #[test]
    fn other_errors_are_told_as_they_are() {
        let (text, learned) =
            explained(ArrowError::CsvError("incorrect number of fields for line 3, expected 2 got 3".to_owned()));
        assert_eq!(text, "the file a.csv cannot be read: incorrect number of fields for line 3, expected 2 got 3");
        assert_eq!(learned.lessons(), 0);
    }
}
