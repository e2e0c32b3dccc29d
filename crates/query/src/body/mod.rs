//! Encodes rows as the body of an answer: batches in, bytes out.
//!
//! Calls use [`RowEncoder`] within their budgets (`answer`); it also encodes rows outside of calls.

mod batches;
mod portable;

use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use tidegate_core::{Error, Format};

use self::batches::{ArrowBody, ParquetBody};
use crate::format::{
    AnswerStatistics, BoxedCells, CsvWriter, FormatWriter, JsonRows, JsonWriter, ListWriter, MarkdownWriter, McpWriter,
    NdjsonWriter, OMITS_NULLS_KEY, TableWriter, ToonWriter, batch_cells, missing_nodes_of_schema, unique_names,
};

pub use self::portable::stored_columns;

/// Encodes rows in one format.
///
/// It buffers little: for text, nothing between two batches; for Parquet, the rows of the open row group. A format that
/// needs lookahead (`table`) inspects the first batch with rows.
pub struct RowEncoder {
    media_type: &'static str,
    columns: usize,
    /// A note about missing nodes for people.
    missing_note: Option<String>,
    body: EncodedBody,
}

enum EncodedBody {
    Text(Box<TextBody>),
    Binary(Box<dyn BatchBody>),
}

/// Encodes batches into a binary body.
trait BatchBody: Send {
    /// Writes the rows of `batch`, which has at least one, and returns the bytes that can be sent.
    fn write(&mut self, batch: &RecordBatch) -> Result<Bytes, Error>;

    /// Returns the bytes of all rows so far, even if the format would buffer more.
    fn flush(&mut self) -> Result<Bytes, Error>;

    /// The size in bytes of a body of `batch` alone. A body of several batches, flushed after each, is never longer
    /// than the sum of these sizes.
    fn standalone_bytes(&self, batch: &RecordBatch) -> Result<usize, Error>;

    fn finish(&mut self) -> Result<Bytes, Error>;
}

impl EncodedBody {
    /// An empty body in `format`. With `is_list`, it is a list of the values of one column, flat where the format has
    /// flat lists.
    fn new(format: Format, is_list: bool, schema: &SchemaRef, started: Instant) -> Result<Self, Error> {
        let names = unique_names(schema);
        let json_rows = || if is_list { JsonRows::new_list() } else { JsonRows::new(&names) };
        let omits_nulls = !is_list && schema.metadata().contains_key(OMITS_NULLS_KEY);
        let writer: Box<dyn FormatWriter> = match format {
            Format::Arrow | Format::ArrowFile => return Ok(Self::Binary(Box::new(ArrowBody::new(schema, format)?))),
            Format::Parquet => return Ok(Self::Binary(Box::new(ParquetBody::new(schema)?))),
            Format::Mcp if omits_nulls => Box::new(McpWriter(json_rows().without_nulls())),
            Format::Mcp => Box::new(McpWriter(json_rows())),
            Format::Json => Box::new(JsonWriter::new(json_rows(), &names, schema)),
            Format::Ndjson => Box::new(NdjsonWriter(json_rows())),
            Format::Csv | Format::Table | Format::Markdown if is_list => Box::new(ListWriter(format)),
            Format::Csv => Box::new(CsvWriter(names)),
            Format::Table => Box::new(TableWriter::new(names, schema)),
            Format::Markdown => Box::new(MarkdownWriter::new(names, schema)),
            Format::Toon if is_list => Box::new(ToonWriter { columns: None }),
            Format::Toon => Box::new(ToonWriter::new(&names)),
        };
        Ok(Self::Text(Box::new(TextBody::new(writer, started))))
    }
}

/// An empty body in `format`, which is text. With `is_list`, it is a list of the values of one column.
pub(crate) fn new_text_body(format: Format, is_list: bool, schema: &SchemaRef) -> Result<Box<TextBody>, Error> {
    match EncodedBody::new(format, is_list, schema, Instant::now())? {
        EncodedBody::Text(body) => Ok(body),
        EncodedBody::Binary(_) => Err(not_text(format)),
    }
}

/// The error for a binary format where only text can be sent.
pub(crate) fn not_text(format: Format) -> Error {
    Error::internal(format!("{} is not a format of text", format.name()))
}

impl RowEncoder {
    /// An encoder for an empty body in `format`, with the columns of `schema`.
    ///
    /// # Errors
    /// For columns that the format cannot represent: a Parquet file needs at least one column.
    pub fn new(format: Format, schema: &SchemaRef) -> Result<Self, Error> {
        Self::for_answer(format, false, schema, Instant::now())
    }

    /// As [`RowEncoder::new`], for an answer that began at `started`. With `is_list`, it is a list of the values of one
    /// column.
    pub(crate) fn for_answer(
        format: Format,
        is_list: bool,
        schema: &SchemaRef,
        started: Instant,
    ) -> Result<Self, Error> {
        let body = EncodedBody::new(format, is_list, schema, started)?;
        let media_type = format.content_type(is_list);
        let missing_note = missing_nodes_of_schema(schema).map(|missing| missing.to_string());
        Ok(Self { media_type, columns: schema.fields().len(), missing_note, body })
    }

    /// The media type of the body, with its parameters.
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self.body, EncodedBody::Text(_))
    }

    /// The body, if it is text.
    pub(crate) fn text(&mut self) -> Option<&mut TextBody> {
        match &mut self.body {
            EncodedBody::Text(text) => Some(text),
            EncodedBody::Binary(_) => None,
        }
    }

    /// The number of rows to inspect before the first is written.
    pub(crate) fn lookahead_rows(&self) -> usize {
        match &self.body {
            EncodedBody::Text(text) => text.lookahead_rows(),
            EncodedBody::Binary(_) => 0,
        }
    }

    /// Writes the rows of `batch` and returns the bytes that can be sent, possibly none.
    ///
    /// # Errors
    /// When the batch has other columns than the schema, or a value cannot be represented in the type of the format.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<Bytes, Error> {
        if batch.num_columns() != self.columns {
            let detail = format!("a batch has {} columns, and the answer {}", batch.num_columns(), self.columns);
            return Err(Error::internal(detail));
        }
        if batch.num_rows() == 0 {
            return Ok(Bytes::new());
        }
        match &mut self.body {
            EncodedBody::Binary(body) => body.write(batch),
            EncodedBody::Text(text) => {
                text.write(batch);
                Ok(text.take_piece().0.into())
            }
        }
    }

    /// Returns the bytes of all rows so far, even if a binary format would buffer more.
    pub(crate) fn flush(&mut self) -> Result<Bytes, Error> {
        match &mut self.body {
            EncodedBody::Binary(body) => body.flush(),
            EncodedBody::Text(text) => Ok(text.take_piece().0.into()),
        }
    }

    /// The size in bytes of a binary body of `batch` alone; zero for text, whose rows are measured one by one.
    pub(crate) fn standalone_bytes(&self, batch: &RecordBatch) -> Result<usize, Error> {
        match &self.body {
            EncodedBody::Binary(body) => body.standalone_bytes(batch),
            EncodedBody::Text(_) => Ok(0),
        }
    }

    /// Ends the body and returns the remaining bytes. Formats with a place for it state whether rows are missing.
    ///
    /// # Errors
    /// Only because of an internal error.
    pub fn finish(mut self, is_truncated: bool) -> Result<Bytes, Error> {
        self.write_end(is_truncated)
    }

    /// The size of the note about missing nodes.
    pub(crate) fn missing_note_bytes(&self) -> usize {
        self.missing_note.as_ref().map_or(0, String::len)
    }

    /// Writes a note about missing nodes after the end of a text body, where the format allows one.
    pub(crate) fn write_missing_note(&mut self) {
        if let (EncodedBody::Text(text), Some(note)) = (&mut self.body, &self.missing_note) {
            text.write_note(note);
        }
    }

    /// The same, for an encoder that nothing is written to afterwards.
    pub(crate) fn write_end(&mut self, is_truncated: bool) -> Result<Bytes, Error> {
        match &mut self.body {
            EncodedBody::Binary(body) => body.finish(),
            EncodedBody::Text(text) => {
                text.write_end(is_truncated);
                if let Some(note) = &self.missing_note {
                    text.write_note(note);
                }
                Ok(text.take_rest().0.into())
            }
        }
    }

    /// Ends the body after a failure and returns the bytes that state the error. Only text formats can do so: binary
    /// formats lack their end.
    pub fn fail(mut self, error: &Error) -> Bytes {
        let Some(text) = self.text() else { return Bytes::new() };
        text.write_failure(&error.to_string());
        text.take_rest().0.into()
    }
}

tidegate_core::impl_debug!(RowEncoder { media_type });

pub(crate) struct TextBody {
    writer: Box<dyn FormatWriter>,
    has_inspected_rows: bool,
    has_begun: bool,
    /// Text that was not taken yet, and the rows in it.
    piece: String,
    piece_rows: u64,
    pub(crate) rows: u64,
    started: Instant,
}

impl TextBody {
    pub(crate) fn new(writer: Box<dyn FormatWriter>, started: Instant) -> Self {
        let (has_inspected_rows, has_begun, piece, piece_rows, rows) = Default::default();
        Self { writer, has_inspected_rows, has_begun, piece, piece_rows, rows, started }
    }

    /// The number of bytes that were not taken yet.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.piece.len()
    }

    /// The number of bytes that were not taken yet, if the body were closed now.
    pub(crate) fn closed_bytes_max(&self) -> usize {
        self.piece.len() + self.writer.closing_bytes_max()
    }

    pub(crate) fn lookahead_rows(&self) -> usize {
        self.writer.lookahead_rows()
    }

    pub(crate) fn inspect_rows(&mut self, batch: &RecordBatch, rows: usize) {
        self.has_inspected_rows = true;
        self.writer.inspect_rows(&batch_cells(batch), rows);
    }

    /// Writes every row of `batch`. A writer that needs lookahead inspects the first batch.
    pub(crate) fn write(&mut self, batch: &RecordBatch) {
        if !self.has_inspected_rows {
            self.inspect_rows(batch, batch.num_rows().min(self.lookahead_rows()));
        }
        let cells = batch_cells(batch);
        for row in 0..batch.num_rows() {
            self.write_row(&cells, row);
        }
    }

    pub(crate) fn write_row(&mut self, cells: &[BoxedCells<'_>], row: usize) -> usize {
        self.ensure_started();
        let before = self.piece.len();
        self.writer.write_row(cells, row, self.rows, &mut self.piece);
        self.rows += 1;
        self.piece_rows += 1;
        self.piece.len() - before
    }

    /// Removes the last row, which has `bytes` bytes and was not taken yet.
    pub(crate) fn undo_row(&mut self, bytes: usize) {
        self.piece.truncate(self.piece.len().saturating_sub(bytes));
        self.rows -= 1;
        self.piece_rows -= 1;
    }

    /// Takes the text of the rows so far, and the number of rows in it.
    pub(crate) fn take_piece(&mut self) -> (String, u64) {
        self.finish_piece();
        self.take_rest()
    }

    /// Takes the remaining text of a closed body, and the number of rows in it.
    pub(crate) fn take_rest(&mut self) -> (String, u64) {
        (std::mem::take(&mut self.piece), std::mem::take(&mut self.piece_rows))
    }

    /// Writes the footer; `truncated` says whether more rows exist.
    pub(crate) fn write_end(&mut self, truncated: bool) {
        let statistics = self.end_rows(truncated);
        self.writer.write_footer(statistics, &mut self.piece);
    }

    pub(crate) fn write_failure(&mut self, message: &str) {
        let statistics = self.end_rows(true);
        self.writer.write_failure(statistics, message, &mut self.piece);
    }

    pub(crate) fn write_note(&mut self, line: &str) {
        self.writer.write_note(line, &mut self.piece);
    }

    fn ensure_started(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.writer.write_header(&mut self.piece);
        }
    }

    fn finish_piece(&mut self) {
        self.writer.finish_piece(self.rows - self.piece_rows, self.piece_rows, &mut self.piece);
    }

    fn end_rows(&mut self, truncated: bool) -> AnswerStatistics {
        self.ensure_started();
        self.finish_piece();
        AnswerStatistics { rows: self.rows, elapsed: self.started.elapsed(), truncated }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn writers_have_the_properties_of_their_formats() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        for &format in Format::ALL {
            for is_list in [false, true] {
                let encoder = RowEncoder::for_answer(format, is_list, &schema, Instant::now()).unwrap();
                assert_eq!(encoder.is_text(), !format.is_binary(), "{format:?}");
                assert!(encoder.lookahead_rows() == 0 || format.needs_several_rows(), "{format:?}");
            }
        }
    }
}
