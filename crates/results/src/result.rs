//! One stored result, which any number of readers can read while it is being written.
//!
//! For clients that request one block after the other, the next block is read ahead. A block is read whole and its hash
//! is verified before its first byte is sent. Without reading ahead, such a client waits for both with each block,
//! while the server waits for the client in between.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::JoinHandle;

use crate::block::{ResultBlock, sha256_hex};
use crate::folder::{self, RecoveredResult, ResultFiles};
use crate::links::{LinkHolders, now_ms};
use crate::manifest::{BlockMetadata, ResultHeader};

/// How a result ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultEnd {
    /// The result has all rows.
    Complete,
    /// The result ended before its last row, for this reason.
    Incomplete(String),
    /// The result was removed, for this reason.
    Removed(String),
}

impl ResultEnd {
    /// The reason for an incomplete or removed result.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::Incomplete(reason) | Self::Removed(reason) => Some(reason.clone()),
        }
    }
}

/// The blocks and the state of a result.
#[derive(Debug, Clone, Default)]
pub struct ResultProgress {
    /// The blocks so far.
    pub blocks: Vec<BlockMetadata>,
    /// `None` while the result is being written.
    pub end: Option<ResultEnd>,
}

impl ResultProgress {
    /// The number of rows so far.
    pub fn rows(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.first_row + block.rows)
    }

    /// The number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).sum()
    }

    /// A tag for all bytes of the result: equal blocks have equal tags.
    pub fn entity_tag(&self) -> String {
        sha256_hex(self.blocks.iter().map(|block| block.sha256.as_str()).collect::<String>().as_bytes())
    }

    /// `running`, `complete` or `incomplete`.
    pub fn status(&self) -> &'static str {
        match self.end {
            None => "running",
            Some(ResultEnd::Complete) => "complete",
            Some(ResultEnd::Incomplete(_) | ResultEnd::Removed(_)) => "incomplete",
        }
    }
}

/// One stored result.
#[derive(Debug)]
pub struct StoredResult {
    pub(crate) header: ResultHeader,
    pub(crate) folder: PathBuf,
    schema: SchemaRef,
    pub(crate) link_holders: Mutex<LinkHolders>,
    pub(crate) progress: watch::Sender<ResultProgress>,
    stored_bytes: AtomicU64,
    /// The space reserved for the block that is being written.
    reserved_bytes: AtomicU64,
    is_damaged: AtomicBool,
    read_ahead: ReadAhead,
}

impl StoredResult {
    /// The time since the result was begun.
    pub fn age(&self) -> Duration {
        Duration::from_millis(now_ms().saturating_sub(self.header.created_at_ms))
    }

    /// The requested number of rows, if the result has reached it and more may exist.
    pub fn reached_row_limit(&self) -> Option<u64> {
        self.header.rows_max.filter(|max| self.progress().rows() >= *max)
    }

    /// The requested number of rows, unless the result has ended with fewer.
    pub fn row_limit(&self) -> Option<u64> {
        let progress = self.progress();
        self.header.rows_max.filter(|max| progress.end.is_none() || progress.rows() >= *max)
    }

    pub(crate) fn new(header: ResultHeader, folder: PathBuf, schema: SchemaRef, stage: ResultProgress) -> Arc<Self> {
        let (stored_bytes, progress) = (AtomicU64::new(stage.bytes()), watch::Sender::new(stage));
        let (link_holders, reserved_bytes, is_damaged, read_ahead) = Default::default();
        Arc::new(Self {
            header,
            folder,
            schema,
            link_holders,
            progress,
            stored_bytes,
            reserved_bytes,
            is_damaged,
            read_ahead,
        })
    }

    /// The result of an earlier process in `folder`. If it was still being written, it is marked as incomplete. If its
    /// columns cannot be read, it is deleted.
    pub(crate) async fn recover(found: RecoveredResult, folder: PathBuf) -> Option<Arc<Self>> {
        let path = folder.clone();
        let read = run_blocking(move || {
            let end = match &found.end {
                _ if found.is_truncated => ResultEnd::Incomplete("the rest is missing on the server's disk".to_owned()),
                Some(None) => ResultEnd::Complete,
                Some(Some(reason)) => ResultEnd::Incomplete(reason.clone()),
                None => ResultEnd::Incomplete("the server was stopped while it was being written".to_owned()),
            };
            if found.end.is_none() {
                ResultFiles::reopen(path.clone(), &found)?.write_end(end.reason())?;
            }
            let first = folder::read_block(&path, 0, &found.blocks[0])?;
            let is_right = sha256_hex(&first) == found.blocks[0].sha256;
            Ok((found, end, is_right.then(|| ResultBlock(first.into()))))
        });
        let read = read.await.ok().and_then(|(found, end, first)| Some((found, end, first?.schema().ok()?)));
        let Some((RecoveredResult { head, blocks, .. }, end, schema)) = read else {
            let _ = run_blocking(move || folder::delete_result(&folder)).await;
            return None;
        };
        Some(Self::new(head, folder, schema, ResultProgress { blocks, end: Some(end) }))
    }

    /// The metadata that was known before the first row.
    pub fn header(&self) -> &ResultHeader {
        &self.header
    }

    /// The columns of the blocks.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The current blocks and state.
    pub fn progress(&self) -> ResultProgress {
        self.progress.borrow().clone()
    }

    /// How the result ended; `None` while it is being written.
    pub fn end(&self) -> Option<ResultEnd> {
        self.progress.borrow().end.clone()
    }

    /// Waits for the block `index` and returns its metadata; `None` when the result ended without it.
    pub async fn next_block(&self, index: usize) -> Option<BlockMetadata> {
        let mut stages = self.progress.subscribe();
        let stage = stages.wait_for(|stage| stage.blocks.len() > index || stage.end.is_some()).await;
        // The sender belongs to this result, which outlives the borrow.
        stage.ok().and_then(|stage| stage.blocks.get(index).cloned())
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.progress.borrow().end == Some(ResultEnd::Complete) && !self.is_damaged.load(Ordering::Relaxed)
    }

    /// The space in use: the blocks, plus the reservation for the next block.
    pub(crate) fn occupied_bytes(&self) -> u64 {
        self.stored_bytes.load(Ordering::Acquire).saturating_add(self.reserved_bytes.load(Ordering::Acquire))
    }

    pub(crate) fn reserve_bytes(&self, bytes: u64) {
        self.reserved_bytes.store(bytes, Ordering::Release);
    }

    pub(crate) fn publish_block(&self, metadata: BlockMetadata) {
        self.stored_bytes.fetch_add(metadata.bytes, Ordering::AcqRel);
        self.progress.send_modify(|stage| stage.blocks.push(metadata));
    }

    /// Reads the block `index` and verifies its hash.
    ///
    /// # Errors
    /// `NotFound` when the block does not exist, or not yet; `Internal` when its bytes differ from what was written.
    pub async fn block(&self, index: usize) -> Result<ResultBlock, Error> {
        let metadata = {
            let stage = self.progress.borrow();
            stage.blocks.get(index).cloned().ok_or_else(|| self.missing_block_error(index, &stage))?
        };
        let folder = self.folder.clone();
        let (bytes, is_right) = run_blocking(move || {
            let bytes = folder::read_block(&folder, index, &metadata)?;
            let is_right = sha256_hex(&bytes) == metadata.sha256;
            Ok((bytes, is_right))
        })
        .await
        .inspect_err(|_| self.is_damaged.store(true, Ordering::Relaxed))
        .map_err(|error| self.unreadable_block_error(index, &error))?;
        if !is_right {
            self.is_damaged.store(true, Ordering::Relaxed);
            let message =
                format!("block {index} of the stored result {} is damaged on the server's disk", self.header.id);
            return Err(Error::new(ErrorKind::Internal, message).with_hint("Repeat the query."));
        }
        Ok(ResultBlock(Bytes::from(bytes)))
    }

    /// Streams the rows from `row` on, and waits for rows that are still being written. The stream ends where the
    /// result ends, complete or not.
    pub fn rows_from(self: &Arc<Self>, row: u64) -> BoxStream<'static, Result<RecordBatch, Error>> {
        let index = self.progress.borrow().blocks.partition_point(|block| block.first_row + block.rows <= row);
        let blocks = stream::try_unfold((self.clone(), index), move |(result, index)| async move {
            let Some(metadata) = result.next_block(index).await else { return Ok::<_, Error>(None) };
            let batches = result.batches(index, row.saturating_sub(metadata.first_row)).await?;
            Ok(Some((stream::iter(batches.into_iter().map(Ok)), (result, index + 1))))
        });
        blocks.try_flatten().boxed()
    }

    /// The rows of the block `index` without its first `skipped` rows.
    async fn batches(&self, index: usize, skipped: u64) -> Result<Vec<RecordBatch>, Error> {
        let block = self.block(index).await?;
        let batches = run_blocking(move || Ok(block.batches())).await;
        let batches = batches.map_err(|error| Error::internal(error.to_string()))??;
        let mut skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let mut left = Vec::with_capacity(batches.len());
        for batch in batches {
            let here = skipped.min(batch.num_rows());
            skipped -= here;
            if here < batch.num_rows() {
                left.push(batch.slice(here, batch.num_rows() - here));
            }
        }
        Ok(left)
    }

    fn missing_block_error(&self, index: usize, stage: &ResultProgress) -> Error {
        let id = self.header.id;
        let blocks = stage.blocks.len();
        let message = match &stage.end {
            None => format!(
                "block {index} of the stored result {id} does not exist yet: {blocks} do, and it is still being written"
            ),
            Some(ResultEnd::Removed(reason)) => format!("the stored result {id} is gone: {reason}"),
            Some(_) => format!("the stored result {id} has no block {index}: it has {blocks}, counted from 0"),
        };
        Error::new(ErrorKind::NotFound, message)
    }

    fn unreadable_block_error(&self, index: usize, error: &std::io::Error) -> Error {
        if let Some(ResultEnd::Removed(reason)) = &self.progress.borrow().end {
            return Error::new(ErrorKind::NotFound, format!("the stored result {} is gone: {reason}", self.header.id));
        }
        let message =
            format!("block {index} of the stored result {} cannot be read from the server's disk", self.header.id);
        Error::new(ErrorKind::Unavailable, message)
            .with_hint("Repeat the query.")
            .with_detail(format!("{}: {error}", self.folder.display()))
    }
}

pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(std::io::Error::other(error)),
    }
}

/// The maximum number of blocks that are held ahead, over all results.
const BLOCKS_MAX: usize = 4;
/// A block that is not requested within this time is dropped.
const HOLD_TIME_MAX: Duration = Duration::from_secs(2);

static PERMITS: Semaphore = Semaphore::const_new(BLOCKS_MAX);

/// The position of the clients of one result, and at most one block beyond it.
#[derive(Debug, Default)]
struct ReadAhead(Mutex<Position>);

#[derive(Debug, Default)]
struct Position {
    last: Option<usize>,
    /// The highest block that was requested since block 0.
    highest: usize,
    block: Option<BlockAhead>,
    count: u64,
}

#[derive(Debug)]
struct BlockAhead {
    index: usize,
    /// Distinguishes it from other blocks ahead.
    number: u64,
    reading: JoinHandle<Result<ResultBlock, Error>>,
    _permit: SemaphorePermit<'static>,
}

impl ReadAhead {
    /// Notes that the block `index` is requested. Returns the block if it was read ahead, and whether the next one
    /// should be.
    fn advance(&self, index: usize) -> (Option<BlockAhead>, bool) {
        let mut position = self.0.lock();
        let is_next = position.last.is_some_and(|last| last + 1 == index);
        position.last = Some(index);
        position.highest = if index == 0 { 0 } else { position.highest.max(index) };
        let ahead = position.block.take_if(|block| block.index == index);
        // Other clients may have requested the following blocks already.
        (ahead, is_next && position.highest == index && position.block.is_none())
    }

    fn hold(
        &self,
        index: usize,
        reading: JoinHandle<Result<ResultBlock, Error>>,
        permit: SemaphorePermit<'static>,
    ) -> u64 {
        let mut position = self.0.lock();
        position.count += 1;
        let number = position.count;
        position.block = Some(BlockAhead { index, number, reading, _permit: permit });
        number
    }

    fn release(&self, number: u64) {
        self.0.lock().block.take_if(|block| block.number == number);
    }
}

impl StoredResult {
    /// As [`StoredResult::block`], for a client that requests one block after the other: while it receives this one,
    /// the next one is read.
    ///
    /// # Errors
    /// As [`StoredResult::block`].
    pub async fn block_of_sequence(self: &Arc<Self>, index: usize) -> Result<ResultBlock, Error> {
        let (ahead, is_sequence) = self.read_ahead.advance(index);
        let ready = match ahead {
            Some(ahead) => ahead.reading.await.ok().and_then(Result::ok),
            None => None,
        };
        let block = match ready {
            Some(block) => block,
            None => self.block(index).await?,
        };
        if is_sequence {
            self.read_block_ahead(index + 1);
        }
        Ok(block)
    }

    fn read_block_ahead(self: &Arc<Self>, index: usize) {
        if self.progress.borrow().blocks.len() <= index {
            return;
        }
        let Ok(permit) = PERMITS.try_acquire() else { return };
        let result = self.clone();
        let reading = tokio::spawn(async move { result.block(index).await });
        let number = self.read_ahead.hold(index, reading, permit);
        let result = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(HOLD_TIME_MAX).await;
            if let Some(result) = result.upgrade() {
                result.read_ahead.release(number);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_in_sequence_are_followed() {
        let read_ahead = ReadAhead::default();
        let followed: Vec<usize> =
            [0, 1, 2, 7, 8, 3, 4, 0, 1, 1, 2].into_iter().filter(|index| read_ahead.advance(*index).1).collect();
        // After 3 and 4, clients have requested the next blocks already; block 0 begins another download.
        assert_eq!(followed, [1, 2, 8, 1, 2]);
    }
}
