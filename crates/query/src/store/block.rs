//! One block: an Arrow stream of its own, compressed, named by the hash of its bytes.
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

use super::manifest::BlockFacts;

/// What ends a stream.
pub const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The bytes of a block whose hash was right.
#[derive(Debug, Clone)]
pub struct ResultBlock(pub(super) Bytes);

impl ResultBlock {
    /// Its bytes: a stream of Arrow.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// What stands before its rows: the message that tells the columns, the same in each block of a result.
    pub fn schema_message(&self) -> Bytes {
        self.0.slice(..self.schema_message_bytes())
    }

    /// The messages of its rows, without what stands before and after them: in a stream of several blocks they follow
    /// each other.
    pub fn batch_messages(&self) -> Bytes {
        let opening_bytes = self.schema_message_bytes();
        self.0.slice(opening_bytes..self.0.len().saturating_sub(END.len()).max(opening_bytes))
    }

    /// How long the stream of all `blocks` is, of which this is one.
    pub fn stream_bytes(&self, blocks: &[BlockFacts]) -> u64 {
        let around = (self.schema_message_bytes() + END.len()) as u64;
        around + blocks.iter().map(|block| block.bytes.saturating_sub(around)).sum::<u64>()
    }

    /// A message is a mark of four bytes, the length of its head, and that head; the first one has nothing else.
    fn schema_message_bytes(&self) -> usize {
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
    /// As [`ResultBlock::batches`].
    pub(super) fn schema(&self) -> Result<SchemaRef, Error> {
        let reader = StreamReader::try_new(Cursor::new(self.0.clone()), None);
        let reader = reader.map_err(|error| Error::internal(format!("a stored block cannot be read: {error}")))?;
        Ok(reader.schema())
    }
}

/// The bytes of a block of `batches`, all of the columns of `schema`.
pub(super) fn encode(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>, ArrowError> {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), schema, options)?;
    let batches = batches.iter().map(compact_dictionaries).collect::<Result<Vec<_>, _>>()?;
    match concat_batches(schema, &batches) {
        // Many small ones take more room than their rows.
        Ok(all) => writer.write(&all)?,
        // Dictionaries may be too many values together.
        Err(_) => batches.iter().try_for_each(|batch| writer.write(batch))?,
    }
    writer.into_inner()
}

/// The rows of `batch` without values of dictionaries that they do not use: a part of a batch would bring those of the
/// whole along.
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
        // Values that cannot be gathered anew stay together.
        compacted.unwrap_or_else(|| column.clone())
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns.collect(), &options)
}

/// The name of `bytes`.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that the rows of `batch` take in memory, and not what they share with others.
pub(super) fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(column_bytes).sum()
}

fn column_bytes(column: &ArrayRef) -> usize {
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        let (used, all) = (column.len(), dictionary.values().len());
        // No more values than rows are stored: see `compact_dictionaries`.
        let values = column_bytes(dictionary.values());
        let values = if used < all { values / all * used } else { values };
        return values + buffer_bytes(dictionary.keys());
    }
    if let Some(list) = column.as_list_opt::<i32>() {
        let offsets = list.value_offsets();
        return item_bytes(list.values(), offsets[0] as usize, offsets[list.len()] as usize) + offsets.len() * 4;
    }
    if let Some(list) = column.as_list_opt::<i64>() {
        let offsets = list.value_offsets();
        return item_bytes(list.values(), offsets[0] as usize, offsets[list.len()] as usize) + offsets.len() * 8;
    }
    if let Some(members) = column.as_struct_opt() {
        return members.columns().iter().map(column_bytes).sum::<usize>() + column.len() / 8;
    }
    buffer_bytes(column.as_ref())
}

fn item_bytes(items: &ArrayRef, from: usize, to: usize) -> usize {
    column_bytes(&items.slice(from, to.saturating_sub(from)))
}

fn buffer_bytes(column: &dyn Array) -> usize {
    column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
}
