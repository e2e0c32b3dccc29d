//! Read errors of text files, and the column corrections that follow from them.

use std::error::Error as StdError;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use thiserror::Error;
use tidegate_query::type_name;

use crate::embedded::files::{
    CoercionMode, ColumnCorrections, Compression, FileVersion, NumberFormat, TextTableOptions, infer_type,
    is_null_marker, read_error_reason, suggest_yaml, wider,
};

/// Why a file could not be read to its end, for callers.
#[derive(Debug, Error)]
#[error("{message}")]
pub(crate) struct ReadFailure {
    message: String,
    hint: Option<String>,
    /// Whether a column was corrected, so that the file can be read now.
    is_retryable: bool,
}

impl ReadFailure {
    pub(crate) fn new(message: String) -> Self {
        Self { message, hint: None, is_retryable: false }
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// Whether `error` led to a column correction, so that the statement can be planned again.
pub(crate) fn is_retryable(error: &DataFusionError) -> bool {
    find_cause::<ReadFailure>(error).is_some_and(|failure| failure.is_retryable)
}

/// The error of type `E` at any depth of the chain of causes of `error`.
pub(crate) fn find_cause<E: StdError + 'static>(error: &DataFusionError) -> Option<&E> {
    let first: &(dyn StdError + 'static) = error;
    std::iter::successors(Some(first), |&cause| cause.source()).find_map(|cause| cause.downcast_ref())
}

const VALUE_CHARACTERS_MAX: usize = 60;

struct MismatchedValue<'a> {
    column: &'a str,
    value: &'a str,
    /// The row, if the reader reports it.
    row: Option<&'a str>,
}

/// The file and table that were read when the error occurred.
pub(super) struct ReadContext<'a> {
    pub(super) location: &'a str,
    /// The version of the file that the table was built from.
    pub(super) file: Option<FileVersion>,
    pub(super) schema: &'a Schema,
    pub(super) compression: Compression,
    pub(super) numbers: Option<NumberFormat>,
    pub(super) corrections: &'a ColumnCorrections,
    pub(super) options: &'a TextTableOptions,
}

/// Explains `error`, and records the column correction that follows from it.
pub(super) fn explain_read_error(error: &ArrowError, context: &ReadContext<'_>) -> ReadFailure {
    let ReadContext { location, schema, .. } = *context;
    let text = match error {
        ArrowError::IoError(_, error) => {
            let problem = read_error_reason(error, context.compression);
            let mut failure = ReadFailure::new(format!("the file {location} cannot be read: {problem}"));
            failure.hint =
                problem.contains("declare the encoding").then(|| suggest_option(location, "encoding: latin-1"));
            return failure;
        }
        ArrowError::CsvError(text) | ArrowError::ParseError(text) | ArrowError::JsonError(text) => text.as_str(),
        other => return ReadFailure::new(format!("the file {location} cannot be read: {other}")),
    };
    let Some(mismatch) = parse_csv_mismatch(text, schema).or_else(|| parse_json_mismatch(text)) else {
        let mut failure = ReadFailure::new(format!("the file {location} cannot be read: {text}"));
        failure.hint = option_for_error(text).map(|option| suggest_option(location, option));
        return failure;
    };
    let field = schema.field_with_name(mismatch.column);
    let expected = field.map_or(DataType::Null, |field| field.data_type().clone());
    let value = mismatch.value.trim_matches(['"', '\'']);
    let is_marker = is_null_marker(value) && context.options.null.is_none();
    let is_declared = context.options.columns.contains_key(mismatch.column);
    if is_marker && !expected.is_nested() && !matches!(error, ArrowError::JsonError(_)) {
        return context.null_marker_failure(&mismatch);
    }
    let row = mismatch.row.map(|row| format!("row {row} of ")).unwrap_or_default();
    let type_name = type_name(&expected);
    let origin = match is_declared {
        true => format!("the configuration declares as {type_name}"),
        false => format!("was detected as {type_name} from the first rows"),
    };
    let MismatchedValue { column, value: written, .. } = mismatch;
    let message = format!("{row}the file {location} has {written} in column {column:?}, which {origin}");
    let wide = wider(&expected, &infer_type(value, context.numbers), CoercionMode::ToText).unwrap_or(DataType::Utf8);
    let wide = if wide == expected { DataType::Utf8 } else { wide };
    match context.file {
        Some(file) if !is_declared && !expected.is_nested() && expected != wide => {
            context.corrections.record_type(location, file, mismatch.column, wide);
            context.corrected_failure(message, mismatch.column)
        }
        _ => ReadFailure::new(message),
    }
}

impl ReadContext<'_> {
    fn null_marker_failure(&self, mismatch: &MismatchedValue<'_>) -> ReadFailure {
        let message = format!("the file {} has {} in column {:?}", self.location, mismatch.value, mismatch.column);
        if let Some(file) = self.file {
            self.corrections.record_null_marker(self.location, file, mismatch.column);
        }
        ReadFailure { is_retryable: self.file.is_some(), ..self.corrected_failure(message, mismatch.column) }
    }

    /// The error for callers when a column was corrected after rows had been sent.
    fn corrected_failure(&self, message: String, column: &str) -> ReadFailure {
        let option = suggest_option(self.location, &format!("columns: {{{column:?}: string}}"));
        let hint = format!("The type of the column is corrected now; retry. To declare it, {option}");
        ReadFailure { message, hint: Some(hint), is_retryable: true }
    }
}

fn suggest_option(location: &str, option: &str) -> String {
    format!("write {}", suggest_yaml(location, option))
}

/// The option that fixes rows of another length or bytes in another encoding.
fn option_for_error(text: &str) -> Option<&'static str> {
    if text.contains("UTF-8") {
        return Some("encoding: latin-1");
    }
    let (_, counts) = text.split_once("incorrect number of fields")?.1.split_once("expected ")?;
    let (expected, got) = counts.split_once(" got ")?;
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok();
    Some(if number(got)? < number(expected)? { "ragged: fill" } else { "ragged: trim" })
}

/// Parses `Error while parsing value 'x' as type 'Int64' for column 3 at line 7. Row data: …` and `Error parsing column
/// 3 at line 7: …`.
fn parse_csv_mismatch<'a>(text: &'a str, schema: &'a Schema) -> Option<MismatchedValue<'a>> {
    let (value, rest) = match text.strip_prefix("Error while parsing value ") {
        Some(rest) => {
            let (value, rest) = rest.split_once(" as type ")?;
            (value, rest.split_once(" for column ")?.1)
        }
        None => {
            let rest = text.strip_prefix("Error parsing column ")?;
            let value = rest.split_once(" from '").and_then(|(_, value)| value.split_once('\''));
            (value.map_or("a value that is not a date", |(value, _)| value), rest)
        }
    };
    let (index, rest) = rest.split_once(" at line ")?;
    let row = rest.split(|character: char| !character.is_ascii_digit()).next()?;
    let column = schema.fields().get(index.parse::<usize>().ok()?)?.name();
    Some(MismatchedValue { column, value, row: Some(row) })
}

/// Parses `whilst decoding field 'x': failed to parse "y" as Int64` and `… expected … got y`.
fn parse_json_mismatch(text: &str) -> Option<MismatchedValue<'_>> {
    let rest = text.strip_prefix("whilst decoding field '")?;
    let (column, reason) = rest.split_once("': ")?;
    let value = match reason.strip_prefix("failed to parse ") {
        Some(rest) => rest.rsplit_once(" as ")?.0,
        None => reason.split_once(" got ")?.1,
    };
    let end = value.char_indices().nth(VALUE_CHARACTERS_MAX).map_or(value.len(), |(end, _)| end);
    Some(MismatchedValue { column, value: &value[..end], row: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::files::ColumnCorrection;
    use datafusion::arrow::datatypes::Field;

    fn explained(error: &ArrowError) -> (ReadFailure, Option<ColumnCorrection>) {
        let schema =
            Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("at", DataType::Date32, true)]);
        let folder = tempfile::tempdir().unwrap();
        let file = FileVersion::from_metadata(&std::fs::metadata(folder.path()).unwrap());
        let corrections = ColumnCorrections::default();
        let context = ReadContext {
            location: "a.csv",
            file: Some(file),
            schema: &schema,
            compression: Compression::UNCOMPRESSED,
            numbers: None,
            corrections: &corrections,
            options: &TextTableOptions::default(),
        };
        let failure = explain_read_error(error, &context);
        (failure, corrections.corrections_for("a.csv", &file).and_then(|mut columns| columns.remove("id")))
    }

    #[test]
    fn mismatched_value_widens_its_column() {
        let parse = |text: &str| explained(&ArrowError::ParseError(text.to_owned()));
        let (failure, correction) =
            parse("Error while parsing value 'x' as type 'Int64' for column 0 at line 7. Row data: '[x,1]'");
        assert_eq!(
            failure.to_string(),
            "row 7 of the file a.csv has 'x' in column \"id\", which was detected as bigint from the first rows"
        );
        assert!(failure.is_retryable);
        assert_eq!(correction, Some(ColumnCorrection { wider: Some(DataType::Utf8), has_markers: false }));
        let (_, correction) =
            parse("Error while parsing value '1.5' as type 'Int64' for column 0 at line 7. Row data: ''");
        assert_eq!(correction.unwrap().wider, Some(DataType::Float64));
        let (_, correction) =
            parse("Error while parsing value 'N/A' as type 'Int64' for column 0 at line 7. Row data: ''");
        assert_eq!(correction, Some(ColumnCorrection { wider: None, has_markers: true }));
        let json = "whilst decoding field 'id': failed to parse \"abc\" as Int64".to_owned();
        let (failure, correction) = explained(&ArrowError::JsonError(json));
        assert!(failure.to_string().contains("\"abc\" in column \"id\""), "{failure}");
        assert_eq!(correction.unwrap().wider, Some(DataType::Utf8));
    }

    #[test]
    fn other_errors_suggest_an_option() {
        let text = "incorrect number of fields for line 3, expected 2 got 3".to_owned();
        let (failure, correction) = explained(&ArrowError::CsvError(text));
        assert_eq!(
            failure.to_string(),
            "the file a.csv cannot be read: incorrect number of fields for line 3, expected 2 got 3"
        );
        assert_eq!(failure.hint(), Some("write in tidegate.yaml, under its database, tables: {a: {ragged: trim}}"));
        assert_eq!((failure.is_retryable, correction), (false, None));
    }
}
