//! Bounds the memory of the Parquet row groups that all queries decode at the same time.
//!
//! A row group is read as a whole, and its pages are decompressed while its rows are sent. This memory belongs to no
//! operator, so that the memory limits of queries do not count it. Here it is counted, and a query waits before it
//! reads a row group:
//!
//! - A query waits only while other queries decode or wait.
//! - Row groups are admitted in the order of the requests, while they fit. A larger one is decoded alone.
//! - A query whose reader pauses makes no others wait: all queries together may hold twice the budget. If they do, the
//!   query whose reader has paused for the longest time is stopped.
//! - Queries can wait for each other: a join holds a row group of one input and needs one of the other, and a sort holds
//!   one and waits for memory. So if no row group was admitted or returned for some time, one more is admitted.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Bytes of row groups for each thread of a query.
const BYTES_PER_THREAD: usize = 48 << 20;
/// The part of the memory of all queries.
const MEMORY_SHARE: usize = 4;
/// A column chunk is decompressed page by page, and a page has some megabytes at most.
const PAGE_BYTES_MAX: usize = 2 << 20;
/// Far above all real row groups, and far below an overflow of their sum.
const CLAIMED_BYTES_MAX: usize = 1 << 40;
/// A query whose reader pauses for so long makes no others wait.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// A query whose reader pauses for so long is stopped if others need the memory.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(20);
/// Without a change for so long, queries may wait for each other.
const STUCK_AFTER: Duration = Duration::from_secs(1);
/// Whose turn it is waits so long for one other query that holds more than the budget.
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);
/// Pauses and times become known at the next check.
const CHECK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct DecodeBudget {
    bytes_max: usize,
    stuck_after: Duration,
    state: Mutex<State>,
    changed: Notify,
    /// Requests wait here, one after the other.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    /// The queries that hold or request row groups.
    queries: HashMap<usize, QueryDecoding>,
    /// When the last row group was admitted or returned.
    changed_at: Instant,
}

#[derive(Debug)]
struct QueryDecoding {
    reader: Arc<ReaderPause>,
    /// Of row groups with rows that are not decoded.
    decoding_bytes: usize,
    /// Of row groups to which only decoded rows refer. Operators that hold such rows count them.
    kept_bytes: usize,
    row_groups: usize,
    requests: usize,
}

/// What queries hold when one of them requests a row group.
#[derive(Debug, Default)]
struct HeldBytes {
    /// What queries decode whose readers read.
    active: usize,
    active_of_others: usize,
    /// What queries hold whose readers pause.
    paused: usize,
    paused_of_others: usize,
    /// The number of queries that hold row groups.
    holders: usize,
    /// Whether another query whose reader reads decodes or waits.
    has_active_others: bool,
}

/// Whether the reader of a query pauses. Its address identifies the query.
#[derive(Debug, Default)]
pub(crate) struct ReaderPause {
    since: Mutex<Option<Instant>>,
    stopped: CancellationToken,
}

impl ReaderPause {
    pub(crate) fn begin(&self) {
        *self.since.lock() = Some(Instant::now());
    }

    pub(crate) fn end(&self) {
        *self.since.lock() = None;
    }

    pub(crate) fn is_long(&self) -> bool {
        self.duration().is_some_and(|pause| pause >= PAUSE_MIN)
    }

    /// Resolves when the pause was so long that the query must end.
    pub(crate) async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    fn duration(&self) -> Option<Duration> {
        self.since.lock().map(|since| since.elapsed())
    }
}

/// The memory of a row group. It is returned when this is dropped.
#[derive(Debug)]
pub(crate) struct DecodePermit {
    budget: Arc<DecodeBudget>,
    query: usize,
    bytes: usize,
    is_decoded: AtomicBool,
}

/// A request that waits, until it is dropped.
struct Request<'a> {
    budget: &'a DecodeBudget,
    query: usize,
}

impl DecodeBudget {
    /// For queries with so many threads, which have `memory_bytes` together.
    pub(crate) fn new(threads: usize, memory_bytes: usize) -> Self {
        Self {
            bytes_max: (threads.max(1) * BYTES_PER_THREAD).min(memory_bytes / MEMORY_SHARE),
            stuck_after: STUCK_AFTER,
            state: Mutex::new(State { queries: HashMap::new(), changed_at: Instant::now() }),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Bytes of row groups that are in memory.
    pub(crate) fn used_bytes(&self) -> usize {
        self.state.lock().queries.values().map(QueryDecoding::bytes).sum()
    }

    /// Waits until column chunks of the lengths `chunks` may be decoded for the query of `reader`.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        chunks: impl Iterator<Item = usize>,
        reader: &Arc<ReaderPause>,
    ) -> Arc<DecodePermit> {
        let bytes = chunks
            .map(|chunk| chunk.min(CLAIMED_BYTES_MAX))
            .map(|chunk| chunk + (2 * chunk).min(PAGE_BYTES_MAX))
            .sum::<usize>();
        // A damaged footer may claim any length.
        let bytes = bytes.min(CLAIMED_BYTES_MAX);
        let request = self.add_request(reader);
        let mut turn = pin!(self.turn.lock());
        let mut has_turn = None;
        let mut turn_began = Instant::now();
        loop {
            let changed = self.changed.notified();
            let has_waited = has_turn.is_some() && turn_began.elapsed() >= TURN_WAIT_MAX;
            if let Some(permit) = self.try_admit(request.query, bytes, has_turn.is_some(), has_waited) {
                return permit;
            }
            if has_turn.is_some() {
                self.stop_unread_query(request.query, bytes);
            }
            // A query may become the only one, or get stuck, before it is its turn.
            tokio::select! {
                guard = &mut turn, if has_turn.is_none() => (has_turn, turn_began) = (Some(guard), Instant::now()),
                () = changed, if has_turn.is_some() => {}
                () = tokio::time::sleep(CHECK_EVERY) => {}
            }
        }
    }

    fn add_request(&self, reader: &Arc<ReaderPause>) -> Request<'_> {
        let query = Arc::as_ptr(reader).addr();
        let new =
            || QueryDecoding { reader: reader.clone(), decoding_bytes: 0, kept_bytes: 0, row_groups: 0, requests: 0 };
        self.state.lock().queries.entry(query).or_insert_with(new).requests += 1;
        Request { budget: self, query }
    }

    fn try_admit(
        self: &Arc<Self>,
        query: usize,
        bytes: usize,
        has_turn: bool,
        has_waited: bool,
    ) -> Option<Arc<DecodePermit>> {
        let mut state = self.state.lock();
        let is_admissible = self.is_admissible(&state, query, bytes, has_turn)
            || has_waited && bytes <= self.bytes_max && state.is_held_by_one_other(query);
        if !is_admissible {
            return None;
        }
        state.changed_at = Instant::now();
        let own = state.queries.get_mut(&query)?;
        own.decoding_bytes += bytes;
        own.row_groups += 1;
        Some(Arc::new(DecodePermit { budget: self.clone(), query, bytes, is_decoded: AtomicBool::new(false) }))
    }

    fn is_admissible(&self, state: &State, query: usize, bytes: usize, has_turn: bool) -> bool {
        let held = state.held_bytes(query);
        let all_max = 2 * self.bytes_max;
        if !held.has_active_others && held.paused <= self.bytes_max {
            return true;
        }
        let fits_active = held.active == 0 || held.active + bytes <= self.bytes_max;
        // One that is larger than that is decoded beside one of a reader that pauses.
        let fits_all = held.active + held.paused + bytes <= all_max || held.holders <= 1;
        if has_turn && fits_active && fits_all {
            return true;
        }
        let is_stuck = state.changed_at.elapsed() >= self.stuck_after
            && held.active_of_others <= self.bytes_max
            && held.active_of_others + held.paused_of_others <= all_max;
        let may_need_more = |own: &QueryDecoding| !own.reader.is_long() && (has_turn || own.row_groups > 0);
        is_stuck && state.queries.get(&query).is_some_and(may_need_more)
    }

    /// Stops the query whose reader has paused for the longest time, if a row group of `bytes` does not fit for `query`.
    fn stop_unread_query(&self, query: usize, bytes: usize) {
        let state = self.state.lock();
        let held = state.held_bytes(query);
        // One at a time: its memory may be enough.
        let is_stopping = || state.queries.values().any(|query| query.reader.stopped.is_cancelled());
        if held.active + held.paused + bytes <= 2 * self.bytes_max || is_stopping() {
            return;
        }
        let holders = state.queries.values().filter(|query| query.bytes() > 0);
        let pauses = holders.filter_map(|query| Some((query.reader.duration()?, &query.reader)));
        if let Some((pause, reader)) = pauses.max_by_key(|(pause, _)| *pause)
            && pause >= PAUSE_MAX
        {
            reader.stopped.cancel();
        }
    }
}

impl State {
    /// Whether only one query beside `query` has row groups: one that is larger than the budget, with a slow reader, must
    /// not stop all others.
    fn is_held_by_one_other(&self, query: usize) -> bool {
        self.queries.iter().filter(|(key, decoding)| **key != query && decoding.row_groups > 0).count() <= 1
    }

    fn held_bytes(&self, query: usize) -> HeldBytes {
        let mut held = HeldBytes::default();
        for (key, decoding) in &self.queries {
            let is_other = *key != query;
            held.holders += usize::from(decoding.row_groups > 0);
            if decoding.reader.is_long() {
                held.paused += decoding.bytes();
                held.paused_of_others += if is_other { decoding.bytes() } else { 0 };
                continue;
            }
            held.active += decoding.decoding_bytes;
            if is_other {
                held.active_of_others += decoding.decoding_bytes;
                held.has_active_others |= decoding.decoding_bytes > 0 || decoding.requests > 0;
            }
        }
        held
    }

    fn change(&mut self, query: usize, change: impl FnOnce(&mut QueryDecoding)) {
        if let Some(own) = self.queries.get_mut(&query) {
            change(own);
            if own.row_groups == 0 && own.requests == 0 {
                self.queries.remove(&query);
            }
        }
    }
}

impl QueryDecoding {
    fn bytes(&self) -> usize {
        self.decoding_bytes + self.kept_bytes
    }
}

impl DecodePermit {
    /// All rows of the row group are decoded, although some may still refer to its bytes.
    pub(crate) fn end_decoding(&self) {
        if self.is_decoded.swap(true, Ordering::Relaxed) {
            return;
        }
        self.change(|own| {
            own.decoding_bytes -= self.bytes;
            own.kept_bytes += self.bytes;
        });
    }

    fn change(&self, change: impl FnOnce(&mut QueryDecoding)) {
        let mut state = self.budget.state.lock();
        state.change(self.query, change);
        state.changed_at = Instant::now();
        drop(state);
        self.budget.changed.notify_one();
    }
}

impl Drop for DecodePermit {
    fn drop(&mut self) {
        self.end_decoding();
        self.change(|own| {
            own.kept_bytes -= self.bytes;
            own.row_groups -= 1;
        });
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.budget.state.lock().change(self.query, |own| own.requests -= 1);
        // Another query may be the only one now.
        self.budget.changed.notify_one();
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
    use std::task::Poll;

    use futures::FutureExt;
    use futures::future::BoxFuture;
    use proptest::prelude::*;

    use super::*;

    /// A budget that never takes queries for stuck.
    fn budget(bytes_max: usize) -> Arc<DecodeBudget> {
        Arc::new(DecodeBudget { bytes_max, stuck_after: Duration::MAX, ..DecodeBudget::new(1, 0) })
    }

    fn paused_reader(pause: Duration) -> Arc<ReaderPause> {
        let since = Instant::now().checked_sub(pause);
        Arc::new(ReaderPause { since: Mutex::new(since), ..ReaderPause::default() })
    }

    fn request(
        budget: &Arc<DecodeBudget>,
        reader: &Arc<ReaderPause>,
        bytes: usize,
    ) -> BoxFuture<'static, Arc<DecodePermit>> {
        let (budget, reader) = (budget.clone(), reader.clone());
        // Pages of a chunk count twice as much as the chunk.
        async move { budget.acquire([bytes / 3].into_iter(), &reader).await }.boxed()
    }

    #[tokio::test]
    async fn queries_take_turns() {
        let (budget, first, second) = (budget(400), Arc::default(), Arc::default());
        let held = request(&budget, &first, 300).await;
        let more = request(&budget, &first, 300).await;
        assert_eq!(budget.used_bytes(), 600, "a query that is alone does not wait");
        let mut waiting = request(&budget, &second, 300);
        assert!(futures::poll!(&mut waiting).is_pending());
        let mut even_more = request(&budget, &first, 300);
        assert!(futures::poll!(&mut even_more).is_pending(), "a query that is not alone waits behind others");
        drop(more);
        assert!(futures::poll!(&mut waiting).is_pending());
        held.end_decoding();
        let _second = waiting.await;
        assert_eq!(budget.used_bytes(), 600, "rows of the first query refer to its row group");
        assert!(futures::poll!(&mut even_more).is_pending());
    }

    #[tokio::test]
    async fn permit_is_held_until_the_last_slice_is_dropped() {
        let (budget, reader) = (budget(400), Arc::default());
        let bytes = with_permit(Bytes::from_static(b"abc"), request(&budget, &reader, 300).await);
        let slice = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(budget.used_bytes(), 300);
        drop(slice);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[tokio::test]
    async fn cancelled_request_returns_its_turn() {
        let (budget, first, second, third) = (budget(400), Arc::default(), Arc::default(), Arc::default());
        let held = request(&budget, &first, 300).await;
        let (mut left, mut right) = (request(&budget, &second, 300), request(&budget, &third, 300));
        assert!(futures::poll!(&mut left).is_pending() && futures::poll!(&mut right).is_pending());
        drop((left, held));
        let right = right.await;
        drop(right);
        assert_eq!(budget.used_bytes(), 0);
        assert!(budget.state.lock().queries.is_empty());
    }

    #[tokio::test]
    async fn joins_that_wait_for_each_other_go_on() {
        let budget = Arc::new(DecodeBudget { stuck_after: Duration::ZERO, ..DecodeBudget::new(1, 2_400) });
        let (first, second) = (Arc::default(), Arc::default());
        let held = (request(&budget, &first, 300).await, request(&budget, &second, 300).await);
        let (first_pair, second_pair) = tokio::join!(
            request(&budget, &first, 300).map(|permit| (permit, held.0)),
            request(&budget, &second, 300).map(|permit| (permit, held.1)),
        );
        drop((first_pair, second_pair));
        assert_eq!(budget.used_bytes(), 0);
    }

    #[tokio::test]
    async fn paused_readers_make_no_others_wait_within_twice_the_budget() {
        let budget = budget(300);
        let (first, second, third) = (paused_reader(PAUSE_MIN), paused_reader(PAUSE_MIN), Arc::default());
        let first_held = request(&budget, &first, 300).await;
        assert!(futures::poll!(request(&budget, &third, 300)).is_ready());
        let second_held = request(&budget, &second, 300).await;
        let mut waiting = request(&budget, &third, 300);
        assert!(futures::poll!(&mut waiting).is_pending(), "the others hold twice the budget");
        assert!(!first.stopped.is_cancelled(), "the pauses are short");
        drop(second_held);
        let _third_held = waiting.await;
        assert_eq!(budget.used_bytes(), 600);
        drop(first_held);
    }

    #[tokio::test]
    async fn query_that_nobody_reads_is_stopped_if_others_need_its_memory() {
        let budget = budget(100);
        let (first, second, reader) = (paused_reader(PAUSE_MAX), paused_reader(PAUSE_MIN), Arc::default());
        let held = request(&budget, &first, 300).await;
        let _other = request(&budget, &second, 300).await;
        let stopped = async {
            first.stopped().await;
            drop(held);
        };
        let (_permit, ()) = tokio::join!(request(&budget, &reader, 300), stopped);
        assert_eq!(budget.used_bytes(), 600);
        assert!(!second.stopped.is_cancelled(), "the memory of one query is enough");
    }

    /// What happens next, with numbers that choose among what is there.
    #[derive(Debug, Clone)]
    enum Step {
        Request { query: usize, bytes: usize },
        Cancel(usize),
        Decode(usize),
        Return(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..6_usize, 1..500_usize).prop_map(|(query, bytes)| Step::Request { query, bytes }),
            1 => any::<usize>().prop_map(Step::Cancel),
            1 => any::<usize>().prop_map(Step::Decode),
            2 => any::<usize>().prop_map(Step::Return),
        ];
        prop::collection::vec(step, 1..60)
    }

    /// Admits the requests that may be admitted now.
    async fn admit(waiting: &mut Vec<BoxFuture<'static, Arc<DecodePermit>>>, held: &mut Vec<Arc<DecodePermit>>) {
        let mut at = 0;
        while at < waiting.len() {
            // So that the scheduler does not make the requests wait.
            tokio::task::yield_now().await;
            let polled = futures::poll!(&mut waiting[at]);
            match polled {
                Poll::Ready(permit) => {
                    held.push(permit);
                    drop(waiting.remove(at));
                    // The next one may have the turn now.
                    at = 0;
                }
                Poll::Pending => at += 1,
            }
        }
    }

    async fn run_steps(steps: Vec<Step>) {
        let budget = budget(1_000);
        let readers: Vec<Arc<ReaderPause>> = (0..6).map(|_| Arc::default()).collect();
        let (mut waiting, mut held) = (Vec::new(), Vec::<Arc<DecodePermit>>::new());
        for step in steps {
            let decoded_before = budget.state.lock().held_bytes(0).active;
            match step {
                Step::Request { query, bytes } => waiting.push(request(&budget, &readers[query], bytes)),
                Step::Cancel(at) if !waiting.is_empty() => drop(waiting.swap_remove(at % waiting.len())),
                Step::Decode(at) if !held.is_empty() => held[at % held.len()].end_decoding(),
                Step::Return(at) if !held.is_empty() => drop(held.swap_remove(at % held.len())),
                _ => {}
            }
            admit(&mut waiting, &mut held).await;
            let state = budget.state.lock();
            let (decoded, queries) = (state.held_bytes(0).active, state.queries.len());
            let decoding = state.queries.values().filter(|query| query.decoding_bytes > 0).count();
            // More is decoded only by a query that was alone, and a large row group alone.
            let is_bounded = decoded <= 1_000 || decoded <= decoded_before || decoding == 1;
            assert!(is_bounded, "{decoded} bytes of {queries} queries, {decoded_before} before");
        }
        while !waiting.is_empty() {
            held.clear();
            admit(&mut waiting, &mut held).await;
            assert!(!held.is_empty(), "{} requests wait although no memory is held", waiting.len());
        }
        held.clear();
        assert_eq!(budget.used_bytes(), 0);
        assert!(budget.state.lock().queries.is_empty());
    }

    proptest! {
        #[test]
        fn budget_is_not_exceeded_and_each_request_ends(steps in steps()) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(run_steps(steps));
        }
    }
}
