//! One block of a stored result: a complete, compressed Arrow stream, identified by the hash of its bytes.
//!
//! [Arrow IPC Streaming Format](https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format)

use std::io::Cursor;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tidegate_core::Error;

use crate::manifest::BlockMetadata;

/// The end-of-stream marker of the Arrow IPC format.
pub const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The bytes of a block whose hash was verified.
#[derive(Debug, Clone)]
pub struct ResultBlock(pub(crate) Bytes);

impl ResultBlock {
    /// The bytes of the block: an Arrow IPC stream.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// The schema message of the stream. It is the same in each block of a result.
    pub fn schema_message(&self) -> Bytes {
        self.0.slice(..self.schema_message_bytes())
    }

    /// The record batch messages, without the schema message and the end marker. The messages of several blocks can be
    /// concatenated into one stream.
    pub fn batch_messages(&self) -> Bytes {
        let opening_bytes = self.schema_message_bytes();
        self.0.slice(opening_bytes..self.0.len().saturating_sub(END.len()).max(opening_bytes))
    }

    /// The length in bytes of the stream that combines all `blocks`, of which this is one.
    pub fn stream_bytes(&self, blocks: &[BlockMetadata]) -> u64 {
        let around = (self.schema_message_bytes() + END.len()) as u64;
        around + blocks.iter().map(|block| block.bytes.saturating_sub(around)).sum::<u64>()
    }

    /// A message consists of a marker of four bytes, the length of its header, and the header. The schema message has
    /// no body.
    fn schema_message_bytes(&self) -> usize {
        let length = self.0.get(4..8).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).map_or(0, u32::from_le_bytes);
        (8 + length as usize).min(self.0.len().saturating_sub(END.len()))
    }

    /// The rows of the block.
    ///
    /// # Errors
    /// `Internal` when the bytes are not an Arrow stream although their hash is right.
    pub fn batches(&self) -> Result<Vec<RecordBatch>, Error> {
        let reader = StreamReader::try_new(Cursor::new(self.0.clone()), None);
        let batches = reader.and_then(|reader| reader.collect::<Result<Vec<_>, ArrowError>>());
        batches.map_err(|error| Error::internal(format!("a stored block cannot be read: {error}")))
    }

    pub(crate) fn schema(&self) -> Result<SchemaRef, Error> {
        let reader = StreamReader::try_new(Cursor::new(self.0.clone()), None);
        let reader = reader.map_err(|error| Error::internal(format!("a stored block cannot be read: {error}")))?;
        Ok(reader.schema())
    }
}

/// Encodes `batches`, which all have the columns of `schema`, as one block.
pub(crate) fn encode(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>, ArrowError> {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), schema, options)?;
    let batches = batches.iter().map(compact_dictionaries).collect::<Result<Vec<_>, _>>()?;
    match concat_batches(schema, &batches) {
        // Many small batches take more space than one large batch.
        Ok(all) => writer.write(&all)?,
        // The combined dictionaries may exceed the range of the key type.
        Err(_) => batches.iter().try_for_each(|batch| writer.write(batch))?,
    }
    writer.into_inner()
}

/// Removes dictionary values that the rows of `batch` do not use. Otherwise a slice would carry the dictionary of the
/// whole batch.
fn compact_dictionaries(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let is_wide = |column: &ArrayRef| {
        let values = column.as_any_dictionary_opt().map(|dictionary| dictionary.values().len());
        values.is_some_and(|values| values > column.len())
    };
    if !batch.columns().iter().any(is_wide) {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().map(|column| {
        let compacted = column.as_any_dictionary_opt().filter(|_| is_wide(column)).and_then(|dictionary| {
            let values = cast(column, dictionary.values().data_type()).ok()?;
            cast(&values, column.data_type()).ok()
        });
        // Values that cannot be rebuilt are kept unchanged.
        compacted.unwrap_or_else(|| column.clone())
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns.collect(), &options)
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
