//! One block: an Arrow stream of its own, compressed, named by the hash of its bytes.
//!
//! [Arrow IPC Streaming Format](https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format)

use std::io::Cursor;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tidegate_core::Error;

use super::manifest::BlockFacts;

/// What ends a stream.
pub const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The bytes of a block whose hash was right.
#[derive(Debug, Clone)]
pub struct Block(pub(super) Bytes);

impl Block {
    /// Its bytes: a stream of Arrow.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// What stands before its rows: the message that tells the columns, the same in each block of a result.
    pub fn opening(&self) -> Bytes {
        self.0.slice(..self.opening_bytes())
    }

    /// The messages of its rows, without what stands before and after them: in a stream of several blocks they follow each
    /// other.
    pub fn messages(&self) -> Bytes {
        self.0.slice(self.opening_bytes()..self.0.len() - END.len())
    }

    /// How long the stream of all `blocks` is, of which this is one.
    pub fn stream_bytes(&self, blocks: &[BlockFacts]) -> u64 {
        let around = (self.opening_bytes() + END.len()) as u64;
        around + blocks.iter().map(|block| block.bytes.saturating_sub(around)).sum::<u64>()
    }

    /// A message is a mark of four bytes, the length of its head, and that head; the first one has nothing else.
    fn opening_bytes(&self) -> usize {
        let length = self.0.get(4..8).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).map_or(0, u32::from_le_bytes);
        (8 + length as usize).min(self.0.len().saturating_sub(END.len()))
    }

    /// Its rows.
    ///
    /// # Errors
    /// Internal ones, when it is no stream of Arrow though its hash is right.
    pub fn batches(&self) -> Result<Vec<RecordBatch>, Error> {
        let reader = StreamReader::try_new(Cursor::new(self.0.clone()), None);
        let batches = reader.and_then(|reader| reader.collect::<Result<Vec<_>, ArrowError>>());
        batches.map_err(|error| Error::internal(format!("a stored block cannot be read: {error}")))
    }

    /// Its columns.
    ///
    /// # Errors
    /// As [`Block::batches`].
    pub(super) fn schema(&self) -> Result<SchemaRef, Error> {
        let reader = StreamReader::try_new(Cursor::new(self.0.clone()), None);
        let reader = reader.map_err(|error| Error::internal(format!("a stored block cannot be read: {error}")))?;
        Ok(reader.schema())
    }
}

/// The bytes of a block of `batches`, all of the columns of `schema`.
pub(super) fn encoded(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>, ArrowError> {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), schema, options)?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.into_inner()
}

/// The name of `bytes`.
pub(super) fn hash_of(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that the rows of `batch` take in memory, and not what they share with others.
pub(super) fn bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    columns
        .map(|column| column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size()))
        .sum()
}
