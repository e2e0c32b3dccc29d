//! The rows of CSV files and the entries of log files as batches; read errors of text files, and the column
//! corrections that follow from them. A value of a CSV file is in a column only if the column holds it exactly.
//!
//! A log file is read up to the size that it had in the snapshot, so that a file that grows while it is read ends
//! where the snapshot ends. A last line without line break is left out while the file is being written: it would be
//! read again when it is complete.

use std::collections::{BTreeSet, VecDeque};
use std::error::Error as StdError;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions, StringBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use thiserror::Error;
use tidegate_log_formats::{
    ENTRY_FILE_ID, EndOfInput, EntrySchema, EntryValue, FILE_ID_BYTES_MAX, LogFileReader, ParsedEntry, TimeContext,
    identify_log_file,
};
use tidegate_query::field_type_name;

use super::json_rows::{JsonMisfit, JsonRowsError};
use crate::embedded::files::{
    CHANGED_WHILE_READ, CoercionMode, ColumnCorrections, ColumnValues, Compression, CsvDialect, CsvError, CsvRecord,
    CsvRecords, FileTable, FileVersion, LogDialect, NumberEvidence, NumberFormat, TextReading, TextTableOptions,
    cut_value, field_count_error, infer_type, is_null_marker, open_decompressed, read_error_reason, suggest_yaml,
    type_note, wider,
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
