//! Bounds the number of queries that decode Parquet row groups at the same time.
//!
//! A row group is read as a whole, and its pages are decompressed while its rows are sent. This memory belongs to no
//! operator, so that the memory limits of queries do not count it. Here it is counted, and a query waits until others
//! have sent their row groups. A query whose reader pauses does not make others wait.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Bytes of row groups for each thread of a query.
const BYTES_PER_THREAD: usize = 64 << 20;
/// A column chunk is decompressed page by page, and a page has some megabytes at most.
const PAGE_BYTES_MAX: usize = 2 << 20;
/// Far above all real row groups, and far below an overflow of their sum.
const CLAIMED_BYTES_MAX: usize = 1 << 40;
/// A query whose reader pauses for so long does not count.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// Nor does a query that has begun no row group for so long. It may hold the texts of one in a join, or its reader may
/// be slow without long pauses.
const ROW_GROUP_TIME_MAX: Duration = Duration::from_secs(5);
/// No query waits longer, whatever the others do.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Pauses and times become known at the next check.
const CHECK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct DecodeBudget {
    bytes_max: usize,
    held: Mutex<HashMap<usize, QueryDecoding>>,
    released: Notify,
    /// Queries wait here, one after the other.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct QueryDecoding {
    bytes: usize,
    row_groups: usize,
    /// When it began its last row group.
    begun: Instant,
    reader: Arc<ReaderPause>,
}

/// Whether the reader of a query pauses. Its address identifies the query.
#[derive(Debug, Default)]
pub(crate) struct ReaderPause(Mutex<Option<Instant>>);

impl ReaderPause {
    pub(crate) fn begin(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }

    fn is_long(&self) -> bool {
        self.0.lock().is_some_and(|since| since.elapsed() >= PAUSE_MIN)
    }
}

/// The memory of a row group. It is returned when this is dropped.
#[derive(Debug)]
pub(crate) struct DecodePermit {
    budget: Arc<DecodeBudget>,
    query: usize,
    bytes: usize,
}

impl DecodeBudget {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            bytes_max: threads.max(1) * BYTES_PER_THREAD,
            held: Mutex::default(),
            released: Notify::new(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Bytes that decoding holds.
    pub(crate) fn used_bytes(&self) -> usize {
        self.held.lock().values().map(|held| held.bytes).sum()
    }

    /// Waits until column chunks of the lengths `chunks` may be decoded for the query of `reader`. A query that decodes
    /// already does not wait: it may need both row groups to continue.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        chunks: impl Iterator<Item = usize>,
        reader: &Arc<ReaderPause>,
    ) -> DecodePermit {
        let bytes = chunks
            .map(|chunk| chunk.min(CLAIMED_BYTES_MAX))
            .map(|chunk| chunk + (2 * chunk).min(PAGE_BYTES_MAX))
            .sum::<usize>();
        // A damaged footer may claim any length.
        let bytes = bytes.min(CLAIMED_BYTES_MAX);
        let query = Arc::as_ptr(reader).addr();
        let started = Instant::now();
        let mut turn = pin!(self.turn.lock());
        let mut has_turn = None;
        loop {
            let released = self.released.notified();
            let is_allowed = |held: &HashMap<usize, QueryDecoding>| {
                held.contains_key(&query)
                    || has_turn.is_some() && (fits(held, bytes, self.bytes_max) || started.elapsed() >= WAIT_MAX)
            };
            if self.try_acquire(query, bytes, reader, is_allowed) {
                return DecodePermit { budget: self.clone(), query, bytes };
            }
            // Another partition of the query may begin to decode meanwhile.
            tokio::select! {
                guard = &mut turn, if has_turn.is_none() => has_turn = Some(guard),
                () = released, if has_turn.is_some() => {}
                () = tokio::time::sleep(CHECK_EVERY) => {}
            }
        }
    }

    fn try_acquire(
        &self,
        query: usize,
        bytes: usize,
        reader: &Arc<ReaderPause>,
        is_allowed: impl FnOnce(&HashMap<usize, QueryDecoding>) -> bool,
    ) -> bool {
        let mut held = self.held.lock();
        if !is_allowed(&held) {
            return false;
        }
        let begun = Instant::now();
        let new = || QueryDecoding { bytes: 0, row_groups: 0, begun, reader: reader.clone() };
        let own = held.entry(query).or_insert_with(new);
        own.bytes += bytes;
        own.row_groups += 1;
        own.begun = begun;
        true
    }
}

fn fits(held: &HashMap<usize, QueryDecoding>, bytes: usize, bytes_max: usize) -> bool {
    let is_active = |held: &&QueryDecoding| !held.reader.is_long() && held.begun.elapsed() < ROW_GROUP_TIME_MAX;
    let active: usize = held.values().filter(is_active).map(|held| held.bytes).sum();
    // A row group that is larger than all of the budget is decoded alone.
    active == 0 || active + bytes <= bytes_max
}

impl Drop for DecodePermit {
    fn drop(&mut self) {
        let mut held = self.budget.held.lock();
        if let Some(own) = held.get_mut(&self.query) {
            own.bytes -= self.bytes;
            own.row_groups -= 1;
            if own.row_groups == 0 {
                held.remove(&self.query);
            }
        }
        drop(held);
        self.budget.released.notify_one();
    }
}

/// `bytes` that hold `permit` until the last slice of them is dropped.
pub(crate) fn with_permit(bytes: Bytes, permit: Arc<DecodePermit>) -> Bytes {
    Bytes::from_owner(PermittedBytes { bytes, _permit: permit })
}

struct PermittedBytes {
    bytes: Bytes,
    _permit: Arc<DecodePermit>,
}

impl AsRef<[u8]> for PermittedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes_max: usize) -> Arc<DecodeBudget> {
        Arc::new(DecodeBudget { bytes_max, ..DecodeBudget::new(1) })
    }

    #[tokio::test]
    async fn queries_take_turns() {
        let (budget, first, second) = (budget(400), Arc::default(), Arc::default());
        let held = Arc::new(budget.acquire([100].into_iter(), &first).await);
        assert_eq!(budget.used_bytes(), 300);
        let more = budget.acquire([100].into_iter(), &first).await;
        assert_eq!(budget.used_bytes(), 600, "a query that decodes already does not wait");
        let mut waiting = Box::pin(budget.acquire([100].into_iter(), &second));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(more);
        let bytes = with_permit(Bytes::from_static(b"abc"), held);
        let slice = bytes.slice(1..2);
        drop(bytes);
        assert!(futures::poll!(&mut waiting).is_pending(), "a slice is held");
        drop(slice);
        let second = waiting.await;
        assert_eq!(budget.used_bytes(), 300);
        drop(second);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[tokio::test]
    async fn partitions_of_a_query_do_not_wait_for_each_other() {
        let (budget, first, second) = (budget(400), Arc::default(), Arc::default());
        let held = budget.acquire([100].into_iter(), &first).await;
        let mut left = Box::pin(budget.acquire([100].into_iter(), &second));
        let mut right = Box::pin(budget.acquire([100].into_iter(), &second));
        assert!(futures::poll!(&mut left).is_pending() && futures::poll!(&mut right).is_pending());
        drop(held);
        let (_left, _right) = tokio::join!(left, right);
        assert_eq!(budget.used_bytes(), 600, "the second one does not fit");
    }

    #[tokio::test]
    async fn paused_reader_blocks_nobody() {
        let (budget, first, second) = (budget(400), Arc::<ReaderPause>::default(), Arc::default());
        let _held = budget.acquire([200].into_iter(), &first).await;
        first.begin();
        let started = Instant::now();
        let _second = budget.acquire([200].into_iter(), &second).await;
        assert!(started.elapsed() >= PAUSE_MIN);
    }
}
