//! Bodies that arrive in pieces.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use tidegate_core::MemoryReservation;

use crate::arrow_stream::ArrowStream;
use crate::coding::BodyDecompressor;
use crate::csv::CsvRows;
use crate::error::BodyError;
use crate::infer::infer_new_columns;
use crate::json::{JsonDocument, JsonLines};
use crate::options::{BodyFormat, BodyLimits, BodyOptions, UnknownColumns};
use crate::rows::{DecodedRows, RowCollector, RowCounts};

/// How many decompressed bytes are read before the types of added columns are chosen.
const ADDED_COLUMNS_SAMPLE_BYTES: usize = 256 << 10;
/// Batches and rows are far below 2 GiB, whatever their limits say, because Arrow addresses text with 32 bits.
const BATCH_BYTES_CEILING: usize = 512 << 20;
/// What the values of a text take at once, for each of its bytes. Lists of longer ones are counted by their items.
const TEXT_EXPANSION: usize = 4;

/// Decodes one body into batches of a table.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::datatypes::{DataType, Field, Schema};
/// # use tidegate_ingest_formats::{BodyDecoder, BodyFormat, BodyOptions};
/// let schema = Arc::new(Schema::new(vec![Field::new("value", DataType::Int64, true)]));
/// let mut decoder = BodyDecoder::new(&schema, BodyOptions::new(BodyFormat::Ndjson))?;
/// let mut rows = 0;
/// for piece in [&b"{\"value\":1}\n{\"val"[..], b"ue\":2}\n"] {
///     decoder.push(piece);
///     while let Some(decoded) = decoder.next_rows()? {
///         rows += decoded.batch.num_rows();
///     }
/// }
/// decoder.finish();
/// while let Some(decoded) = decoder.next_rows()? {
///     rows += decoded.batch.num_rows();
/// }
/// assert_eq!(rows, 2);
/// # Ok::<(), tidegate_ingest_formats::BodyError>(())
/// ```
///
/// Memory is bounded by the piece that was pushed, one row and one batch, if the caller takes all rows after each piece. With
/// [`Self::with_memory`], it is reserved before it is used.
///
/// Rows are valid only if the body is complete: if [`Self::next_rows`] fails, or the connection of the body breaks, the
/// caller discards all rows that it received. With [`crate::RejectMode::All`], that includes the rows before the first
/// one that is rejected.
#[derive(Debug)]
pub struct BodyDecoder {
    options: Arc<BodyOptions>,
    decompressor: BodyDecompressor,
    input: Vec<u8>,
    /// How many bytes of the input were used.
    used: usize,
    reader: BodyReader,
    rows: RowCollector,
    /// The first decompressed bytes, until the types of added columns are chosen.
    sample: Option<Vec<u8>>,
    progress: BodyProgress,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BodyProgress {
    Reading,
    /// The caller has pushed everything.
    Ending,
    Complete,
    Failed(BodyError),
}

#[derive(Debug)]
enum BodyReader {
    Json(Box<JsonDocument>),
    Ndjson(Box<JsonLines>),
    Csv(Box<CsvRows>),
    Arrow(Box<ArrowStream>),
}

impl BodyDecoder {
    /// A decoder for one body of rows of a table with this schema.
    ///
    /// # Errors
    ///
    /// [`BodyError::Options`] if the format has no values of a column's type, or the options do not fit each other.
    pub fn new(schema: &Schema, mut options: BodyOptions) -> Result<Self, BodyError> {
        bound_limits(&mut options.limits);
        let options = Arc::new(options);
        let limits = &options.limits;
        if options.format == BodyFormat::Arrow && !options.epoch_units.is_empty() {
            let reason = "numbers as timestamps are declared, but Arrow has timestamps with their unit";
            return Err(BodyError::Options(reason.to_owned()));
        }
        let reader = match options.format {
            BodyFormat::Json => BodyReader::Json(Box::new(JsonDocument::new(limits.row_bytes_max))),
            BodyFormat::Ndjson => BodyReader::Ndjson(Box::new(JsonLines::new(limits.row_bytes_max))),
            BodyFormat::Csv => BodyReader::Csv(Box::new(CsvRows::new(&options)?)),
            BodyFormat::Arrow => BodyReader::Arrow(Box::new(ArrowStream::new(schema, options.clone()))),
            BodyFormat::Parquet => {
                let reason = "Parquet is read from its end: store the body in a file and use ParquetBody";
                return Err(BodyError::Options(reason.to_owned()));
            }
        };
        let is_text = !matches!(options.format, BodyFormat::Arrow);
        // Arrow has batches of its own, so that no column of the collector is used.
        let collected = if is_text {
            RowCollector::new(schema, options.clone())
        } else {
            RowCollector::new(&Schema::empty(), options.clone())
        };
        let has_sample = is_text && options.unknown_columns == UnknownColumns::Add;
        Ok(Self {
            decompressor: BodyDecompressor::new(options.coding, limits)?,
            input: Vec::new(),
            used: 0,
            reader,
            rows: collected?,
            sample: has_sample.then(Vec::new),
            progress: BodyProgress::Reading,
            options,
        })
    }

    /// The same decoder, which draws on `memory`. The caller counts rows that were returned.
    #[must_use]
    pub fn with_memory(mut self, memory: Box<dyn MemoryReservation>) -> Self {
        self.rows.set_memory(memory);
        self
    }

    /// Adds the next bytes of the body. [`Self::next_rows`] decodes them. After [`Self::finish`], there are none.
    pub fn push(&mut self, bytes: &[u8]) {
        self.input.drain(..self.used.min(self.input.len()));
        self.used = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Declares that the body is complete. [`Self::next_rows`] then returns the rest of its rows.
    pub fn finish(&mut self) {
        if self.progress == BodyProgress::Reading {
            self.progress = BodyProgress::Ending;
        }
    }

    /// The next rows, or nothing if more bytes are needed. After [`Self::finish`], nothing means that all rows were
    /// returned and the body was valid.
    ///
    /// # Errors
    ///
    /// The body is refused. The same error is returned from then on.
    pub fn next_rows(&mut self) -> Result<Option<DecodedRows>, BodyError> {
        if let BodyProgress::Failed(error) = &self.progress {
            return Err(error.clone());
        }
        self.read_rows().map_err(|error| {
            // What comes first in the body is reported first.
            let error = self.rows.refusal().err().unwrap_or(error);
            self.progress = BodyProgress::Failed(error.clone());
            error
        })
    }

    /// Whether a row was rejected and therefore the body is refused. Reading the rest only finds further reasons.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.rows.is_refused()
    }

    /// How many rows were read so far.
    #[must_use]
    pub fn counts(&self) -> RowCounts {
        self.rows.counts()
    }

    /// The columns of the table, with those that were added so far.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        match &self.reader {
            BodyReader::Arrow(stream) => stream.schema(),
            _ => self.rows.columns().schema(),
        }
    }

    /// The columns that the body added so far, with [`UnknownColumns::Add`].
    #[must_use]
    pub fn added_columns(&self) -> Vec<FieldRef> {
        match &self.reader {
            BodyReader::Arrow(stream) => stream.added_columns(),
            _ => self.rows.columns().added().to_vec(),
        }
    }

    fn read_rows(&mut self) -> Result<Option<DecodedRows>, BodyError> {
        loop {
            if let Some(rows) = self.rows.next_ready()? {
                return Ok(Some(rows));
            }
            if self.progress == BodyProgress::Complete {
                self.rows.release_memory();
                return Ok(None);
            }
            let input_bytes = self.input_bytes();
            self.rows.set_input_bytes(input_bytes);
            // What is decoded grows with the values of a body, and not with its bytes, so it is taken in parts.
            if let BodyReader::Arrow(stream) = &mut self.reader
                && stream.read_next(self.decompressor.bytes_in(), &mut self.rows)?
            {
                continue;
            }
            if self.read_piece()? {
                continue;
            }
            if self.progress != BodyProgress::Ending {
                return Ok(None);
            }
            self.decompressor.finish()?;
            self.end_sample()?;
            match &mut self.reader {
                BodyReader::Json(document) => document.finish()?,
                BodyReader::Ndjson(lines) => lines.finish(&mut self.rows)?,
                BodyReader::Csv(csv) => csv.finish(&mut self.rows)?,
                BodyReader::Arrow(stream) => stream.finish()?,
            }
            self.rows.refusal()?;
            self.rows.end_batch()?;
            self.progress = BodyProgress::Complete;
        }
    }

    /// The memory of what was received and is not rows yet.
    fn input_bytes(&self) -> usize {
        let sample = self.sample.as_ref().map_or(0, Vec::capacity);
        self.input.capacity() + sample + self.decompressor.memory_bytes() + self.reader.memory_bytes()
    }

    /// Reads the next piece of the input. Returns whether there was one.
    fn read_piece(&mut self) -> Result<bool, BodyError> {
        let input = self.input.get(self.used..).unwrap_or_default();
        let (used, piece) = self.decompressor.next_piece(input)?;
        self.used += used;
        if piece.is_empty() {
            return Ok(used > 0);
        }
        self.rows.reserve(TEXT_EXPANSION * piece.len())?;
        match &mut self.sample {
            Some(sample) => {
                sample.extend_from_slice(piece);
                if sample.len() >= ADDED_COLUMNS_SAMPLE_BYTES {
                    self.end_sample()?;
                }
            }
            None => self.reader.push(piece, &mut self.rows)?,
        }
        Ok(true)
    }

    /// Chooses the types of added columns, and reads the rows that they were chosen from.
    fn end_sample(&mut self) -> Result<(), BodyError> {
        let Some(sample) = self.sample.take() else { return Ok(()) };
        for field in infer_new_columns(&sample, &self.options, self.rows.columns().names()) {
            let added = self.rows.columns_mut().add(field).map_err(BodyError::Columns);
            // In JSON, only the rows that have the column are rejected, with the same reason.
            if self.options.format == BodyFormat::Csv {
                added?;
            }
        }
        self.rows.reserve(TEXT_EXPANSION * sample.len())?;
        self.reader.push(&sample, &mut self.rows)
    }
}

impl BodyReader {
    fn memory_bytes(&self) -> usize {
        match self {
            Self::Json(document) => document.memory_bytes(),
            Self::Ndjson(lines) => lines.memory_bytes(),
            Self::Csv(csv) => csv.memory_bytes(),
            Self::Arrow(stream) => stream.memory_bytes(),
        }
    }

    fn push(&mut self, bytes: &[u8], rows: &mut RowCollector) -> Result<(), BodyError> {
        match self {
            Self::Json(document) => document.push(bytes, rows),
            Self::Ndjson(lines) => lines.push(bytes, rows),
            Self::Csv(csv) => csv.push(bytes, rows),
            Self::Arrow(stream) => stream.push(bytes),
        }
    }
}

/// Limits of zero are one, and batches stay small enough for offsets of 32 bits.
fn bound_limits(limits: &mut BodyLimits) {
    limits.row_bytes_max = limits.row_bytes_max.clamp(1, BATCH_BYTES_CEILING);
    limits.batch_bytes = limits.batch_bytes.clamp(1, BATCH_BYTES_CEILING);
    limits.batch_rows_max = limits.batch_rows_max.max(1);
}
