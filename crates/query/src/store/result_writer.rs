//! Writes the rows of one result into blocks, while the query runs.
//!
//! One block is encoded and written while the rows of the next come: what waits in memory is two blocks.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, Job};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::block::{batch_bytes, encode, sha256_hex};
use super::folder::ResultFiles;
use super::manifest::BlockFacts;
use super::result::{ResultEnd, StoredResult, run_blocking};
use super::result_store::{NewResult, ResultStore, unwritable_error};
use crate::body::PortableSchema;

/// Bytes of rows in the first block; each further one has twice as many as the one before it.
const FIRST_BLOCK_BYTES: usize = 64 * 1024;
/// How long a row waits for the rest of its block.
const BLOCK_DELAY_MAX: Duration = Duration::from_millis(100);

type RecordBatches = BoxStream<'static, Result<RecordBatch, Error>>;

/// What is known of a result when its writer is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteOutcome {
    /// Its rows.
    pub rows: u64,
    /// The bytes of its blocks.
    pub bytes: u64,
    /// How it ended.
    pub end: ResultEnd,
}

/// Writes one result. Dropped before its end it leaves a result that says that it is not whole.
pub struct ResultWriter {
    store: Arc<ResultStore>,
    result: Arc<StoredResult>,
    portable: PortableSchema,
    /// Whoever has them has a thread for such work.
    files: Arc<Mutex<ResultFiles>>,
    bytes_max: Option<u64>,
    rows_max: Option<u64>,
    /// Rows that wait for their block.
    waiting: Vec<RecordBatch>,
    waiting_bytes: usize,
    /// When the first of them must leave.
    block_due: Option<Instant>,
    block_bytes: usize,
    /// Rows that were taken in.
    rows: u64,
    /// The block that is being written.
    writing: Option<JoinHandle<io::Result<()>>>,
    has_ended: bool,
}

impl ResultWriter {
    pub(super) fn new(
        store: Arc<ResultStore>,
        result: Arc<StoredResult>,
        portable: PortableSchema,
        new_result: NewResult<'_>,
    ) -> Self {
        let files = Arc::new(Mutex::new(ResultFiles::new(result.folder.clone())));
        Self {
            store,
            result,
            portable,
            files,
            bytes_max: new_result.bytes_max,
            rows_max: new_result.rows_max,
            waiting: Vec::new(),
            waiting_bytes: 0,
            block_due: None,
            block_bytes: FIRST_BLOCK_BYTES,
            rows: 0,
            writing: None,
            has_ended: false,
        }
    }

    /// Makes the files.
    ///
    /// # Errors
    /// `Unavailable` when there is no room, or they cannot be made.
    pub(super) async fn begin(mut self) -> Result<Self, Error> {
        match self.make_files().await {
            Ok(()) => Ok(self),
            Err(error) => {
                self.finish(ResultEnd::Incomplete(error.message().to_owned())).await;
                Err(error)
            }
        }
    }

    async fn make_files(&mut self) -> Result<(), Error> {
        self.store.make_room(&self.result, 0).await?;
        let (files, head) = (self.files.clone(), self.result.header.clone());
        let made = run_blocking(move || files.lock().create(head)).await;
        made.map_err(|error| unwritable_error(&error))
    }

    /// The result that it writes.
    pub fn result(&self) -> &Arc<StoredResult> {
        &self.result
    }

    /// Writes `batches` to their end, or to the bounds of the result, and ends it. A failure of theirs, or of the disk,
    /// ends it too: what was written stands, and says that it is not whole. Rows beyond the first `numbered_rows` are counted
    /// as rows of `job`.
    ///
    /// # Errors
    /// The failure.
    pub async fn write_all(
        mut self,
        mut batches: RecordBatches,
        counted: u64,
        job: &Job,
    ) -> Result<WriteOutcome, Error> {
        let taken = self.consume(&mut batches, counted, job).await;
        // Stops the query before the last words are written.
        drop(batches);
        // What failed before its first row leaves nothing.
        let left = self.start_block(taken.is_ok()).await;
        let left = if left.is_ok() { self.finish_block().await } else { left };
        match taken.and_then(|end| left.map(|()| end)) {
            Ok(end) => Ok(self.finish(end).await),
            Err(error) => {
                self.finish(ResultEnd::Incomplete(error.message().to_owned())).await;
                Err(error)
            }
        }
    }

    async fn consume(&mut self, batches: &mut RecordBatches, counted: u64, job: &Job) -> Result<ResultEnd, Error> {
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
            let taken = self.push(&batch).await?;
            job.count_rows(self.rows.max(counted) - before);
            if let ControlFlow::Break(end) = taken {
                return Ok(end);
            }
            // Where rows come without a pause nothing else looks at the clock.
            if self.block_due.is_some_and(|due| due <= Instant::now()) {
                self.start_block(false).await?;
            }
        }
    }

    /// Takes in the rows of `batch`; breaks when the result is at its bound.
    async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<ResultEnd>, Error> {
        let room = self.rows_max.map_or(u64::MAX, |max| max - self.rows);
        let expected = batch.num_rows().min(usize::try_from(room).unwrap_or(usize::MAX));
        let batch = self.portable.convert(&batch.slice(0, expected));
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

    /// Lets the rows that wait become a block, after the one that is being written.
    async fn start_block(&mut self, at_end: bool) -> Result<(), Error> {
        self.finish_block().await?;
        let (index, first_row) = {
            let stage = self.result.progress.borrow();
            (stage.blocks.len(), stage.rows())
        };
        // A result without rows has a block all the same: it tells the columns.
        if self.waiting.is_empty() && !(at_end && index == 0) {
            return Ok(());
        }
        // Before they are compressed they are hardly ever smaller.
        self.store.make_room(&self.result, self.waiting_bytes as u64).await?;
        let batches = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        self.block_due = None;
        self.block_bytes = (self.block_bytes * 2).min(self.store.limits().block_bytes.max(FIRST_BLOCK_BYTES));
        let (result, files, counts) = (self.result.clone(), self.files.clone(), self.store.counts.clone());
        self.writing = Some(tokio::task::spawn_blocking(move || {
            let written = (|| {
                let bytes = encode(result.schema(), &batches).map_err(io::Error::other)?;
                let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
                let facts = BlockFacts { first_row, rows, bytes: bytes.len() as u64, sha256: sha256_hex(&bytes) };
                // Readers see it before the next one is written, or the end.
                let mut files = files.lock();
                files.add_block(index, &bytes, &facts)?;
                result.publish_block(facts);
                counts.count_block();
                Ok(())
            })();
            result.reserve_bytes(0);
            written
        }));
        Ok(())
    }

    /// Waits until the block that is being written is there for readers. If it will never be, neither will what waits:
    /// rows after a gap are no part of the whole.
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

    async fn finish(mut self, end: ResultEnd) -> WriteOutcome {
        self.has_ended = true;
        let ending = self.finisher(end.clone());
        let end = run_blocking(move || Ok(ending())).await.unwrap_or(end);
        let stage = self.result.progress();
        WriteOutcome { rows: stage.rows(), bytes: stage.bytes(), end }
    }

    /// What writes down the end and tells readers of it, and says what became of it; it keeps others waiting. A result
    /// without a single block is none: it is taken away.
    fn finisher(&self, end: ResultEnd) -> impl FnOnce() -> ResultEnd + Send + 'static {
        let (store, result, files) = (self.store.clone(), self.result.clone(), self.files.clone());
        move || {
            let text = files.lock().write_end(end.reason());
            // What has no end on the disk is not whole after a restart; it must not be before one.
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
            // Whoever hears of the end finds everything as it stays.
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
        let ending = self.finisher(ResultEnd::Incomplete("the query was ended before its last row".to_owned()));
        // Without a runtime the process ends, and the next one finds what was left.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(ending);
        }
    }
}
