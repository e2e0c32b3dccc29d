//! What rows of a text file teach when they cannot be read as their column's type.

use std::fmt;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;

use tidegate_query::type_name;

use crate::embedded::files::{
    Bend, Compression, Fingerprint, Learned, NumberFormat, TextTable, is_null_marker, problem_of, type_of, wider,
    yaml_line,
};

/// Why a file could not be read to its end, written for callers.
#[derive(Debug)]
pub(crate) struct ReadFailure {
    message: String,
    hint: Option<String>,
    /// Whether something was learned from it, so that the file can be read now.
    teaches: bool,
}

impl ReadFailure {
    pub(crate) fn new(message: String) -> Self {
        Self { message, hint: None, teaches: false }
    }

    /// What would mend the call.
    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ReadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadFailure {}

/// Whether `error` comes from a row that taught something, so that the statement can be planned again.
pub(crate) fn teaches(error: &DataFusionError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(failure) = current.downcast_ref::<ReadFailure>() {
            return failure.teaches;
        }
        cause = current.source();
    }
    false
}

/// A value that its column's type does not hold.
struct Misfit<'a> {
    column: &'a str,
    value: &'a str,
    /// Where it stands, if the reader tells.
    row: Option<&'a str>,
}

/// What was read when something went wrong.
pub(super) struct ReadContext<'a> {
    pub(super) location: &'a str,
    /// The file that the table was made of.
    pub(super) file: Option<Fingerprint>,
    pub(super) schema: &'a Schema,
    pub(super) compression: Compression,
    pub(super) numbers: Option<NumberFormat>,
    pub(super) learned: &'a Learned,
    pub(super) told: &'a TextTable,
}

/// Explains `error`, and remembers what it teaches about a column.
pub(super) fn explain(error: &ArrowError, context: &ReadContext<'_>) -> ReadFailure {
    let ReadContext { location, schema, .. } = *context;
    let text = match error {
        ArrowError::IoError(_, error) => {
            let problem = problem_of(error, context.compression);
            let mut failure = ReadFailure::new(format!("the file {location} cannot be read: {problem}"));
            failure.hint = problem.contains("declare the encoding").then(|| mended(location, "encoding: latin-1"));
            return failure;
        }
        ArrowError::CsvError(text) | ArrowError::ParseError(text) | ArrowError::JsonError(text) => text.as_str(),
        other => return ReadFailure::new(format!("the file {location} cannot be read: {other}")),
    };
    let Some(misfit) = csv_misfit(text, schema).or_else(|| json_misfit(text)) else {
        let mut failure = ReadFailure::new(format!("the file {location} cannot be read: {text}"));
        failure.hint = option_for(text).map(|option| mended(location, option));
        return failure;
    };
    let known = schema.field_with_name(misfit.column).map(|field| field.data_type().clone()).unwrap_or(DataType::Null);
    let value = misfit.value.trim_matches(['"', '\'']);
    let is_marker = is_null_marker(value) && context.told.null.is_none();
    let is_told = context.told.columns.contains_key(misfit.column);
    if is_marker && !known.is_nested() && text_is_csv(error) {
        return context.marker(&misfit);
    }
    let place = misfit.row.map(|row| format!("row {row} of ")).unwrap_or_default();
    let why = if is_told { "the configuration makes" } else { "was taken for" };
    let since = if is_told { "" } else { " after its first rows" };
    let message = format!(
        "{place}the file {location} has {} in column {:?}, which {why} {}{since}",
        misfit.value,
        misfit.column,
        type_name(&known),
    );
    let wide = wider(&known, &type_of(value, context.numbers), Bend::ToText).unwrap_or(DataType::Utf8);
    let wide = if wide == known { DataType::Utf8 } else { wide };
    match context.file {
        Some(file) if !is_told && !known.is_nested() && known != wide => {
            context.learned.learn_type(location, file, misfit.column, wide);
            context.lesson(message, misfit.column)
        }
        _ => ReadFailure::new(message),
    }
}

impl ReadContext<'_> {
    fn marker(&self, misfit: &Misfit<'_>) -> ReadFailure {
        let message = format!("the file {} has {} in column {:?}", self.location, misfit.value, misfit.column);
        if let Some(file) = self.file {
            self.learned.learn_marker(self.location, file, misfit.column);
        }
        ReadFailure { teaches: self.file.is_some(), ..self.lesson(message, misfit.column) }
    }

    /// What callers receive when a column was corrected after rows had left.
    fn lesson(&self, message: String, column: &str) -> ReadFailure {
        let option = mended(self.location, &format!("columns: {{{column:?}: string}}"));
        let hint = format!("The column's type is corrected now: ask again. To have it from the beginning, {option}");
        ReadFailure { message, hint: Some(hint), teaches: true }
    }
}

fn text_is_csv(error: &ArrowError) -> bool {
    !matches!(error, ArrowError::JsonError(_))
}

/// The sentence that says what the owner should write.
fn mended(location: &str, option: &str) -> String {
    format!("write {}", yaml_line(location, option))
}

/// The option that helps with rows of another length or bytes of another encoding.
fn option_for(text: &str) -> Option<&'static str> {
    if text.contains("UTF-8") {
        return Some("encoding: latin-1");
    }
    let (_, counts) = text.split_once("incorrect number of fields")?.1.split_once("expected ")?;
    let (expected, got) = counts.split_once(" got ")?;
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok();
    Some(if number(got)? < number(expected)? { "ragged: fill" } else { "ragged: trim" })
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
            let value = rest.split_once(" from '").and_then(|(_, value)| value.split_once('\''));
            (value.map_or("a value that is no date", |(value, _)| value), rest)
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
    use crate::embedded::files::Lesson;
    use datafusion::arrow::datatypes::Field;

    fn explained(error: &ArrowError) -> (ReadFailure, Option<Lesson>) {
        let schema =
            Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("at", DataType::Date32, true)]);
        let folder = tempfile::tempdir().unwrap();
        let file = Fingerprint::of(&std::fs::metadata(folder.path()).unwrap());
        let learned = Learned::default();
        let context = ReadContext {
            location: "a.csv",
            file: Some(file),
            schema: &schema,
            compression: Compression::None,
            numbers: None,
            learned: &learned,
            told: &TextTable::default(),
        };
        let failure = explain(error, &context);
        (failure, learned.about("a.csv", &file).and_then(|mut columns| columns.remove("id")))
    }

    #[test]
    fn a_value_that_does_not_fit_widens_its_column() {
        let parse = |text: &str| explained(&ArrowError::ParseError(text.to_owned()));
        let (failure, lesson) =
            parse("Error while parsing value 'x' as type 'Int64' for column 0 at line 7. Row data: '[x,1]'");
        assert_eq!(
            failure.to_string(),
            "row 7 of the file a.csv has 'x' in column \"id\", which was taken for bigint after its first rows"
        );
        assert!(failure.teaches);
        assert_eq!(lesson, Some(Lesson { wider: Some(DataType::Utf8), has_markers: false }));
        let (_, lesson) = parse("Error while parsing value '1.5' as type 'Int64' for column 0 at line 7. Row data: ''");
        assert_eq!(lesson.unwrap().wider, Some(DataType::Float64));
        let (_, lesson) = parse("Error while parsing value 'N/A' as type 'Int64' for column 0 at line 7. Row data: ''");
        assert_eq!(lesson, Some(Lesson { wider: None, has_markers: true }));
        let json = "whilst decoding field 'id': failed to parse \"abc\" as Int64".to_owned();
        let (failure, lesson) = explained(&ArrowError::JsonError(json));
        assert!(failure.to_string().contains("\"abc\" in column \"id\""), "{failure}");
        assert_eq!(lesson.unwrap().wider, Some(DataType::Utf8));
    }

    #[test]
    fn other_errors_say_what_to_write() {
        let text = "incorrect number of fields for line 3, expected 2 got 3".to_owned();
        let (failure, lesson) = explained(&ArrowError::CsvError(text));
        assert_eq!(
            failure.to_string(),
            "the file a.csv cannot be read: incorrect number of fields for line 3, expected 2 got 3"
        );
        assert_eq!(failure.hint(), Some("write in tidegate.yaml, under its database, tables: {a: {ragged: trim}}"));
        assert_eq!((failure.teaches, lesson), (false, None));
    }
}
