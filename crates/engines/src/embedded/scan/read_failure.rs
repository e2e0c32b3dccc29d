//! Read errors of text files, and the column corrections that follow from them.

use std::error::Error as StdError;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use thiserror::Error;
use tidegate_query::type_name;

use super::csv_rows::{CsvRowsError, Misfit};
use crate::embedded::files::{
    CoercionMode, ColumnCorrections, Compression, FileVersion, NumberFormat, TextTableOptions, cut_value, infer_type,
    is_null_marker, read_error_reason, suggest_yaml, text_column_note, wider,
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

    /// The failure of a file with a column whose type was corrected, so that the file can be read now.
    pub(super) fn corrected(message: String) -> Self {
        let hint = Some("The type of the column is corrected now; retry.".to_owned());
        Self { message, hint, is_retryable: true }
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// The error for a file that cannot be read, with its name.
pub(super) fn unreadable_error(location: &str, reason: &str) -> DataFusionError {
    DataFusionError::External(Box::new(ReadFailure::new(format!("the file {location} cannot be read: {reason}"))))
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

/// Explains an error of a reader of Arrow, and records the column correction that follows from it.
pub(super) fn explain_read_error(error: &ArrowError, context: &ReadContext<'_>) -> ReadFailure {
    let text = match error {
        ArrowError::IoError(_, error) => {
            return context.unreadable(&read_error_reason(error, context.compression), None);
        }
        ArrowError::JsonError(text) => text.as_str(),
        other => return context.unreadable(&other.to_string(), None),
    };
    match parse_json_mismatch(text) {
        Some((column, written)) => {
            let value = written.trim_matches(['"', '\'']);
            let is_number = value.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
            let found = match is_number && value.parse::<f64>().is_ok() {
                true => DataType::Float64,
                false => infer_type(value, None),
            };
            context.misfit_failure(column, written, &found, "", None)
        }
        None => context.unreadable(text, None),
    }
}

/// Explains an error of the rows of a CSV file, and records the column correction that follows from it.
pub(super) fn explain_csv_error(error: &CsvRowsError, context: &ReadContext<'_>) -> ReadFailure {
    match error {
        CsvRowsError::Csv(error) => context.unreadable(&error.reason(context.compression), error.option()),
        CsvRowsError::Batch(error) => context.unreadable(&error.to_string(), None),
        CsvRowsError::Misfit(Misfit { column, value, line }) => {
            let column = context.schema.fields().get(*column).map_or("", |field| field.name().as_str());
            let written = format!("'{}'", cut_value(value));
            let is_marker = is_null_marker(value) && context.options.null.is_none();
            let place = format!("line {line} of ");
            match is_marker {
                true => context.null_marker_failure(column, &written),
                false => {
                    let note = text_column_note(value, *line, context.location);
                    let found = infer_type(value, context.numbers);
                    context.misfit_failure(column, &written, &found, &place, Some(note))
                }
            }
        }
    }
}

impl ReadContext<'_> {
    fn unreadable(&self, reason: &str, option: Option<&str>) -> ReadFailure {
        let mut failure = ReadFailure::new(format!("the file {} cannot be read: {reason}", self.location));
        let option = option.or_else(|| reason.contains("declare the encoding").then_some("encoding: latin-1"));
        failure.hint = option.map(|option| suggest_option(self.location, option));
        failure
    }

    /// The failure of a value of the type `found`, shown as `written`, that does not fit its column.
    fn misfit_failure(
        &self,
        column: &str,
        written: &str,
        found: &DataType,
        place: &str,
        note: Option<String>,
    ) -> ReadFailure {
        let field = self.schema.field_with_name(column);
        let expected = field.map_or(DataType::Null, |field| field.data_type().clone());
        let is_declared = self.options.columns.contains_key(column);
        let type_name = type_name(&expected);
        let origin = match is_declared {
            true => format!("the configuration declares as {type_name}"),
            false => format!("was detected as {type_name} from the first rows"),
        };
        let message = format!("{place}the file {} has {written} in column {column:?}, which {origin}", self.location);
        let wide = wider(&expected, found, CoercionMode::ToText).unwrap_or(DataType::Utf8);
        let wide = if wide == expected { DataType::Utf8 } else { wide };
        match self.file {
            Some(file) if !is_declared && !expected.is_nested() && expected != wide => {
                let note = note.filter(|_| wide == DataType::Utf8);
                self.corrections.record_type(self.location, file, column, wide, note);
                self.corrected_failure(message, column)
            }
            _ => ReadFailure::new(message),
        }
    }

    fn null_marker_failure(&self, column: &str, written: &str) -> ReadFailure {
        let message = format!("the file {} has {written} in column {column:?}", self.location);
        if let Some(file) = self.file {
            self.corrections.record_null_marker(self.location, file, column);
        }
        ReadFailure { is_retryable: self.file.is_some(), ..self.corrected_failure(message, column) }
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

/// Parses `whilst decoding field 'x': failed to parse "y" as Int64` and `… expected … got y`: the column and the value.
fn parse_json_mismatch(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("whilst decoding field '")?;
    let (column, reason) = rest.split_once("': ")?;
    let value = match reason.strip_prefix("failed to parse ") {
        Some(rest) => rest.rsplit_once(" as ")?.0,
        None => reason.split_once(" got ")?.1,
    };
    Some((column, cut_value(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::files::ColumnCorrection;
    use datafusion::arrow::datatypes::Field;

    fn explained(explain: impl Fn(&ReadContext<'_>) -> ReadFailure) -> (ReadFailure, Option<ColumnCorrection>) {
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
        let failure = explain(&context);
        (failure, corrections.corrections_for("a.csv", &file).and_then(|mut columns| columns.remove("id")))
    }

    #[test]
    fn misfits_widen_their_column() {
        let of_csv = |value: &str| {
            let error = CsvRowsError::Misfit(Misfit { column: 0, value: value.to_owned(), line: 7 });
            explained(move |context| explain_csv_error(&error, context))
        };
        let (failure, correction) = of_csv("x");
        assert_eq!(
            failure.to_string(),
            "line 7 of the file a.csv has 'x' in column \"id\", which was detected as bigint from the first rows"
        );
        assert!(failure.is_retryable);
        assert_eq!(
            correction,
            Some(ColumnCorrection {
                wider: Some(DataType::Utf8),
                has_markers: false,
                note: Some("text, because line 7 of a.csv has \"x\"".to_owned()),
            })
        );
        let widened = |value: &str| of_csv(value).1.unwrap().wider;
        assert_eq!(widened("1.5"), Some(DataType::Float64));
        assert_eq!(widened("99999999999999999999"), Some(DataType::Decimal128(38, 0)));
        assert_eq!(widened("007"), Some(DataType::Utf8));
        assert_eq!(of_csv("N/A").1, Some(ColumnCorrection { has_markers: true, ..ColumnCorrection::default() }));
        let json = ArrowError::JsonError("whilst decoding field 'id': failed to parse \"abc\" as Int64".to_owned());
        let (failure, correction) = explained(|context| explain_read_error(&json, context));
        assert!(failure.to_string().contains("\"abc\" in column \"id\""), "{failure}");
        assert_eq!(correction.unwrap().wider, Some(DataType::Utf8));
    }
}
