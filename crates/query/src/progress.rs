//! Reports the progress of an answer: the stage, the number of rows, the expected number, and the bytes.
//!
//! Progress counts rows, and MCP requires increasing values. A query that returns no rows for a long time still needs a
//! heartbeat, and seconds would look like rows. So each tenth of a second without a row adds a ten-millionth: the value
//! increases, and its whole part is always the number of rows.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tidegate_core::Error;
use tidegate_runtime::{Job, RunningCall};
use tokio::time::Instant;

const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// The increment for each tenth of a second without a row.
const HEARTBEAT_INCREMENT: f64 = 1e-7;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AnswerStage {
    #[default]
    Planning,
    /// The query runs and has not returned a row.
    Running,
    /// Rows are read, and none was sent.
    Reading,
    /// Rows are read and sent.
    Sending,
    /// Rows are read and stored.
    Storing,
}

pub(crate) struct ProgressReporter<'a> {
    call: &'a RunningCall,
    started: std::time::Instant,
    state: Arc<Mutex<ProgressState>>,
}

#[derive(Debug, Default)]
struct ProgressState {
    stage: AnswerStage,
    rows: u64,
    bytes: u64,
    expected: Option<u64>,
    /// The rows of the last report, and its time.
    last_report: Option<(u64, Instant)>,
}

impl<'a> ProgressReporter<'a> {
    /// The reporter for an answer to `call` that begins now.
    pub(crate) fn new(call: &'a RunningCall) -> Self {
        Self { call, started: std::time::Instant::now(), state: Arc::default() }
    }

    /// When the answer began.
    pub(crate) fn started(&self) -> std::time::Instant {
        self.started
    }

    pub(crate) fn job(&self) -> &'a Arc<Job> {
        self.call.job()
    }

    pub(crate) fn set_expected_rows(&self, rows: Option<u64>) {
        self.state.lock().expected = rows;
    }

    pub(crate) async fn enter_stage(&self, stage: AnswerStage) -> Result<(), Error> {
        self.state.lock().stage = stage;
        self.report().await
    }

    /// Reports `rows` read and `bytes` sent, at most four times per second.
    pub(crate) async fn update(&self, rows: u64, bytes: u64) -> Result<(), Error> {
        let is_news = {
            let mut state = self.state.lock();
            state.stage = if bytes == 0 { AnswerStage::Reading } else { AnswerStage::Sending };
            (state.rows, state.bytes) = (rows, bytes);
            state.last_report.is_none_or(|(before, at)| rows > before && at.elapsed() >= PROGRESS_INTERVAL)
        };
        if is_news { self.report().await } else { Ok(()) }
    }

    /// Counts the rows of `batches`, which are stored.
    pub(crate) fn count_rows(
        &self,
        batches: BoxStream<'static, Result<RecordBatch, Error>>,
    ) -> BoxStream<'static, Result<RecordBatch, Error>> {
        let state = self.state.clone();
        let count = move |batch: &Result<RecordBatch, Error>| {
            let mut state = state.lock();
            state.stage = AnswerStage::Storing;
            state.rows += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        };
        batches.inspect(count).boxed()
    }

    /// Runs `work`, with heartbeats for clients that request progress.
    pub(crate) async fn run_with_heartbeat<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        if !self.call.request().wants_progress {
            return work.await;
        }
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => self.report().await?,
            }
        }
    }

    async fn report(&self) -> Result<(), Error> {
        if !self.call.request().wants_progress {
            return Ok(());
        }
        let (done, expected, message) = self.state.lock().next_report(self.call.elapsed());
        self.call.progress(done, expected, Some(message)).await
    }
}

impl ProgressState {
    fn next_report(&mut self, elapsed: Duration) -> (f64, Option<f64>, String) {
        let before = self.last_report.map_or(0, |(rows, _)| rows);
        self.last_report = Some((self.rows, Instant::now()));
        // An `f64` represents every realistic number of rows exactly.
        let rows = self.rows as f64;
        let tenths = (elapsed.as_secs_f64() * 10.0).floor();
        let done = if self.rows > before { rows } else { rows + tenths * HEARTBEAT_INCREMENT };
        // An estimate that was exceeded is dropped.
        let expected = self.expected.filter(|expected| *expected > 0 && *expected >= self.rows);
        (done, expected.map(|expected| expected as f64), self.message(expected, elapsed))
    }

    fn message(&self, expected: Option<u64>, elapsed: Duration) -> String {
        let stage = match self.stage {
            AnswerStage::Planning => "the query is planned",
            AnswerStage::Running => "the query runs",
            AnswerStage::Reading => "rows are read",
            AnswerStage::Sending => "rows are sent",
            AnswerStage::Storing => "rows are stored",
        };
        if self.rows == 0 {
            let seconds = elapsed.as_secs();
            return if seconds == 0 { stage.to_owned() } else { format!("{stage}, {seconds} s so far") };
        }
        let of = expected.map(|expected| format!(" of about {expected}")).unwrap_or_default();
        let bytes = if self.bytes > 0 { format!(", {}", format_bytes(self.bytes)) } else { String::new() };
        format!("{stage}: {}{of}{bytes}", self.rows)
    }
}

fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} bytes"),
        10_000..=9_999_999 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn heartbeat_increases_without_counting_as_row() {
        let mut state = ProgressState { stage: AnswerStage::Running, ..ProgressState::default() };
        let mut received = Vec::new();
        let mut hear =
            |state: &mut ProgressState, seconds| received.push(state.next_report(Duration::from_secs(seconds)));
        hear(&mut state, 0);
        hear(&mut state, 1);
        hear(&mut state, 86_400);
        (state.stage, state.rows, state.expected) = (AnswerStage::Reading, 1, Some(2));
        hear(&mut state, 86_401);
        hear(&mut state, 86_402);
        (state.stage, state.rows, state.bytes) = (AnswerStage::Sending, 3, 12_345);
        hear(&mut state, 86_403);
        assert!(received.is_sorted_by(|(before, ..), (after, ..)| before < after), "{received:?}");
        assert!(received.iter().map(|(done, ..)| done.floor()).eq([0.0, 0.0, 0.0, 1.0, 1.0, 3.0]));
        let words: Vec<String> = received.into_iter().map(|(_, total, words)| format!("{words} {total:?}")).collect();
        insta::assert_snapshot!(words.join("\n"), @"
        the query runs None
        the query runs, 1 s so far None
        the query runs, 86400 s so far None
        rows are read: 1 of about 2 Some(2.0)
        rows are read: 1 of about 2 Some(2.0)
        rows are sent: 3, 12 kB None
        ");
    }
}
