//! Parquet files, which are read from their end.

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

use arrow::array::{RecordBatch, RecordBatchReader as _};
use arrow::datatypes::{FieldRef, Fields, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::{ConvertedType, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use tidegate_core::MemoryReservation;

use crate::convert::{BatchConverter, view_type};
use crate::error::BodyError;
use crate::options::{BodyCoding, BodyLimits, BodyOptions};
use crate::parquet_footer::check_footer;
use crate::parquet_groups::{CheckedGroups, PageBudget};
use crate::parquet_pages::{PageSizes, check_pages};
use crate::rows::{DecodedRows, RowCollector, RowCounts};

const READ_BYTES: usize = 64 << 10;
/// So many rows of a batch may have lists as large as a row may be.
const LONG_LISTS_MAX: u64 = 8;

/// Decodes a body of Parquet from a file that has the whole body.
///
/// Parquet has its schema at the end, so that it cannot be decoded while it arrives. The caller stores the body in a
/// temporary file first, without a content coding: Parquet is compressed itself.
///
/// Memory is bounded by some pages and a dictionary of each column, and one batch. With [`Self::with_memory`], it is reserved
/// before it is used. As with [`crate::BodyDecoder`], the caller discards all
/// rows if an error follows them.
pub struct ParquetBody {
    reader: ParquetRecordBatchReader,
    converter: BatchConverter,
    length: u64,
    rows: RowCollector,
    budget: Arc<PageBudget>,
    /// What a batch takes when it is read: its pages, and its values.
    batch_bytes: usize,
    failure: Option<BodyError>,
    is_complete: bool,
}

tidegate_core::impl_debug!(ParquetBody { converter });

/// The columns of a Parquet file, with the types that they have in Arrow.
///
/// # Errors
///
/// If `file` is not a Parquet file.
pub fn parquet_schema<R: Read + Seek + Send + 'static>(file: R) -> Result<SchemaRef, BodyError> {
    Ok(open(file)?.builder.schema().clone())
}

impl ParquetBody {
    /// Opens a body for a table with this schema.
    ///
    /// # Errors
    ///
    /// [`BodyError::Malformed`] if `file` is not a Parquet file, [`BodyError::Columns`] if its columns do not fit the table,
    /// [`BodyError::TooLarge`] if it expands beyond the limits.
    pub fn new<R: Read + Seek + Send + 'static>(
        file: R,
        schema: &Schema,
        options: BodyOptions,
    ) -> Result<Self, BodyError> {
        if options.coding != BodyCoding::Identity {
            let reason = "Parquet has no content coding, because it is compressed itself";
            return Err(BodyError::Options(reason.to_owned()));
        }
        let OpenFile { builder, file } = open(file)?;
        let (metadata, length) = (builder.metadata().clone(), file.length);
        let sizes = check_pages(&file, &metadata, length, &options.limits)?;
        // Text is read as views of its pages, whose size is known before it is copied.
        let with_views = |field: &FieldRef| field.as_ref().clone().with_data_type(view_type(field.data_type()));
        let fields: Fields = builder.schema().fields().iter().map(with_views).collect();
        let columns = metadata.file_metadata().schema_descr();
        let levels = guarded(|| parquet_to_arrow_field_levels(columns, ProjectionMask::all(), Some(&fields)))?;
        let batch_rows = batch_rows(&sizes, &options.limits);
        let page_bytes = batch_page_bytes(&sizes, batch_rows, &options.limits);
        let file_rows = u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(u64::MAX);
        let value_bytes = sizes.row_bytes.saturating_mul(file_rows.min(batch_rows as u64));
        let batch_bytes = usize::try_from(page_bytes.saturating_add(value_bytes)).unwrap_or(usize::MAX);
        let budget = PageBudget::new(page_bytes);
        let groups = CheckedGroups { file: Arc::new(file), metadata: metadata.clone(), budget: budget.clone() };
        let reader = guarded(|| ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, batch_rows, None))?;
        let converter = BatchConverter::new(&reader.schema(), schema, &options)?;
        let rows =
            RowCollector::new(&Schema::empty(), Arc::new(BodyOptions { epoch_units: Default::default(), ..options }))?;
        Ok(Self { reader, converter, length, rows, budget, batch_bytes, failure: None, is_complete: false })
    }

    /// The same body, which draws on `memory`. The caller counts rows that were returned.
    #[must_use]
    pub fn with_memory(mut self, memory: Box<dyn MemoryReservation>) -> Self {
        self.rows.set_memory(memory);
        self
    }

    /// The next rows, or nothing if all were returned and the body was valid.
    ///
    /// # Errors
    ///
    /// The body is refused. The same error is returned from then on.
    pub fn next_rows(&mut self) -> Result<Option<DecodedRows>, BodyError> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        self.read_rows().map_err(|error| {
            let error = self.rows.refusal().err().unwrap_or(error);
            self.failure = Some(error.clone());
            error
        })
    }

    /// How many rows were read so far.
    #[must_use]
    pub fn counts(&self) -> RowCounts {
        self.rows.counts()
    }

    /// The columns of the table, with those that are added.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.converter.schema()
    }

    fn read_rows(&mut self) -> Result<Option<DecodedRows>, BodyError> {
        loop {
            if let Some(rows) = self.rows.next_ready()? {
                return Ok(Some(rows));
            }
            if self.is_complete {
                self.rows.release_memory();
                return Ok(None);
            }
            self.rows.set_input_bytes(self.batch_bytes);
            if self.converter.convert_next(self.length, &mut self.rows)? {
                continue;
            }
            self.budget.reset();
            self.rows.reserve(0)?;
            let next: Result<Option<RecordBatch>, _> = guarded(|| self.reader.next().transpose());
            if self.budget.is_exceeded() {
                let max = self.budget.bytes_max();
                return Err(BodyError::TooLarge(format!(
                    "the lists of a few rows have pages of more than {max} bytes; write smaller lists"
                )));
            }
            match next? {
                Some(batch) => self.converter.start(batch),
                None => {
                    self.rows.refusal()?;
                    self.is_complete = true;
                }
            }
        }
    }
}

/// How many rows are read at once.
fn batch_rows(sizes: &PageSizes, limits: &BodyLimits) -> usize {
    let rows = limits.batch_bytes as u64 / sizes.row_bytes.max(1);
    usize::try_from(rows).unwrap_or(usize::MAX).clamp(1, limits.batch_rows_max.max(1))
}

/// What the pages of a batch take at most: those of its rows, and of each column the first and the last page, which have
/// other rows, too. A list may go on in further pages.
fn batch_page_bytes(sizes: &PageSizes, batch_rows: usize, limits: &BodyLimits) -> u64 {
    let of_rows = sizes.row_bytes.saturating_mul(batch_rows as u64);
    let of_lists = if sizes.has_lists { LONG_LISTS_MAX.saturating_mul(limits.row_bytes_max as u64) } else { 0 };
    of_rows.saturating_add(2 * sizes.open_bytes).saturating_add(of_lists).min(sizes.total_bytes)
}

struct OpenFile<R: Read + Seek + Send + 'static> {
    builder: ParquetRecordBatchReaderBuilder<SharedFile<R>>,
    file: SharedFile<R>,
}

fn open<R: Read + Seek + Send + 'static>(mut file: R) -> Result<OpenFile<R>, BodyError> {
    let length = check_footer(&mut file)?;
    let file = SharedFile { file: Arc::new(Mutex::new(file)), length };
    let builder = guarded(|| ParquetRecordBatchReaderBuilder::try_new(file.clone()))?;
    check_types(builder.metadata())?;
    Ok(OpenFile { builder, file })
}

/// Refuses values that the library reads as others: timestamps of 96 bits before 1677 and after 2262, and intervals, of which
/// it reads either the months or the rest. A file with an Arrow schema says which of them there are.
fn check_types(metadata: &ParquetMetaData) -> Result<(), BodyError> {
    let file = metadata.file_metadata();
    let mut pairs = file.key_value_metadata().into_iter().flatten();
    let has_arrow_schema = pairs.any(|pair| pair.key == ARROW_SCHEMA_META_KEY);
    let is_interval =
        |column: &ColumnDescriptor| column.converted_type() == ConvertedType::INTERVAL && !has_arrow_schema;
    let problem = |column: &ColumnDescPtr| match column.physical_type() {
        PhysicalType::INT96 => Some(
            "timestamps of the outdated type INT96; write them with 64 bits (in Spark: \
             spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS)",
        ),
        _ if is_interval(column) => {
            Some("intervals of Parquet, of which not all parts can be read; send them as Arrow")
        }
        _ => None,
    };
    let mut problems = file.schema_descr().columns().iter().filter_map(|column| Some((column, problem(column)?)));
    match problems.next() {
        None => Ok(()),
        Some((column, problem)) => {
            Err(BodyError::Columns(format!("column \"{}\" has {problem}", column.path().string())))
        }
    }
}

/// Reads with the library, which reports some broken files as panics.
fn guarded<T, E: fmt::Display>(read: impl FnOnce() -> Result<T, E>) -> Result<T, BodyError> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(BodyError::Malformed(format!("the body is no valid Parquet file: {error}"))),
        Err(_) => Err(BodyError::Malformed("the body is no valid Parquet file: it contradicts itself".to_owned())),
    }
}

/// One file that several columns are read from at once.
#[derive(Debug)]
struct SharedFile<R> {
    file: Arc<Mutex<R>>,
    length: u64,
}

impl<R> Clone for SharedFile<R> {
    fn clone(&self) -> Self {
        Self { file: self.file.clone(), length: self.length }
    }
}

/// One place in the file.
#[derive(Debug)]
struct FilePart<R> {
    file: Arc<Mutex<R>>,
    position: u64,
}

impl<R: Read + Seek> Read for FilePart<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.position))?;
        let length = file.read(buffer)?;
        self.position += length as u64;
        Ok(length)
    }
}

impl<R> Length for SharedFile<R> {
    fn len(&self) -> u64 {
        self.length
    }
}

impl<R: Read + Seek + Send> ChunkReader for SharedFile<R> {
    type T = BufReader<FilePart<R>>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let part = FilePart { file: self.file.clone(), position: start };
        Ok(BufReader::with_capacity(READ_BYTES, part))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.length);
        if end.is_none() {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are beyond the end of the file")));
        }
        let mut bytes = Vec::with_capacity(length);
        let part = FilePart { file: self.file.clone(), position: start };
        part.take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF("the file ends too early".to_owned()));
        }
        Ok(bytes.into())
    }
}
