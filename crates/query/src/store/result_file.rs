//! Files kept as results: the rows of such a result are the bytes of one file, one piece a row, in order.
//!
//! So a file that is too large for an answer has blocks, hashes, quotas and an owner as any other answer has.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, future, stream};
use serde::{Deserialize, Serialize};
use tidegate_core::{Error, Job};

use super::answer_cache::CacheKey;
use super::result::StoredResult;
use super::result_store::{NewResult, ResultStore};
use super::result_writer::ResultWriter;

/// Bytes of each row but the last.
pub const FILE_PIECE_BYTES: usize = 64 * 1024;

/// What is known of a file before its first byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDescription {
    /// What it is called, without folders.
    pub name: String,
    /// Its media type, if whoever offers it says one.
    pub media_type: Option<String>,
    /// How many bytes it has.
    pub bytes: u64,
}

impl ResultStore {
    /// A new result for the bytes of `file`, to be written by `job`. Where `state` names the file in the state in which
    /// it is, it is found again by [`ResultStore::find_file`] from now on.
    ///
    /// # Errors
    /// As [`ResultStore::begin`].
    pub async fn begin_file(
        self: &Arc<Self>,
        file: FileDescription,
        state: Option<&str>,
        job: &Job,
    ) -> Result<ResultWriter, Error> {
        let key = state.map(|state| CacheKey::for_file(&file, state, job));
        let schema = Arc::new(Schema::new(vec![Field::new("bytes", DataType::Binary, false)]));
        let new_result = NewResult { job, database: "", policies: 0, bytes_max: None, rows_max: None };
        let writer = self.begin_with_file(new_result, &schema, Some(file)).await?;
        if let Some(key) = key {
            self.cache_answer(key, writer.result().header().id);
        }
        Ok(writer)
    }

    /// The result with the bytes of `file` in that `state`, if the caller of `job` has one that is whole, or that is
    /// being written.
    pub fn find_file(&self, file: &FileDescription, state: &str, job: &Job) -> Option<Arc<StoredResult>> {
        let id = *self.answers.lock().get(&CacheKey::for_file(file, state, job))?;
        let result = self.get(id, job.caller()).ok()?;
        (result.end().is_none() || result.is_complete()).then_some(result)
    }
}

impl StoredResult {
    /// The file whose bytes it holds; none for rows.
    pub fn file(&self) -> Option<&FileDescription> {
        self.header().file.as_ref()
    }

    /// How many bytes of its file are there.
    pub fn stored_file_bytes(&self) -> u64 {
        let bytes = self.file().map_or(0, |file| file.bytes);
        self.progress().rows().saturating_mul(FILE_PIECE_BYTES as u64).min(bytes)
    }

    /// The bytes of its file, as they come, in pieces. What is still being written is waited for; the stream ends where
    /// the result does, however that ended.
    pub fn stream_file_bytes(self: &Arc<Self>) -> BoxStream<'static, Result<Bytes, Error>> {
        let pieces = self.rows_from(0).map(|batch| match batch.and_then(|batch| row_pieces(&batch)) {
            Ok(pieces) => stream::iter(pieces.into_iter().map(Ok)).boxed(),
            Err(error) => stream::once(future::ready(Err(error))).boxed(),
        });
        pieces.flatten().boxed()
    }
}

/// The rows of `pieces`, of which all but the last have [`FILE_PIECE_BYTES`].
pub fn pieces_to_rows(
    schema: SchemaRef,
    pieces: BoxStream<'static, Result<Bytes, Error>>,
) -> BoxStream<'static, Result<RecordBatch, Error>> {
    let row = move |piece: Bytes| {
        let column: ArrayRef = Arc::new(BinaryArray::from_iter_values([piece]));
        let row = RecordBatch::try_new(schema.clone(), vec![column]);
        row.map_err(|error| Error::internal(format!("a piece of a file is no row: {error}")))
    };
    pieces.map(move |piece| piece.and_then(&row)).boxed()
}

fn row_pieces(batch: &RecordBatch) -> Result<Vec<Bytes>, Error> {
    let column = batch.columns().first().and_then(|column| column.as_binary_opt::<i32>());
    let column = column.ok_or_else(|| Error::internal("the block of a stored file holds no bytes"))?;
    Ok(column.iter().flatten().map(Bytes::copy_from_slice).collect())
}
