//! Decodes a body while it arrives, on threads that may block unless the body is small. A body of Parquet is stored in a
//! temporary file first, because Parquet is read from its end.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use tidegate_core::{Error, ErrorKind, Violation};
use tidegate_ingest_formats::{
    BodyCoding, BodyDecoder, BodyError, BodyFormat, BodyOptions, DecodedRows, INFERENCE_BYTES, ParquetBody,
    infer_schema, parquet_schema,
};
use tidegate_query::NodeReservation;

use super::row_arguments::BodyPieces;

/// So many bytes of a body are decoded at once.
const DECODED_BYTES: usize = 256 << 10;
/// A body of at most so many bytes is decoded at once, without another thread.
const INLINE_BYTES: usize = 32 << 10;
/// So many bytes are read after the first row that refuses the body, to report further ones.
const FURTHER_REASONS_BYTES: usize = 16 << 20;

/// A body before its columns are known.
#[derive(Debug)]
pub(super) enum UndecodedBody {
    /// The beginning, and what follows.
    Stream(ArrivingBody),
    /// The whole body.
    File(File),
}

#[derive(Debug)]
pub(super) struct ArrivingBody {
    head: Vec<u8>,
    is_whole: bool,
    pieces: BodyPieces,
}

/// A body that returns its rows.
pub(super) struct BodyRows {
    /// `None` only while another thread has it, and after a fault there.
    decoder: Option<AnyDecoder>,
    stream: Option<ArrivingBody>,
    is_small: bool,
    /// How many bytes were read since the body was refused.
    read_after_refusal: usize,
    /// How many rows did not fit, once the body is refused because of them.
    refused_rows: u64,
}

enum AnyDecoder {
    Stream(Box<BodyDecoder>),
    File(Box<ParquetBody>),
}

impl UndecodedBody {
    /// Reads the beginning of a body that is decoded while it arrives.
    pub(super) async fn streamed(mut pieces: BodyPieces, head_bytes: usize) -> Result<Self, Error> {
        let mut head = Vec::new();
        let is_whole = fill(&mut head, &mut pieces, head_bytes).await?;
        Ok(Self::Stream(ArrivingBody { head, is_whole, pieces }))
    }

    /// The columns of a body for a table without columns.
    pub(super) async fn infer_columns(&mut self, options: &BodyOptions) -> Result<SchemaRef, Error> {
        let options = options.clone();
        match self {
            Self::Stream(source) => {
                let head = std::mem::take(&mut source.head);
                let (head, schema) = on_blocking_thread(move || {
                    let inferred = infer_schema(&head, &options).map_err(to_error)?;
                    Ok((head, inferred.schema))
                })
                .await?;
                source.head = head;
                Ok(schema)
            }
            Self::File(file) => {
                let file = from_start(file)?;
                on_blocking_thread(move || parquet_schema(file).map_err(to_error)).await
            }
        }
    }

    /// The rows, with these columns. They draw on `memory` while they are decoded.
    pub(super) async fn into_rows(
        self,
        schema: &SchemaRef,
        options: BodyOptions,
        memory: NodeReservation,
    ) -> Result<BodyRows, Error> {
        let memory = Box::new(memory);
        match self {
            Self::Stream(stream) => {
                // Only of text is the work in proportion to the bytes.
                let is_text = options.coding == BodyCoding::Identity && options.format != BodyFormat::Arrow;
                let is_small = is_text && stream.is_whole && stream.head.len() <= INLINE_BYTES;
                let decoder = BodyDecoder::new(schema, options).map_err(to_error)?.with_memory(memory);
                let decoder = Some(AnyDecoder::Stream(Box::new(decoder)));
                Ok(BodyRows { decoder, stream: Some(stream), is_small, read_after_refusal: 0, refused_rows: 0 })
            }
            Self::File(file) => {
                let (file, schema) = (from_start(&file)?, schema.clone());
                let open = move || ParquetBody::new(file, &schema, options).map_err(to_error);
                let body = on_blocking_thread(open).await?.with_memory(memory);
                let decoder = Some(AnyDecoder::File(Box::new(body)));
                Ok(BodyRows { decoder, stream: None, is_small: false, read_after_refusal: 0, refused_rows: 0 })
            }
        }
    }
}

impl BodyRows {
    /// The next rows; `None` when all rows were returned and the body was complete and valid.
    ///
    /// # Errors
    /// The body is refused. No row of it may be stored.
    pub(super) async fn next(&mut self) -> Result<Option<DecodedRows>, Error> {
        loop {
            if let Some(rows) = self.step(DecoderInput::None).await? {
                return Ok(Some(rows));
            }
            let Some(stream) = &mut self.stream else { return Ok(None) };
            let mut bytes = std::mem::take(&mut stream.head);
            if !stream.is_whole {
                stream.is_whole = fill(&mut bytes, &mut stream.pieces, DECODED_BYTES).await?;
            }
            let is_last = stream.is_whole;
            let is_enough = self.has_enough_reasons(bytes.len());
            let input = if is_last || is_enough { DecoderInput::Last(bytes) } else { DecoderInput::Bytes(bytes) };
            if is_last {
                self.stream = None;
            }
            if let Some(rows) = self.step(input).await? {
                return Ok(Some(rows));
            }
        }
    }

    /// Whether a row was rejected that refuses the body. Its rows need not be written any more.
    pub(super) fn is_refused(&self) -> bool {
        match &self.decoder {
            Some(AnyDecoder::Stream(decoder)) => decoder.is_refused(),
            Some(AnyDecoder::File(_)) | None => false,
        }
    }

    fn has_enough_reasons(&mut self, bytes: usize) -> bool {
        if self.is_refused() {
            self.read_after_refusal += bytes;
        }
        self.read_after_refusal > FURTHER_REASONS_BYTES
    }

    /// How many rows did not fit, of a body that was refused because of them.
    pub(super) fn refused_rows(&self) -> u64 {
        self.refused_rows
    }

    async fn step(&mut self, input: DecoderInput) -> Result<Option<DecodedRows>, Error> {
        let Some(mut decoder) = self.decoder.take() else {
            return Err(Error::internal("the decoder of a body was lost"));
        };
        let (decoder, rows) = match self.is_small {
            true => {
                let rows = decoder.step(input);
                (decoder, rows)
            }
            false => {
                on_blocking_thread(move || {
                    let rows = decoder.step(input);
                    Ok((decoder, rows))
                })
                .await?
            }
        };
        self.decoder = Some(decoder);
        if let Err(BodyError::Rejected { count, .. }) = &rows {
            self.refused_rows = *count;
        }
        rows.map_err(to_error)
    }
}

tidegate_core::impl_debug!(BodyRows { stream });

enum DecoderInput {
    None,
    Bytes(Vec<u8>),
    Last(Vec<u8>),
}

impl AnyDecoder {
    fn step(&mut self, input: DecoderInput) -> Result<Option<DecodedRows>, BodyError> {
        let decoder = match self {
            Self::File(body) => return body.next_rows(),
            Self::Stream(decoder) => decoder,
        };
        match input {
            DecoderInput::None => {}
            DecoderInput::Bytes(bytes) => decoder.push(&bytes),
            DecoderInput::Last(bytes) => {
                decoder.push(&bytes);
                decoder.finish();
            }
        }
        decoder.next_rows()
    }
}

/// Reads up to about `bytes_max` bytes. Returns whether the body is complete.
async fn fill(bytes: &mut Vec<u8>, pieces: &mut BodyPieces, bytes_max: usize) -> Result<bool, Error> {
    while bytes.len() < bytes_max {
        let Some(piece) = pieces.next().await? else { return Ok(true) };
        append(bytes, &piece);
    }
    Ok(false)
}

fn append(bytes: &mut Vec<u8>, piece: &Bytes) {
    bytes.extend_from_slice(piece);
}

/// How much of a body is read before its columns are known.
pub(super) fn head_bytes(has_columns: bool, format: BodyFormat) -> usize {
    // Arrow names its columns first.
    if has_columns || format == BodyFormat::Arrow { DECODED_BYTES } else { INFERENCE_BYTES }
}

fn from_start(file: &File) -> Result<File, Error> {
    let opened = file.try_clone().and_then(|mut file| file.seek(SeekFrom::Start(0)).map(|_| file));
    opened.map_err(|error| Error::internal(format!("a spooled body cannot be read: {error}")))
}

/// The error of a body that is refused.
fn to_error(error: BodyError) -> Error {
    match error {
        BodyError::Rejected { rows, count } => {
            let subject = if count == 1 { "1 row does not fit".to_owned() } else { format!("{count} rows do not fit") };
            let violations = rows.into_iter().map(|row| {
                let path = match &row.column {
                    Some(column) => format!("{}, column {column:?}", row.position),
                    None => row.position.to_string(),
                };
                Violation { path, message: row.reason }
            });
            Error::invalid_arguments(format!("{subject}; nothing was stored:"), violations.collect())
                .with_hint("Correct the rows, or keep the others with on_reject=row.")
        }
        BodyError::TooLarge(reason) => Error::new(ErrorKind::TooLarge, format!("{reason}; nothing was stored")),
        BodyError::Memory(refusal) => refusal.into(),
        BodyError::Spool(reason) => {
            Error::new(ErrorKind::Unavailable, "the body cannot be read again; nothing was stored").with_detail(reason)
        }
        BodyError::Options(reason)
        | BodyError::Malformed(reason)
        | BodyError::Incomplete(reason)
        | BodyError::Columns(reason) => {
            Error::new(ErrorKind::InvalidArguments, format!("{reason}; nothing was stored"))
        }
    }
}

/// How many bytes are written at once.
const WRITE_BYTES: usize = 1 << 20;
/// When a sender may try again after there was no room for its body.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// Reads the whole body into a file without a name, which disappears when it is closed.
///
/// # Errors
/// Those of the body, and `Unavailable` if the file cannot be written.
pub(super) async fn spool(folder: &Path, pieces: &mut BodyPieces) -> Result<File, Error> {
    let folder = folder.to_owned();
    let mut file = on_blocking_thread(move || tempfile::tempfile_in(folder).map_err(|error| no_room(&error))).await?;
    let mut pending: Vec<Bytes> = Vec::new();
    let mut pending_bytes = 0;
    loop {
        let piece = pieces.next().await?;
        let is_end = piece.is_none();
        pending_bytes += piece.as_ref().map_or(0, Bytes::len);
        pending.extend(piece);
        if pending_bytes >= WRITE_BYTES || is_end {
            let written = std::mem::take(&mut pending);
            pending_bytes = 0;
            file = on_blocking_thread(move || {
                written.iter().try_for_each(|piece| file.write_all(piece)).map_err(|error| no_room(&error))?;
                Ok(file)
            })
            .await?;
        }
        if is_end {
            return Ok(file);
        }
    }
}

/// Runs `work` on a thread that may block.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal(format!("reading a body of rows failed: {error}"))))
}

fn no_room(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the body cannot be stored in a temporary file; nothing was stored")
        .with_detail(format!("spooling a body of rows: {error}"))
        .with_retry_after(RETRY_AFTER)
}
