//! The rows of CSV files and the entries of log files as batches. A value of a CSV file is in a column only if the
//! column holds it exactly.
//!
//! A log file is read up to the size that it had in the snapshot, so that a file that grows while it is read ends
//! where the snapshot ends. A last line without line break is left out while the file is being written: it would be
//! read again when it is complete.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions, StringBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::arrow::error::ArrowError;
use tidegate_log_formats::{
    ENTRY_FILE_ID, EndOfInput, EntrySchema, EntryValue, FILE_ID_BYTES_MAX, LogFileReader, ParsedEntry, TimeContext,
    identify_log_file,
};

use crate::embedded::files::{
    CHANGED_WHILE_READ, ColumnValues, Compression, CsvDialect, CsvError, CsvRecord, CsvRecords, FileTable, LogDialect,
    TextReading, TextTableOptions, field_count_error, is_null_marker, open_decompressed,
};

/// Why the rows of a CSV file cannot be read.
pub(super) enum CsvRowsError {
    Csv(CsvError),
    Misfit(Misfit),
    Batch(ArrowError),
}

/// A value that its column does not hold.
pub(super) struct Misfit {
    /// The position of the column in the file.
    pub(super) column: usize,
    pub(super) value: String,
    /// The line in which its row begins, from 1.
    pub(super) line: u64,
}

impl From<CsvError> for CsvRowsError {
    fn from(error: CsvError) -> Self {
        Self::Csv(error)
    }
}

/// The batches of a file.
pub(super) struct CsvRows<R> {
    records: CsvRecords<R>,
    dialect: CsvDialect,
    /// The number of columns of the file.
    width: usize,
    columns: Vec<CsvColumn>,
    schema: SchemaRef,
    batch_rows: usize,
    needs_header: bool,
}

impl<R: Read> CsvRows<R> {
    /// The rows of `records` with the columns of `table` at `positions`, whose fields are those of `schema`.
    pub(super) fn new(
        records: CsvRecords<R>,
        dialect: &CsvDialect,
        table: &FileTable,
        options: &TextTableOptions,
        positions: &[usize],
        schema: SchemaRef,
        batch_rows: usize,
    ) -> Self {
        let column = |(position, field): (&usize, &Arc<Field>)| CsvColumn {
            position: *position,
            values: ColumnValues::new(field.data_type()),
            reading: TextReading::new(options.columns.get(field.name()), field.data_type(), dialect.numbers),
            nulls: match (&dialect.nulls, field.data_type()) {
                (Some(nulls), _) => NullTexts::Declared(nulls.clone()),
                (None, DataType::Utf8) => NullTexts::Empty,
                (None, _) => NullTexts::of_typed(field.name(), &table.null_marker_columns),
            },
        };
        Self {
            records,
            dialect: dialect.clone(),
            width: table.schema.file_schema().fields().len(),
            columns: positions.iter().zip(schema.fields()).map(column).collect(),
            schema,
            batch_rows: batch_rows.max(1),
            needs_header: dialect.has_header,
        }
    }

    /// The batches, until there are no more or one cannot be read.
    pub(super) fn batches(mut self) -> impl Iterator<Item = Result<RecordBatch, CsvRowsError>> {
        batches_until_error(move || self.read_batch())
    }

    fn read_batch(&mut self) -> Result<Option<RecordBatch>, CsvRowsError> {
        if std::mem::take(&mut self.needs_header) {
            self.records.next()?;
        }
        let (mut rows, mut bytes) = (0, 0);
        while rows < self.batch_rows && bytes < BATCH_BYTES_MAX {
            let Some(record) = self.records.next()? else { break };
            bytes += record.bytes();
            if !self.dialect.takes_fields(record.len(), self.width) {
                return Err(field_count_error(&record, self.width, &[]).into());
            }
            for column in &mut self.columns {
                column.append(&record)?;
            }
            rows += 1;
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns = self.columns.iter_mut().map(|column| column.values.finish()).collect();
        batch_of(&self.schema, columns, rows).map(Some).map_err(CsvRowsError::Batch)
    }
}

/// A column that is read.
struct CsvColumn {
    /// The position in the file.
    position: usize,
    values: ColumnValues,
    reading: TextReading,
    nulls: NullTexts,
}

/// The texts that mean null beside the empty one.
enum NullTexts {
    Empty,
    Markers,
    Declared(Arc<[String]>),
}

impl NullTexts {
    fn of_typed(name: &str, null_marker_columns: &BTreeSet<String>) -> Self {
        if null_marker_columns.contains(name) { Self::Markers } else { Self::Empty }
    }

    fn contains(&self, text: &str) -> bool {
        text.is_empty()
            || match self {
                Self::Empty => false,
                Self::Markers => is_null_marker(text),
                Self::Declared(nulls) => nulls.iter().any(|null| null == text),
            }
    }
}

impl CsvColumn {
    #[inline]
    fn append(&mut self, record: &CsvRecord<'_>) -> Result<(), CsvRowsError> {
        let Some(text) = record.field(self.position).filter(|text| !self.nulls.contains(text)) else {
            self.values.append_null();
            return Ok(());
        };
        self.values.append(&text, &self.reading).ok_or_else(|| {
            let (column, line) = (self.position, record.line);
            CsvRowsError::Misfit(Misfit { column, value: text.into_owned(), line })
        })
    }
}

/// The bytes of the values of a batch, unless a row has more.
pub(super) const BATCH_BYTES_MAX: usize = 16 << 20;

/// The batches that `read` returns, until it has no more or fails.
pub(super) fn batches_until_error<E>(
    mut read: impl FnMut() -> Result<Option<RecordBatch>, E>,
) -> impl Iterator<Item = Result<RecordBatch, E>> {
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let batch = read().transpose();
        is_over = !matches!(batch, Some(Ok(_)));
        batch
    })
}

/// The batch of `rows` rows with these columns, which may be none.
pub(super) fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

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
