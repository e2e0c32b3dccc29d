//! Parquet files, which are read from their end.

use std::fmt;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::Type as PhysicalType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};

use crate::convert::{BatchConverter, check_row_count};
use crate::error::BodyError;
use crate::options::{BodyCoding, BodyOptions};
use crate::parquet_footer::check_footer;
use crate::rows::{DecodedRows, RowCollector, RowCounts};

const READ_BYTES: usize = 64 << 10;

/// Decodes a body of Parquet from a file that has the whole body.
///
/// Parquet has its schema at the end, so that it cannot be decoded while it arrives. The caller stores the body in a
/// temporary file first, without a content coding: Parquet is compressed itself.
///
/// Memory is bounded by the pages of one batch in each column. As with [`crate::BodyDecoder`], the caller discards all
/// rows if an error follows them.
pub struct ParquetBody {
    reader: ParquetRecordBatchReader,
    converter: BatchConverter,
    rows: RowCollector,
    failure: Option<BodyError>,
    is_complete: bool,
}

impl fmt::Debug for ParquetBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ParquetBody").field("converter", &self.converter).finish_non_exhaustive()
    }
}

/// The columns of a Parquet file, with the types that they have in Arrow.
///
/// # Errors
///
/// If `file` is not a Parquet file.
pub fn parquet_schema<R: Read + Seek + Send + 'static>(file: R) -> Result<SchemaRef, BodyError> {
    let (builder, _) = open(file)?;
    Ok(builder.schema().clone())
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
        let (builder, length) = open(file)?;
        check_expansion(builder.metadata(), &options)?;
        let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(u64::MAX);
        check_row_count(rows, length, &options.limits)?;
        let converter = BatchConverter::new(builder.schema(), schema, &options)?;
        let batch_rows_max = options.limits.batch_rows_max.max(1);
        let reader = guarded(|| builder.with_batch_size(batch_rows_max).build())?;
        let rows =
            RowCollector::new(&Schema::empty(), Arc::new(BodyOptions { epoch_units: Default::default(), ..options }))?;
        Ok(Self { reader, converter, rows, failure: None, is_complete: false })
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

    /// The columns that the body adds, with [`crate::UnknownColumns::Add`].
    #[must_use]
    pub fn added_columns(&self) -> Vec<FieldRef> {
        self.converter.added()
    }

    fn read_rows(&mut self) -> Result<Option<DecodedRows>, BodyError> {
        loop {
            if let Some(rows) = self.rows.next_ready() {
                return Ok(Some(rows));
            }
            if self.is_complete {
                return Ok(None);
            }
            let next: Option<RecordBatch> = guarded(|| self.reader.next().transpose())?;
            match next {
                Some(batch) => self.converter.convert(&batch, &mut self.rows)?,
                None => {
                    self.rows.refusal()?;
                    self.is_complete = true;
                }
            }
        }
    }
}

fn open<R: Read + Seek + Send + 'static>(
    mut file: R,
) -> Result<(ParquetRecordBatchReaderBuilder<SharedFile<R>>, u64), BodyError> {
    let length = check_footer(&mut file)?;
    let file = SharedFile { file: Arc::new(Mutex::new(file)), length };
    let builder = guarded(|| ParquetRecordBatchReaderBuilder::try_new(file))?;
    check_physical_types(builder.metadata())?;
    Ok((builder, length))
}

/// Refuses timestamps of 96 bits: the library reads those before 1677 and after 2262 as other times.
fn check_physical_types(metadata: &ParquetMetaData) -> Result<(), BodyError> {
    let columns = metadata.file_metadata().schema_descr().columns().iter();
    let mut outdated = columns.filter(|column| column.physical_type() == PhysicalType::INT96);
    match outdated.next() {
        None => Ok(()),
        Some(column) => Err(BodyError::Columns(format!(
            "column \"{}\" has timestamps of the outdated type INT96; write them with 64 bits (in Spark: \
             spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS)",
            column.path().string()
        ))),
    }
}

/// Refuses files that declare more bytes than they may have.
fn check_expansion(metadata: &ParquetMetaData, options: &BodyOptions) -> Result<(), BodyError> {
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    let declared = columns.map(|column| u64::try_from(column.uncompressed_size()).unwrap_or(u64::MAX));
    let total = declared.fold(0u64, u64::saturating_add);
    let max = options.limits.decompressed_bytes_max;
    if total > max {
        return Err(BodyError::TooLarge(format!("the body has more than {max} bytes after decompression")));
    }
    Ok(())
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
