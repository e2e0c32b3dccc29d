//! The entries of a log file as record batches.
//!
//! A file is read up to the size that it had in the snapshot, so that a file that grows while it is read ends where the
//! snapshot ends. A last line without line break is left out while the file is being written: it would be read again
//! when it is complete.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions, StringBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use tidegate_log_formats::{
    ENTRY_FILE_ID, EndOfInput, EntrySchema, EntryValue, FILE_ID_BYTES_MAX, LogFileReader, ParsedEntry, TimeContext,
    identify_log_file,
};

use crate::embedded::files::{CHANGED_WHILE_READ, Compression, LogDialect, open_decompressed};

/// A file that was written to within this time before it is read is still being written.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);
const PIECE_BYTES: usize = 64 << 10;
/// A batch has no more text than this, whatever its number of rows, plus one entry.
const BATCH_TEXT_BYTES: usize = 2 << 20;
/// How many pieces are read before an empty batch is returned, so that the query can be cancelled.
const PIECES_PER_BATCH: usize = 128;
const NANOSECONDS_PER_MICROSECOND: i64 = 1_000;

/// What the snapshot contains about a file.
pub(super) struct LogFile {
    /// The size, if it is known.
    pub(super) bytes: Option<u64>,
    pub(super) compression: Compression,
    pub(super) modified: SystemTime,
}

pub(super) struct LogRows {
    bytes: Box<dyn Read + Send>,
    /// The bytes of the snapshot that were not read yet, of a file without compression.
    bytes_left: Option<u64>,
    /// `None` at the end of the file.
    reader: Option<LogFileReader>,
    /// How the file is identified from its beginning, if that is needed and not yet done.
    unidentified: Option<(Arc<EntrySchema>, TimeContext)>,
    end: EndOfInput,
    piece: Vec<u8>,
    batches: BatchBuilder,
}

impl LogRows {
    /// The entries of `file` with the columns at `positions`, whose fields are those of `schema`.
    pub(super) fn open(
        file: File,
        log: &LogFile,
        dialect: &LogDialect,
        schema: SchemaRef,
        positions: &[usize],
        batch_rows: usize,
    ) -> Result<Self, String> {
        let is_plain = log.compression == Compression::UNCOMPRESSED;
        let is_written = log.modified.elapsed().map_or(true, |since| since < WRITTEN_WITHIN);
        let bytes_left = log.bytes.filter(|_| is_plain);
        let bytes = open_decompressed(file, log.compression)?;
        let context = TimeContext::new(dialect.time_zone, log.modified);
        let needs_id = dialect.schema.column_index(ENTRY_FILE_ID).is_some_and(|column| positions.contains(&column));
        Ok(Self {
            bytes: match bytes_left {
                Some(left) => Box::new(bytes.take(left)),
                None => bytes,
            },
            bytes_left,
            unidentified: needs_id.then(|| (dialect.schema.clone(), context.clone())),
            reader: Some(LogFileReader::new(dialect.schema.clone(), context)),
            end: if is_plain && is_written { EndOfInput::Growing } else { EndOfInput::Complete },
            piece: vec![0; PIECE_BYTES],
            batches: BatchBuilder::new(schema, positions, batch_rows),
        })
    }

    /// Reads the beginning of the file ahead, which identifies it.
    fn identify(&mut self) -> io::Result<()> {
        let Some((schema, context)) = self.unidentified.take() else { return Ok(()) };
        let mut bytes = std::mem::replace(&mut self.bytes, Box::new(io::empty()));
        let mut beginning = Vec::with_capacity(FILE_ID_BYTES_MAX);
        bytes.by_ref().take(FILE_ID_BYTES_MAX as u64).read_to_end(&mut beginning)?;
        let file_id = identify_log_file(&beginning, &schema, &context);
        self.reader = self.reader.take().map(|reader| reader.with_file_id(file_id));
        self.bytes = Box::new(io::Cursor::new(beginning).chain(bytes));
        Ok(())
    }

    fn read_piece(&mut self) -> Result<(), ArrowError> {
        self.identify()?;
        let read = match self.bytes.read(&mut self.piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            read => read?,
        };
        if let Some(left) = &mut self.bytes_left {
            *left = left.saturating_sub(read as u64);
        }
        let batches = &mut self.batches;
        if read > 0 {
            if let Some(reader) = &mut self.reader {
                reader.push(self.piece.get(..read).unwrap_or_default(), |entry| batches.append(entry));
            }
            return Ok(());
        }
        // The file was truncated: some rotations copy it and then empty it.
        if self.bytes_left.is_some_and(|left| left > 0) {
            return Err(io::Error::other(CHANGED_WHILE_READ).into());
        }
        if let Some(reader) = self.reader.take() {
            reader.finish(self.end, |entry| batches.append(entry));
            batches.finish_batch();
        }
        Ok(())
    }
}

impl Iterator for LogRows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        for _ in 0..PIECES_PER_BATCH {
            if let Some(batch) = self.batches.complete.pop_front() {
                return Some(batch);
            }
            self.reader.as_ref()?;
            if let Err(error) = self.read_piece() {
                self.reader = None;
                return Some(Err(error));
            }
        }
        Some(Ok(RecordBatch::new_empty(self.batches.schema.clone())))
    }
}

/// Builds batches of the columns that the query needs.
struct BatchBuilder {
    schema: SchemaRef,
    columns: Vec<(usize, ColumnBuilder)>,
    batch_rows: usize,
    rows: usize,
    text_bytes: usize,
    complete: VecDeque<Result<RecordBatch, ArrowError>>,
}

impl BatchBuilder {
    fn new(schema: SchemaRef, positions: &[usize], batch_rows: usize) -> Self {
        let builders = schema.fields().iter().map(|field| ColumnBuilder::new(field.data_type()));
        let columns = positions.iter().copied().zip(builders).collect();
        Self { schema, columns, batch_rows: batch_rows.max(1), rows: 0, text_bytes: 0, complete: VecDeque::new() }
    }

    fn append(&mut self, entry: &ParsedEntry<'_>) {
        for (position, column) in &mut self.columns {
            self.text_bytes += column.append(entry.value(*position));
        }
        self.rows += 1;
        if self.rows >= self.batch_rows || self.text_bytes >= BATCH_TEXT_BYTES {
            self.finish_batch();
        }
    }

    fn finish_batch(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        self.text_bytes = 0;
        if rows > 0 {
            let arrays = self.columns.iter_mut().map(|(_, column)| column.finish()).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            self.complete.push_back(RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options));
        }
    }
}

enum ColumnBuilder {
    Text(StringBuilder),
    Integer(Int64Builder),
    Float(Float64Builder),
    Time(TimestampMicrosecondBuilder),
    Boolean(BooleanBuilder),
}

impl ColumnBuilder {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int64 => Self::Integer(Int64Builder::new()),
            DataType::Float64 => Self::Float(Float64Builder::new()),
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::Timestamp(..) => Self::Time(TimestampMicrosecondBuilder::new().with_data_type(data_type.clone())),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Appends a value of the type of the column, or null. Returns the bytes of its text.
    fn append(&mut self, value: EntryValue<'_>) -> usize {
        match (self, value) {
            (Self::Text(builder), EntryValue::Text(text)) => {
                builder.append_value(text);
                return text.len();
            }
            (Self::Integer(builder), EntryValue::Integer(number)) => builder.append_value(number),
            (Self::Float(builder), EntryValue::Float(number)) => builder.append_value(number),
            (Self::Boolean(builder), EntryValue::Boolean(boolean)) => builder.append_value(boolean),
            (Self::Time(builder), EntryValue::Timestamp(nanoseconds)) => {
                builder.append_value(nanoseconds.div_euclid(NANOSECONDS_PER_MICROSECOND));
            }
            (Self::Text(builder), _) => builder.append_null(),
            (Self::Integer(builder), _) => builder.append_null(),
            (Self::Float(builder), _) => builder.append_null(),
            (Self::Boolean(builder), _) => builder.append_null(),
            (Self::Time(builder), _) => builder.append_null(),
        }
        0
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Integer(builder) => Arc::new(builder.finish()),
            Self::Float(builder) => Arc::new(builder.finish()),
            Self::Boolean(builder) => Arc::new(builder.finish()),
            Self::Time(builder) => Arc::new(builder.finish()),
        }
    }
}
