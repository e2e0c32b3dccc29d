//! Writes the rows of one result into blocks while the query runs.
//!
//! One block is encoded and written while the rows of the next are collected, so that at most two blocks are in memory.
//!
//! A file that is too large for an answer is stored as a result, too: its rows are the bytes of the file, one piece per
//! row, in order. So it has blocks, hashes, quotas and an owner like any other result.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, OffsetSizeTrait, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, future};
use parking_lot::Mutex;
use tidegate_core::{CallerIdentity, Error, ErrorKind};
use tidegate_runtime::Job;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::block::{encode, sha256_hex};
use crate::folder::ResultFiles;
use crate::links::{now_ms, to_ms};
use crate::manifest::{BlockMetadata, FileDescription, RequiredAccess, ResultHeader, ResultId};
use crate::result::{ResultEnd, ResultProgress, StoredResult, run_blocking};
use crate::result_store::{CacheKey, ResultStore, unwritable_error};

/// Bytes of rows in the first block; each further block has twice as many as the previous one.
const FIRST_BLOCK_BYTES: usize = 64 * 1024;
/// The maximum time that a row waits for the rest of its block.
const BLOCK_DELAY_MAX: Duration = Duration::from_millis(100);

type RecordBatchStream = BoxStream<'static, Result<RecordBatch, Error>>;

/// The properties of a new result.
#[derive(Debug, Clone, Copy)]
pub struct NewResult<'a> {
    /// The job that writes it.
    pub job: &'a Job,
    /// The database that is queried.
    pub database: &'a str,
    /// The fingerprint of the row policies that apply to the caller.
    pub policies: u64,
    /// Maximum bytes of blocks; `None` means up to the quota of the owner.
    pub bytes_max: Option<u64>,
    /// Maximum number of rows.
    pub rows_max: Option<u64>,
    /// The file whose bytes are stored; `None` for rows of a query.
    pub file: Option<&'a FileDescription>,
    /// Whether the caller requested a table, with as many rows as it has.
    pub is_table: bool,
    /// A name of the table that the caller chose.
    pub alias: Option<&'a str>,
    /// What the caller must have access to in order to read the result, if the query reads stored results.
    pub required_access: &'a [RequiredAccess],
}

impl<'a> NewResult<'a> {
    /// A result of `job` with rows of `database`, without limits of its own.
    pub fn new(job: &'a Job, database: &'a str) -> Self {
        let (policies, bytes_max, rows_max, file) = (0, None, None, None);
        Self { job, database, policies, bytes_max, rows_max, file, is_table: false, alias: None, required_access: &[] }
    }
}

/// Converts rows of a query into rows of the stored columns.
pub type RowConverter = Box<dyn Fn(&RecordBatch) -> Result<RecordBatch, ArrowError> + Send + Sync>;

/// The columns of a new result, and how rows of the query become rows of these columns.
pub struct StoredColumns {
    /// The stored columns.
    pub schema: SchemaRef,
    /// Converts rows of the query.
    pub convert: RowConverter,
}

impl StoredColumns {
    /// Stores rows as they are.
    pub fn unchanged(schema: SchemaRef) -> Self {
        Self { schema, convert: Box::new(|batch| Ok(batch.clone())) }
    }
}

/// Writes one result. If it is dropped early, the result is marked as incomplete.
pub struct ResultWriter {
    store: Arc<ResultStore>,
    result: Arc<StoredResult>,
    columns: StoredColumns,
    /// Locked only on threads for blocking work.
    files: Arc<Mutex<ResultFiles>>,
    bytes_max: Option<u64>,
    rows_max: Option<u64>,
    cache_key: Option<CacheKey>,
    /// Rows that are not yet in a block.
    waiting: Vec<RecordBatch>,
    waiting_bytes: usize,
    /// When the first of them must be written.
    block_due: Option<Instant>,
    block_bytes: usize,
    rows: u64,
    writing: Option<JoinHandle<io::Result<()>>>,
    has_ended: bool,
}

impl ResultStore {
    /// Begins a result with the columns of `schema`, written by the caller of `new_result`.
    ///
    /// # Errors
    /// `RateLimited` when the limit of concurrent writers is reached; `Unavailable` when there is no space or the
    /// folder cannot be created.
    pub async fn begin(
        self: &Arc<Self>,
        new_result: NewResult<'_>,
        columns: StoredColumns,
    ) -> Result<ResultWriter, Error> {
        let created_at_ms = now_ms();
        let head = ResultHeader {
            id: ResultId::new(),
            owner: CallerIdentity::from_caller(new_result.job.caller()),
            tool: new_result.job.target().name().to_owned(),
            database: new_result.database.to_owned(),
            policies: new_result.policies,
            job: new_result.job.id().0,
            created_at_ms,
            number: self.next_number(),
            expires_at_ms: created_at_ms.saturating_add(to_ms(self.limits().time_to_live)),
            rows_max: new_result.rows_max,
            missing_nodes: new_result.job.missing_nodes().map(Arc::unwrap_or_clone),
            file: new_result.file.cloned(),
            is_table: new_result.is_table,
            alias: new_result.alias.map(str::to_owned),
            required_access: new_result.required_access.to_vec(),
        };
        let folder = self.folder.result_path(head.id);
        let result = StoredResult::new(head, folder, columns.schema.clone(), ResultProgress::default());
        // The result counts from here on, so that concurrent calls cannot exceed the limit together. The writer always
        // releases its slot.
        self.admit(&result)?;
        let mut writer = ResultWriter {
            store: self.clone(),
            files: Arc::new(Mutex::new(ResultFiles::new(result.folder.clone()))),
            result,
            columns,
            bytes_max: new_result.bytes_max,
            rows_max: new_result.rows_max,
            cache_key: None,
            waiting: Vec::new(),
            waiting_bytes: 0,
            block_due: None,
            block_bytes: FIRST_BLOCK_BYTES,
            rows: 0,
            writing: None,
            has_ended: false,
        };
        match writer.make_files().await {
            Ok(()) => Ok(writer),
            Err(error) => {
                writer.finish(ResultEnd::Incomplete(error.message().to_owned())).await;
                Err(error)
            }
        }
    }
}

impl ResultWriter {
    async fn make_files(&mut self) -> Result<(), Error> {
        self.store.make_room(&self.result, 0).await?;
        let (files, head) = (self.files.clone(), self.result.header.clone());
        let created = run_blocking(move || files.lock().create(head)).await;
        created.map_err(|error| unwritable_error(&error))
    }

    /// Caches the result as the answer for `key` when it has all rows, before readers see its end.
    #[must_use]
    pub fn with_cache_key(mut self, key: Option<CacheKey>) -> Self {
        self.cache_key = key.filter(|_| self.result.header.missing_nodes.is_none());
        self
    }

    /// The result that is being written.
    pub fn result(&self) -> &Arc<StoredResult> {
        &self.result
    }

    /// Writes `batches` to their end or to the limits of the result. A failure of the stream or the disk marks the
    /// result as incomplete; blocks that were written stay. Rows beyond the first `counted` count as rows of `job`. Returns
    /// how the result ended.
    ///
    /// # Errors
    /// The failure of the stream or the disk.
    pub async fn write_all(
        mut self,
        mut batches: RecordBatchStream,
        counted: u64,
        job: &Job,
    ) -> Result<ResultEnd, Error> {
        let consumed = self.consume(&mut batches, counted, job).await;
        // Stops the query before the last block is written.
        drop(batches);
        // A query that failed before its first row leaves no result.
        let left = self.start_block(consumed.is_ok()).await;
        let left = if left.is_ok() { self.finish_block().await } else { left };
        match consumed.and_then(|end| left.map(|()| end)) {
            Ok(end) => Ok(self.finish(end).await),
            Err(error) => {
                self.finish(ResultEnd::Incomplete(error.message().to_owned())).await;
                Err(error)
            }
        }
    }

    async fn consume(&mut self, batches: &mut RecordBatchStream, counted: u64, job: &Job) -> Result<ResultEnd, Error> {
        loop {
            let due = self.block_due;
            let batch = tokio::select! {
                biased;
                () = job.cancelled() => return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled")),
                batch = batches.next() => batch,
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.start_block(false).await?;
                    continue;
                }
            };
            let Some(batch) = batch.transpose()? else { return Ok(ResultEnd::Complete) };
            let before = self.rows.max(counted);
            let flow = self.push(&batch).await?;
            job.usage().count_rows(self.rows.max(counted) - before);
            if let ControlFlow::Break(end) = flow {
                return Ok(end);
            }
            // Without a pause between batches the timer is never polled.
            if self.block_due.is_some_and(|due| due <= Instant::now()) {
                self.start_block(false).await?;
            }
        }
    }

    async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<ResultEnd>, Error> {
        let room = self.rows_max.map_or(u64::MAX, |max| max - self.rows);
        let expected = batch.num_rows().min(usize::try_from(room).unwrap_or(usize::MAX));
        let batch = (self.columns.convert)(&batch.slice(0, expected));
        let batch = batch.map_err(|error| Error::internal(format!("rows cannot be stored: {error}")))?;
        let row_bytes = batch_bytes(&batch).checked_div(expected).unwrap_or_default().max(1);
        let mut from = 0;
        while from < expected {
            let room = self.block_bytes.saturating_sub(self.waiting_bytes) / row_bytes;
            let rows = room.clamp(1, expected - from);
            self.waiting.push(batch.slice(from, rows));
            self.waiting_bytes += row_bytes * rows;
            self.rows += rows as u64;
            from += rows;
            self.block_due.get_or_insert_with(|| Instant::now() + BLOCK_DELAY_MAX);
            if self.waiting_bytes + row_bytes > self.block_bytes {
                self.start_block(false).await?;
                if let Some(end) = self.reached_byte_limit() {
                    return Ok(ControlFlow::Break(end));
                }
            }
        }
        let is_full = self.rows_max.is_some_and(|max| self.rows >= max);
        Ok(if is_full { ControlFlow::Break(ResultEnd::Complete) } else { ControlFlow::Continue(()) })
    }

    fn reached_byte_limit(&self) -> Option<ResultEnd> {
        let bytes = self.result.progress.borrow().bytes();
        let max = self.bytes_max.filter(|max| bytes >= *max)?;
        Some(ResultEnd::Incomplete(format!("it reached the limit of {max} bytes (results.store_limit)")))
    }

    /// Starts writing the waiting rows as a block, after the block that is being written.
    async fn start_block(&mut self, at_end: bool) -> Result<(), Error> {
        self.finish_block().await?;
        let (index, first_row) = {
            let stage = self.result.progress.borrow();
            (stage.blocks.len(), stage.rows())
        };
        // A result without rows also has a block, for its columns.
        if self.waiting.is_empty() && !(at_end && index == 0) {
            return Ok(());
        }
        // Uncompressed rows are hardly ever smaller than the block.
        self.store.make_room(&self.result, self.waiting_bytes as u64).await?;
        let batches = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        self.block_due = None;
        self.block_bytes = (self.block_bytes * 2).min(self.store.limits().block_bytes.max(FIRST_BLOCK_BYTES));
        let (result, files, counters) = (self.result.clone(), self.files.clone(), self.store.counters.clone());
        self.writing = Some(tokio::task::spawn_blocking(move || {
            let written = (|| {
                let bytes = encode(result.schema(), &batches).map_err(io::Error::other)?;
                let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
                let metadata = BlockMetadata { first_row, rows, bytes: bytes.len() as u64, sha256: sha256_hex(&bytes) };
                // The block becomes visible before the next block or the end.
                let mut files = files.lock();
                files.add_block(index, &bytes, &metadata)?;
                result.publish_block(metadata);
                counters.blocks_written.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })();
            result.reserve_bytes(0);
            written
        }));
        Ok(())
    }

    /// Waits until the block that is being written is visible. If it fails, the waiting rows are dropped, because a
    /// result must not have gaps.
    async fn finish_block(&mut self) -> Result<(), Error> {
        let Some(writing) = &mut self.writing else { return Ok(()) };
        let written = writing.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        self.writing = None;
        written.map_err(|error| {
            self.waiting.clear();
            self.waiting_bytes = 0;
            self.block_due = None;
            unwritable_error(&error)
        })
    }

    async fn finish(mut self, end: ResultEnd) -> ResultEnd {
        self.has_ended = true;
        let finish = self.finisher(end.clone());
        run_blocking(move || Ok(finish())).await.unwrap_or(end)
    }

    /// Returns a blocking function that writes the end and notifies readers. A result without a block is removed.
    fn finisher(&self, end: ResultEnd) -> impl FnOnce() -> ResultEnd + Send + 'static {
        let (store, result, files) = (self.store.clone(), self.result.clone(), self.files.clone());
        let (cache_key, rows_max) = (self.cache_key, self.rows_max);
        move || {
            let text = files.lock().write_end(end.reason());
            // A result without an end line counts as incomplete after a restart, so it must also be incomplete now.
            let end = match text {
                Ok(()) => end,
                Err(_) if end != ResultEnd::Complete => end,
                Err(_) => ResultEnd::Incomplete("the server could not write the end of the result".to_owned()),
            };
            result.reserve_bytes(0);
            let is_empty = result.progress.borrow().blocks.is_empty();
            if is_empty {
                store.discard(&result);
            }
            // At the limit it is unknown whether these are all rows.
            let has_all_rows = end == ResultEnd::Complete && rows_max.is_none_or(|max| result.progress().rows() < max);
            if let Some(key) = cache_key.filter(|_| has_all_rows && !is_empty) {
                store.cache_answer(key, result.header.id);
            }
            // Readers that see the end find the final state.
            drop(store);
            let result_end = match end.reason() {
                Some(reason) if is_empty => ResultEnd::Removed(reason),
                _ => end.clone(),
            };
            result.progress.send_modify(|stage| stage.end = Some(result_end));
            end
        }
    }
}

impl Drop for ResultWriter {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let finish = self.finisher(ResultEnd::Incomplete("the query was ended before its last row".to_owned()));
        // Without a runtime the process is ending, and the next one recovers the result.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(finish);
        }
    }
}

/// The number of bytes of the rows of `batch`.
pub fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| array_bytes(column)).sum()
}

/// The number of bytes of the values of `array`.
pub fn array_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => array.len() * 16 + array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.len() * 16 + array.as_binary_view().total_buffer_bytes_used(),
        DataType::List(_) => list_bytes(array.as_list::<i32>().value_offsets(), array.as_list::<i32>().values()),
        DataType::LargeList(_) => list_bytes(array.as_list::<i64>().value_offsets(), array.as_list::<i64>().values()),
        DataType::Struct(_) => array.as_struct().columns().iter().map(|column| array_bytes(column)).sum(),
        DataType::Map(..) => list_bytes(array.as_map().value_offsets(), array.as_map().entries()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let (rows, all) = (array.len(), dictionary.values().len());
            let values = array_bytes(dictionary.values());
            // At most as many values as rows are used.
            array_bytes(dictionary.keys()) + if rows < all { values / all * rows } else { values }
        }
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    }
}

fn list_bytes<O: OffsetSizeTrait>(offsets: &[O], elements: &dyn Array) -> usize {
    let (first, last) = match offsets {
        [first, .., last] => (first.as_usize(), last.as_usize()),
        _ => (0, 0),
    };
    size_of_val(offsets) + array_bytes(&elements.slice(first, last - first))
}

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
