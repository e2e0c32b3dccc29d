//! Files stored as results: the rows of such a result are the bytes of one file, one piece per row, in order.
//!
//! A file that is too large for an answer thereby has blocks, hashes, quotas and an owner like any other result.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, future, stream};
use tidegate_core::{CallerIdentity, Error};
use tidegate_runtime::Job;

use crate::manifest::FileDescription;
use crate::result::StoredResult;
use crate::result_store::{CacheKey, ResultStore};
use crate::result_writer::{NewResult, ResultWriter, StoredColumns};

/// The size of each piece except the last, in bytes.
pub const FILE_PIECE_BYTES: usize = 64 * 1024;

impl ResultStore {
    /// Begins a result for the bytes of `file`, written by `job`. If `state` identifies the current version of the
    /// file, [`ResultStore::find_file`] finds the result from now on.
    ///
    /// # Errors
    /// As [`ResultStore::begin`].
    pub async fn begin_file(
        self: &Arc<Self>,
        file: FileDescription,
        state: Option<&str>,
        job: &Job,
    ) -> Result<ResultWriter, Error> {
        let key = state.map(|state| file_cache_key(&file, state, job));
        let schema = Arc::new(Schema::new(vec![Field::new("bytes", DataType::Binary, false)]));
        let new_result = NewResult { file: Some(&file), ..NewResult::new(job, "") };
        let writer = self.begin(new_result, StoredColumns::unchanged(schema)).await?;
        if let Some(key) = key {
            self.cache_answer(key, writer.result().header().id);
        }
        Ok(writer)
    }

    /// The result with the bytes of `file` in the version `state`, if the caller of `job` has one that is complete or
    /// being written.
    pub fn find_file(&self, file: &FileDescription, state: &str, job: &Job) -> Option<Arc<StoredResult>> {
        let id = *self.answers.lock().get(&file_cache_key(file, state, job))?;
        let result = self.get(id, job.caller()).ok()?;
        (result.end().is_none() || result.is_complete()).then_some(result)
    }
}

fn file_cache_key(file: &FileDescription, state: &str, job: &Job) -> CacheKey {
    let owner = serde_json::to_string(&CallerIdentity::from_caller(job.caller())).unwrap_or_default();
    let description = serde_json::to_string(file).unwrap_or_default();
    let generation = job.principal().generation.to_string();
    CacheKey::from_parts(&["file", &owner, &generation, job.target().name(), &description, state])
}

impl StoredResult {
    /// The file that the result contains; `None` for rows of a query.
    pub fn file(&self) -> Option<&FileDescription> {
        self.header().file.as_ref()
    }

    /// The number of bytes of the file that are stored.
    pub fn stored_file_bytes(&self) -> u64 {
        let bytes = self.file().map_or(0, |file| file.bytes);
        self.progress().rows().saturating_mul(FILE_PIECE_BYTES as u64).min(bytes)
    }

    /// Streams the bytes of the file in pieces, and waits for pieces that are still being written. The stream ends
    /// where the result ends, complete or not.
    pub fn stream_file_bytes(self: &Arc<Self>) -> BoxStream<'static, Result<Bytes, Error>> {
        let pieces = self.rows_from(0).map(|batch| match batch.and_then(|batch| row_pieces(&batch)) {
            Ok(pieces) => stream::iter(pieces.into_iter().map(Ok)).boxed(),
            Err(error) => stream::once(future::ready(Err(error))).boxed(),
        });
        pieces.flatten().boxed()
    }
}

/// Converts `pieces` into rows. All pieces but the last have [`FILE_PIECE_BYTES`] bytes.
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
