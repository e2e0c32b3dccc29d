//! The columns of a body that no table describes, from its first rows.

mod guess;

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::coding::BodyDecompressor;
use crate::column::NameIndex;
use crate::csv::CsvRows;
use crate::error::{BodyError, CellError, CellResult, RejectedRow, RowPosition};
use crate::json::cursor::{JsonCursor, JsonKind};
use crate::json::document::JsonDocument;
use crate::json::lines::JsonLines;
use crate::options::{BodyFormat, BodyOptions};
use crate::rows::RecordSink;

use guess::TypeGuess;

/// How many bytes of a body are enough to infer its columns, after decompression.
pub const INFERENCE_BYTES: usize = 1 << 20;

/// The columns that the first bytes of a body have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InferredSchema {
    /// The columns in the order in which they appear, all of them nullable.
    pub schema: SchemaRef,
    /// How many rows they were inferred from. Arrow and Parquet name their columns, which needs none.
    pub rows: u64,
}

/// Infers the columns of a body from its beginning, as it was sent: compressed if the body is. [`INFERENCE_BYTES`] are
/// enough. A row that is cut off at the end counts as not there.
///
/// Types hold all values that were seen exactly: integers that are wider than 64 bits are decimals, numbers with leading
/// zeros are text, and columns with values of several kinds are text (in JSON, text that is JSON).
///
/// # Errors
///
/// If the beginning does not have the format, or has no columns.
pub fn infer_schema(head: &[u8], options: &BodyOptions) -> Result<InferredSchema, BodyError> {
    let bytes = decompress_head(head, options)?;
    if options.format == BodyFormat::Arrow {
        let schema = crate::arrow_stream::schema_of_head(&bytes, &options.limits)?;
        return Ok(InferredSchema { schema, rows: 0 });
    }
    let mut sample = SampledColumns::default();
    sample.read(&bytes, options)?;
    if sample.guesses.is_empty() {
        return Err(BodyError::Columns(
            "the body has no rows with columns, so that there is nothing to infer".to_owned(),
        ));
    }
    let fields = sample.fields(options.format).collect::<Vec<_>>();
    Ok(InferredSchema { schema: Arc::new(Schema::new(fields)), rows: sample.rows })
}

/// The columns of `sample` that `known` does not have, from decompressed bytes.
pub(crate) fn infer_new_columns(sample: &[u8], options: &BodyOptions, known: &NameIndex) -> Vec<Field> {
    let mut columns = SampledColumns::default();
    // What is malformed is reported when the rows are read.
    let _ = columns.read(sample, options);
    let is_known = |guess: &TypeGuess| options.format == BodyFormat::Csv || *guess != TypeGuess::Unknown;
    let fields = columns.fields(options.format).zip(&columns.guesses).filter(|(_, guess)| is_known(guess));
    fields.map(|(field, _)| field).filter(|field| known.find(field.name(), 0).is_none()).collect()
}

/// The column that holds a value of JSON, or nothing if it is null or no JSON.
pub(crate) fn infer_json_field(name: &str, value: &str) -> Option<Field> {
    let mut guess = TypeGuess::Unknown;
    guess.add_json(&mut JsonCursor::new(value)).ok()?;
    (guess != TypeGuess::Unknown).then(|| guess.field(name, BodyFormat::Json))
}

/// The decompressed beginning of a body. What a decoder has not received is missing at the end.
fn decompress_head(head: &[u8], options: &BodyOptions) -> Result<Vec<u8>, BodyError> {
    let mut decompressor = BodyDecompressor::new(options.coding, &options.limits)?;
    let mut bytes = Vec::new();
    let mut rest = head;
    while bytes.len() < INFERENCE_BYTES {
        let (used, piece) = decompressor.next_piece(rest)?;
        if used == 0 && piece.is_empty() {
            break;
        }
        bytes.extend_from_slice(piece);
        rest = rest.get(used..).unwrap_or_default();
    }
    Ok(bytes)
}

/// What was seen in the columns of a sample.
#[derive(Debug, Default)]
struct SampledColumns {
    names: NameIndex,
    guesses: Vec<TypeGuess>,
    rows: u64,
    columns_max: usize,
}

impl SampledColumns {
    fn read(&mut self, bytes: &[u8], options: &BodyOptions) -> Result<(), BodyError> {
        self.columns_max = options.limits.columns_max;
        let row_bytes_max = options.limits.row_bytes_max;
        match options.format {
            BodyFormat::Json => JsonDocument::new(row_bytes_max).push(bytes, self),
            BodyFormat::Ndjson => {
                let mut lines = JsonLines::new(row_bytes_max);
                lines.push(bytes, self)?;
                // The last line may be cut off.
                let _ = lines.finish(self);
                Ok(())
            }
            BodyFormat::Csv => {
                let mut csv = CsvRows::new(options)?;
                csv.push(bytes, self)?;
                if self.rows == 0 {
                    let _ = csv.finish(self);
                }
                Ok(())
            }
            BodyFormat::Arrow | BodyFormat::Parquet => {
                Err(BodyError::Options(format!("the columns of {} are named, not inferred", options.format.name())))
            }
        }
    }

    fn fields(&self, format: BodyFormat) -> impl Iterator<Item = Field> {
        self.guesses.iter().enumerate().map(move |(position, guess)| guess.field(self.names.name(position), format))
    }

    fn guess_of(&mut self, name: &str, expected: usize) -> CellResult<usize> {
        if let Some(position) = self.names.find(name, expected) {
            return Ok(position);
        }
        if self.guesses.len() >= self.columns_max {
            return Err(CellError::new(format!("there are more than {} columns", self.columns_max)));
        }
        self.names.check_new(name).map_err(CellError::new)?;
        self.names.push(name.to_owned()).map_err(CellError::new)?;
        self.guesses.push(TypeGuess::Unknown);
        Ok(self.guesses.len() - 1)
    }
}

impl RecordSink for SampledColumns {
    fn append_object(&mut self, text: &str) -> CellResult<()> {
        let mut cursor = JsonCursor::new(text);
        if cursor.kind()? != JsonKind::Object {
            return Err(CellError::new("a row is an object with the names of the columns"));
        }
        let (mut is_first, mut expected) = (true, 0);
        while let Some(name) = cursor.next_name(&mut is_first)? {
            let position = self.guess_of(name, expected)?;
            expected = position + 1;
            if let Some(guess) = self.guesses.get_mut(position) {
                guess.add_json(&mut cursor)?;
            }
        }
        Ok(cursor.expect_end()?)
    }

    fn has_column(&self, name: &str) -> bool {
        self.names.find(name, 0).is_some()
    }

    fn named_columns(&mut self, line: u64, names: &[&str]) -> Result<Vec<usize>, BodyError> {
        let positions = names.iter().map(|name| self.guess_of(name, usize::MAX)).collect::<CellResult<Vec<_>>>();
        positions.map_err(|error| BodyError::Columns(format!("line {line}: {}", error.reason)))
    }

    fn unnamed_columns(&mut self, fields: usize) -> Vec<usize> {
        let fields = fields.min(self.columns_max);
        (1..=fields).filter_map(|number| self.guess_of(&format!("column_{number}"), usize::MAX).ok()).collect()
    }

    fn append_fields<'a>(&mut self, fields: impl Iterator<Item = (usize, Option<Cow<'a, str>>)>) -> CellResult<()> {
        for (position, text) in fields {
            if let (Some(guess), Some(text)) = (self.guesses.get_mut(position), text) {
                guess.add_text(&text);
            }
        }
        Ok(())
    }

    fn record(&mut self, _position: RowPosition, _text: &[u8], appended: CellResult<()>) -> Result<(), BodyError> {
        self.rows += u64::from(appended.is_ok());
        Ok(())
    }

    fn reject(&mut self, _row: RejectedRow) -> Result<(), BodyError> {
        Ok(())
    }
}

/// The type of text in inferred columns.
const TEXT: DataType = DataType::Utf8;
