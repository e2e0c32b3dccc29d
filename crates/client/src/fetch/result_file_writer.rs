//! Writes blocks to the output file, in order and batch by batch, or the stream of one answer as a file of Arrow.

use std::path::PathBuf;

use arrow::array::{AsArray, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use tidegate_core::{Error, Format};
use tidegate_query::RowEncoder;

use super::destination::UnfinishedFile;
use super::error::FetchError;
use crate::server::sanitize;

#[derive(Debug)]
pub(crate) struct VerifiedBlock {
    pub(crate) index: u64,
    pub(crate) rows: u64,
    pub(crate) path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputMode {
    Rows(Format),
    /// The file whose bytes the rows contain.
    File,
}

pub(crate) struct ResultFileWriter {
    file: UnfinishedFile,
    mode: OutputMode,
    /// The encoder, from the first block on, with the schema of that block.
    encoder: Option<(SchemaRef, BatchEncoder)>,
    pub(crate) rows: u64,
}

enum BatchEncoder {
    /// A stream of Arrow IPC, with the schema of all blocks.
    ArrowStream(Box<StreamWriter<Vec<u8>>>),
    Rendered(RowEncoder),
    /// The bytes of the file, unchanged.
    File,
}

impl ResultFileWriter {
    pub(crate) fn new(file: UnfinishedFile, mode: OutputMode) -> Self {
        Self { file, mode, encoder: None, rows: 0 }
    }

    pub(crate) fn append_block(&mut self, block: &VerifiedBlock) -> Result<(), FetchError> {
        let bytes = std::fs::read(&block.path).map_err(FetchError::disk_error(&block.path, "read"))?;
        // Memory is allocated for bytes that exist, not for lengths that the stream claims.
        let (mut rest, mut decoder) = (Buffer::from_vec(bytes), StreamDecoder::new());
        let unreadable = |error: ArrowError| damaged_block(block, sanitize(&error.to_string()));
        let mut rows = 0;
        while let Some(batch) = decoder.decode(&mut rest).map_err(unreadable)? {
            rows += batch.num_rows() as u64;
            let encoded = self.encoder_for(block, batch.schema_ref())?.write(&batch)?;
            self.file.write(&encoded)?;
        }
        decoder.finish().map_err(unreadable)?;
        let schema = decoder.schema().ok_or_else(|| damaged_block(block, "it has no schema".to_owned()))?;
        self.encoder_for(block, &schema)?;
        if rows != block.rows {
            return Err(damaged_block(block, format!("it has {rows} rows instead of {}", block.rows)));
        }
        self.rows += rows;
        Ok(())
    }

    fn encoder_for(&mut self, block: &VerifiedBlock, schema: &SchemaRef) -> Result<&mut BatchEncoder, FetchError> {
        let (first, encoder) = match self.encoder.take() {
            Some(encoder) => self.encoder.insert(encoder),
            None => {
                let encoder = BatchEncoder::new(self.mode, schema)?;
                self.encoder.insert((schema.clone(), encoder))
            }
        };
        if first.fields() != schema.fields() {
            return Err(damaged_block(block, "its columns differ from those of the first block".to_owned()));
        }
        Ok(encoder)
    }

    /// Renames the complete file; an error if it has not `length` bytes. `is_part` marks an incomplete result.
    pub(crate) fn finish(mut self, is_part: bool, length: Option<u64>) -> Result<u64, FetchError> {
        if let Some((_, encoder)) = self.encoder {
            self.file.write(&encoder.finish(is_part)?)?;
        }
        if let Some(expected) = length.filter(|expected| *expected != self.file.bytes()) {
            return Err(FetchError::LengthMismatch { expected, bytes: self.file.bytes() });
        }
        self.file.finish()
    }
}

impl BatchEncoder {
    fn new(mode: OutputMode, schema: &SchemaRef) -> Result<Self, FetchError> {
        Ok(match mode {
            OutputMode::File => Self::File,
            OutputMode::Rows(Format::Arrow) => {
                Self::ArrowStream(Box::new(StreamWriter::try_new(Vec::new(), schema).map_err(format_error)?))
            }
            OutputMode::Rows(format) => Self::Rendered(RowEncoder::new(format, schema).map_err(FetchError::Format)?),
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<bytes::Bytes, FetchError> {
        match self {
            Self::ArrowStream(writer) => {
                writer.write(batch).map_err(format_error)?;
                Ok(std::mem::take(writer.get_mut()).into())
            }
            Self::Rendered(writer) => writer.write(batch).map_err(FetchError::Format),
            Self::File => file_bytes(batch),
        }
    }

    fn finish(self, is_part: bool) -> Result<bytes::Bytes, FetchError> {
        match self {
            Self::ArrowStream(writer) => Ok(writer.into_inner().map_err(format_error)?.into()),
            Self::File => Ok(bytes::Bytes::new()),
            Self::Rendered(writer) => writer.finish(is_part).map_err(FetchError::Format),
        }
    }
}

fn file_bytes(batch: &RecordBatch) -> Result<bytes::Bytes, FetchError> {
    let column = batch.columns().first().and_then(|column| column.as_binary_opt::<i32>());
    let column = column
        .ok_or_else(|| FetchError::Format(Error::internal("the blocks of the file contain no column of bytes")))?;
    Ok(column.iter().flatten().flatten().copied().collect::<Vec<u8>>().into())
}

fn damaged_block(block: &VerifiedBlock, what: String) -> FetchError {
    FetchError::Damaged { block: block.index, what }
}

fn format_error(error: ArrowError) -> FetchError {
    FetchError::Format(Error::internal(error.to_string()))
}

/// Converts a stream batch by batch, so that no more than one is in memory.
#[derive(Debug, Default)]
pub struct ArrowFileConverter {
    decoder: StreamDecoder,
    /// From the schema on.
    encoder: Option<RowEncoder>,
}

impl ArrowFileConverter {
    /// The bytes of the file that the next `bytes` of the stream complete, possibly none.
    ///
    /// # Errors
    /// Only because of an internal error.
    pub fn write(&mut self, bytes: Bytes) -> Result<Vec<u8>, FetchError> {
        let (mut rest, mut written) = (Buffer::from(bytes), Vec::new());
        while let Some(batch) = self.decoder.decode(&mut rest).map_err(stream_error)? {
            written.extend_from_slice(&self.encoder()?.write(&batch).map_err(FetchError::Format)?);
        }
        Ok(written)
    }

    /// The end of the file.
    ///
    /// # Errors
    /// If the stream has no end.
    pub fn finish(mut self) -> Result<Bytes, FetchError> {
        self.decoder.finish().map_err(stream_error)?;
        self.encoder()?;
        let encoder = self.encoder.ok_or_else(missing_schema)?;
        encoder.finish(false).map_err(FetchError::Format)
    }

    fn encoder(&mut self) -> Result<&mut RowEncoder, FetchError> {
        let encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => {
                let schema = self.decoder.schema().ok_or_else(missing_schema)?;
                RowEncoder::new(Format::ArrowFile, &schema).map_err(FetchError::Format)?
            }
        };
        Ok(self.encoder.insert(encoder))
    }
}

fn missing_schema() -> FetchError {
    FetchError::Format(Error::internal("the answer has no schema"))
}

fn stream_error(error: ArrowError) -> FetchError {
    FetchError::Format(Error::internal(format!("the answer is no stream of Arrow: {error}")))
}
