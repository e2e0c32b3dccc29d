//! Read errors of text files, and the column corrections that follow from them.

use std::error::Error as StdError;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use thiserror::Error;
use tidegate_query::field_type_name;

use super::json_rows::{JsonMisfit, JsonRowsError};
use super::text_rows::{CsvRowsError, Misfit};
use crate::embedded::files::{
    CoercionMode, ColumnCorrections, Compression, FileVersion, NumberEvidence, NumberFormat, TextTableOptions,
    cut_value, infer_type, is_null_marker, read_error_reason, suggest_yaml, type_note, wider,
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
        let hint = Some("The running program has corrected the column: retry.".to_owned());
        Self { message, hint, is_retryable: true }
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Whether a column was corrected, so that the file can be read now.
    pub(crate) fn is_retryable(&self) -> bool {
        self.is_retryable
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
    /// The maximum number of columns of a table.
    pub(super) columns_max: usize,
    pub(super) compression: Compression,
    pub(super) numbers: Option<NumberFormat>,
    pub(super) corrections: &'a ColumnCorrections,
    pub(super) options: &'a TextTableOptions,
}

/// Explains an error of a reader that gives batches of Arrow.
pub(super) fn explain_read_error(error: &ArrowError, context: &ReadContext<'_>) -> ReadFailure {
    match error {
        ArrowError::IoError(_, error) => context.unreadable(&read_error_reason(error, context.compression), None),
        other => context.unreadable(&other.to_string(), None),
    }
}

/// Explains an error of the rows of a CSV file, and records the column correction that follows from it.
pub(super) fn explain_csv_error(error: &CsvRowsError, context: &ReadContext<'_>) -> ReadFailure {
    match error {
        CsvRowsError::Csv(error) => {
            let advice = error.option().map(|advice| advice.for_file(context.location));
            context.unreadable(&error.reason(context.compression), advice)
        }
        CsvRowsError::Batch(error) => context.unreadable(&error.to_string(), None),
        CsvRowsError::Misfit(Misfit { column, value, line }) => {
            let column = context.schema.fields().get(*column).map_or("", |field| field.name().as_str());
            match is_null_marker(value) && context.options.null.is_none() {
                true => context.null_marker_failure(column, value),
                false => context.misfit_failure(column, value, *line),
            }
        }
    }
}

/// Explains an error of the rows of a JSON file, and records the columns that follow from it.
pub(super) fn explain_json_error(error: &JsonRowsError, context: &ReadContext<'_>) -> ReadFailure {
    match error {
        JsonRowsError::Json(error) => context.unreadable(&error.reason(context.compression), None),
        JsonRowsError::Batch(error) => context.unreadable(&error.to_string(), None),
        JsonRowsError::Misfit(misfit) if misfit.columns > context.columns_max => {
            let (line, max) = (misfit.line, context.columns_max);
            context.unreadable(&format!("line {line}: its objects have more than {max} different keys"), None)
        }
        JsonRowsError::Misfit(misfit) => context.json_misfit_failure(misfit),
    }
}

impl ReadContext<'_> {
    fn unreadable(&self, reason: &str, hint: Option<String>) -> ReadFailure {
        let failure = ReadFailure::new(format!("the file {} cannot be read: {reason}", self.location));
        ReadFailure { hint, ..failure }
    }

    /// The failure of a value that does not fit its column.
    fn misfit_failure(&self, column: &str, value: &str, line: u64) -> ReadFailure {
        let expected = self.schema.field_with_name(column).map_or(DataType::Null, |field| field.data_type().clone());
        let message = self.misfit_message(column, &quoted(value), line);
        let found = infer_type(value, self.numbers);
        let wide = wider(&expected, &found, CoercionMode::ToText).unwrap_or(DataType::Utf8);
        let wide = if wide == expected { DataType::Utf8 } else { wide };
        match self.file {
            Some(file) if !self.is_declared(column) && expected != wide => {
                let note = type_note(&expected, &wide, value, line, self.location);
                let evidence = NumberEvidence::of_value(value, line, self.location);
                self.corrections.record_separators(self.location, file, column, &evidence);
                let field = Arc::new(Field::new(column, wide, true));
                let declared = declared_type_name(field.data_type());
                self.corrections.record_column(self.location, file, field, note);
                // Other values decide what the points mean.
                let option = match evidence.has_ambiguous_points() {
                    true => "infer: full".to_owned(),
                    false => format!("columns: {{{column:?}: {declared}}}"),
                };
                self.corrected_failure(message, &option)
            }
            _ => ReadFailure::new(message),
        }
    }

    fn json_misfit_failure(&self, misfit: &JsonMisfit) -> ReadFailure {
        let JsonMisfit { column, value, line, changes, .. } = misfit;
        let is_new = self.schema.field_with_name(column).is_err();
        let message = match is_new {
            true => {
                format!("line {line} of the file {} has the key {column:?}, which its first rows lack", self.location)
            }
            false => self.misfit_message(column, cut_value(value), *line),
        };
        let Some(file) = self.file.filter(|_| !self.is_declared(column) && !changes.is_empty()) else {
            return ReadFailure::new(message);
        };
        for (field, note) in changes {
            self.corrections.record_column(self.location, file, field.clone(), note.clone());
        }
        self.corrected_failure(message, "infer: full")
    }

    fn is_declared(&self, column: &str) -> bool {
        self.options.columns.contains_key(column)
    }

    fn misfit_message(&self, column: &str, written: &str, line: u64) -> String {
        let type_name = self.schema.field_with_name(column).map(field_type_name).unwrap_or_default();
        let origin = match self.is_declared(column) {
            true => format!("the configuration declares as {type_name}"),
            false => format!("was detected as {type_name} from the first rows"),
        };
        format!("line {line} of the file {} has {written} in column {column:?}, which {origin}", self.location)
    }

    fn null_marker_failure(&self, column: &str, value: &str) -> ReadFailure {
        let message = format!("the file {} has {} in column {column:?}", self.location, quoted(value));
        if let Some(file) = self.file {
            self.corrections.record_null_marker(self.location, file, column);
        }
        ReadFailure { is_retryable: self.file.is_some(), ..self.corrected_failure(message, "infer: full") }
    }

    /// The error for callers when a column was corrected after rows had been sent. With `option`, a program that begins anew
    /// for each statement reads the file, too.
    fn corrected_failure(&self, message: String, option: &str) -> ReadFailure {
        let option = suggest_option(self.location, option);
        let hint =
            format!("The running program has corrected the column: retry. Where each call starts a program, {option}");
        ReadFailure { message, hint: Some(hint), is_retryable: true }
    }
}

/// The beginning of a value of CSV, for a message.
fn quoted(value: &str) -> String {
    format!("'{}'", cut_value(value))
}

/// The name of the type in the configuration. Each value is a string.
fn declared_type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Int64 => "integer".to_owned(),
        DataType::Float64 => "number".to_owned(),
        DataType::Decimal128(precision, scale) => format!("'decimal({precision},{scale})'"),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(_, None) => "timestamp".to_owned(),
        _ => "string".to_owned(),
    }
}

fn suggest_option(location: &str, option: &str) -> String {
    format!("write {}", suggest_yaml(location, option))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::files::ColumnCorrection;

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
            columns_max: 2,
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
                wider: Some(Arc::new(Field::new("id", DataType::Utf8, true))),
                has_markers: false,
                note: Some("text, because line 7 of a.csv has \"x\"".to_owned()),
                evidence: NumberEvidence::of_value("x", 7, "a.csv"),
            })
        );
        let widened = |value: &str| of_csv(value).1.unwrap().wider.unwrap().data_type().clone();
        assert_eq!(widened("1.5"), DataType::Float64);
        assert_eq!(widened("99999999999999999999"), DataType::Decimal128(38, 0));
        assert_eq!(widened("007"), DataType::Utf8);
        assert_eq!(of_csv("N/A").1, Some(ColumnCorrection { has_markers: true, ..ColumnCorrection::default() }));
    }

    #[test]
    fn misfits_of_json_change_all_columns_that_they_need() {
        let of_json = |columns: usize| {
            let changes = vec![
                (Arc::new(Field::new("id", DataType::Float64, true)), None),
                (Arc::new(Field::new("new", DataType::Null, true)), None),
            ];
            let (column, value) = ("id".to_owned(), "0.5".to_owned());
            let error = JsonRowsError::Misfit(JsonMisfit { column, value, line: 7, changes, columns });
            explained(move |context| explain_json_error(&error, context))
        };
        let (failure, correction) = of_json(2);
        assert_eq!(
            failure.to_string(),
            "line 7 of the file a.csv has 0.5 in column \"id\", which was detected as bigint from the first rows"
        );
        assert!(failure.is_retryable);
        assert_eq!(correction.unwrap().wider.unwrap().data_type(), &DataType::Float64);
        let (failure, correction) = of_json(3);
        assert!(failure.to_string().ends_with("its objects have more than 2 different keys"), "{failure}");
        assert!(!failure.is_retryable && correction.is_none());
    }
}
