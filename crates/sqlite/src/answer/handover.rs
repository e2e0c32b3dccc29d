//! The way of the rows from the thread that reads them to whoever wants them.
//!
//! No channel, because a reader that has waited long enough takes what there is, while SQLite still looks for the next
//! row: the first row of a slow query must not wait for the sixty-fourth.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rusqlite::Row;
use tidegate_core::{Error, ErrorKind};
use tokio::sync::Notify;

use super::batch::Batch;
use super::columns::ResultColumn;
use crate::failure::Failure;
use crate::options::SqliteOptions;
use crate::session::Running;

/// Batches that wait for the reader.
const BATCHES_WAITING_MAX: usize = 2;
/// Rows of the first batch; each later one has twice those of the one before.
const FIRST_ROWS: usize = 64;
/// How long a row waits for others.
const PATIENCE: Duration = Duration::from_millis(50);
/// Between two looks at whether the work must end, while the reader takes nothing.
const LOOK: Duration = Duration::from_millis(20);
/// Values that one row may have the bytes of, each as long as one may be.
const ROW_VALUES_MAX: usize = 4;

/// Where rows are put and batches are taken.
pub(crate) struct Handover {
    state: Mutex<State>,
    /// Tells the thread that there is room.
    taken: Condvar,
    /// Tells the reader that there is something.
    arrived: Notify,
    batch_rows: usize,
    batch_bytes: usize,
    row_bytes_max: usize,
    stall_timeout: Duration,
}

struct State {
    growing: Batch,
    /// When the first row of the growing batch came.
    since: Option<Instant>,
    rows_wanted: usize,
    ready: VecDeque<RecordBatch>,
    /// How the rows ended, until the reader knows.
    end: Option<Result<(), Error>>,
    was_told: bool,
    /// Whether the reader is gone.
    is_abandoned: bool,
}

impl Handover {
    /// A handover of rows of `columns`, whose schema is `schema`.
    pub(crate) fn new(columns: &[ResultColumn], schema: SchemaRef, options: &SqliteOptions) -> Arc<Self> {
        let batch_rows = options.batch_rows.max(1);
        let state = State {
            growing: Batch::new(columns, schema),
            since: None,
            rows_wanted: FIRST_ROWS.min(batch_rows),
            ready: VecDeque::new(),
            end: None,
            was_told: false,
            is_abandoned: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            taken: Condvar::new(),
            arrived: Notify::new(),
            batch_rows,
            batch_bytes: options.batch_bytes,
            row_bytes_max: options.value_bytes_max.saturating_mul(ROW_VALUES_MAX),
            stall_timeout: options.stall_timeout,
        })
    }

    fn put(&self, row: &Row<'_>, running: &Running) -> Result<(), Failure> {
        let mut state = self.state.lock();
        state.growing.push(row, self.row_bytes_max)?;
        if state.since.is_none() {
            state.since = Some(Instant::now());
            self.arrived.notify_one();
        }
        if state.growing.rows() >= state.rows_wanted || state.growing.bytes() >= self.batch_bytes {
            self.wait_for_room(&mut state, running)?;
            // The reader may have taken the rows in the meantime.
            if state.growing.rows() > 0 {
                let batch = self.cut(&mut state)?;
                state.ready.push_back(batch);
                self.arrived.notify_one();
            }
        }
        Ok(())
    }

    fn wait_for_room(&self, state: &mut MutexGuard<'_, State>, running: &Running) -> Result<(), Failure> {
        let since = Instant::now();
        while state.ready.len() >= BATCHES_WAITING_MAX {
            if state.is_abandoned || running.must_end() {
                return Err(Failure::Stopped);
            }
            if since.elapsed() >= self.stall_timeout {
                return Err(Failure::Stalled);
            }
            self.taken.wait_for(state, LOOK);
        }
        Ok(())
    }

    /// Makes a batch of the rows so far; the next is to have more of them.
    fn cut(&self, state: &mut State) -> Result<RecordBatch, Failure> {
        state.since = None;
        state.rows_wanted = (state.rows_wanted * 2).min(self.batch_rows);
        state.growing.take().map_err(|error| Failure::Told(Error::internal(format!("a batch is malformed: {error}"))))
    }

    fn end(&self, end: Result<(), Error>) {
        let mut state = self.state.lock();
        (state.end, state.was_told) = (Some(end), true);
        drop(state);
        self.arrived.notify_one();
    }

    /// What there is to take now: a batch, the end, or when to look again.
    fn take(&self) -> Taken {
        let mut state = self.state.lock();
        if let Some(batch) = state.ready.pop_front() {
            self.taken.notify_one();
            return Taken::Batch(Ok(batch));
        }
        let has_ended = state.end.is_some();
        match state.since {
            Some(since) if has_ended || since.elapsed() >= PATIENCE => {
                Taken::Batch(self.cut(&mut state).map_err(|failure| failure.into_error("")))
            }
            Some(since) => Taken::Nothing(Some(since + PATIENCE)),
            None => match state.end.take() {
                None => Taken::Nothing(None),
                Some(end) => Taken::End(end),
            },
        }
    }
}

/// What the reader found.
enum Taken {
    Batch(Result<RecordBatch, Error>),
    End(Result<(), Error>),
    /// Nothing before that moment, unless it is told.
    Nothing(Option<Instant>),
}

/// The thread's side.
pub(crate) struct Source {
    handover: Arc<Handover>,
}

impl Source {
    /// The thread's side of `handover`.
    pub(crate) fn new(handover: Arc<Handover>) -> Self {
        Self { handover }
    }

    /// Puts a row, and waits while the reader has enough.
    ///
    /// # Errors
    /// When the row cannot be put, or `running` must end, or the reader takes nothing for too long.
    pub(crate) fn put(&self, row: &Row<'_>, running: &Running) -> Result<(), Failure> {
        self.handover.put(row, running)
    }

    /// Says how the rows ended.
    pub(crate) fn end(self, end: Result<(), Error>) {
        self.handover.end(end);
    }
}

impl Drop for Source {
    /// Rows whose end nobody told of have not ended well: the work was never done, or it panicked.
    fn drop(&mut self) {
        if !self.handover.state.lock().was_told {
            self.handover.end(Err(Error::internal("a query of SQLite ended without a word")));
        }
    }
}

/// The reader's side; dropping it stops the query.
pub(crate) struct Reader {
    handover: Arc<Handover>,
    running: Arc<Running>,
    has_ended: bool,
}

impl Reader {
    /// The reader of `handover`, whose rows `running` reads.
    pub(crate) fn new(handover: Arc<Handover>, running: Arc<Running>) -> Self {
        Self { handover, running, has_ended: false }
    }

    /// The next batch, or nothing at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<RecordBatch, Error>> {
        if self.has_ended {
            return None;
        }
        let cancellation = self.running.cancellation().clone();
        loop {
            if cancellation.is_cancelled() {
                self.has_ended = true;
                self.running.stop();
                return Some(Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")));
            }
            let look_again = match self.handover.take() {
                Taken::Batch(batch) => {
                    self.has_ended = batch.is_err();
                    return Some(batch);
                }
                Taken::End(end) => {
                    self.has_ended = true;
                    return end.err().map(Err);
                }
                Taken::Nothing(look_again) => look_again,
            };
            let look_again = async {
                match look_again {
                    Some(moment) => tokio::time::sleep_until(moment.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = cancellation.cancelled() => {}
                () = self.handover.arrived.notified() => {}
                () = look_again => {}
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.handover.state.lock().is_abandoned = true;
        self.handover.taken.notify_one();
        self.running.stop();
    }
}
