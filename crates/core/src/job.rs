//! One call being executed.

mod status;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::answer_format::AnswerFormat;
use crate::asking::AskingState;
use crate::auditor::Trail;
use crate::call::{Call, LogLevel, Target, Variables};
use crate::caller::Caller;
use crate::clock::Clock;
use crate::guard::Guarded;
use crate::limits::{Budget, Charges, Limits, Reached, Taken};
use crate::pace::Pace;
use crate::principal::Principal;
use crate::row_policy_stamp::RowPolicyStamp;

pub use status::{JobId, JobState, JobStatus};

/// How often the time of a call is charged.
const TIME_CHARGED_EACH: Duration = Duration::from_secs(1);

/// One call being executed: what its handler may know, and what others may see of it.
#[derive(Debug)]
pub struct Job {
    id: JobId,
    pub(crate) target: Target,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) variables: Variables,
    pub(crate) caller: Caller,
    pub(crate) inline: Budget,
    format: Option<AnswerFormat>,
    pub(crate) wants_progress: bool,
    pub(crate) pace: Mutex<Pace>,
    pub(crate) log_level: Option<LogLevel>,
    /// Fires when the adapter wants the call to end; means nothing once its answer has ended.
    wish: CancellationToken,
    cancellation: CancellationToken,
    pub(crate) clock: Clock,
    /// Whether its answer has ended while its work goes on.
    is_in_background: AtomicBool,
    pub(crate) asking: AskingState,
    pub(crate) trail: Trail,
    pub(crate) guarded: Guarded,
    /// Of the state that it was let in to.
    pub(crate) row_policies: RowPolicyStamp,
    result: OnceLock<String>,
    databases: Mutex<BTreeSet<String>>,
    started_at: SystemTime,
    started: Instant,
    rows: AtomicU64,
    bytes: AtomicU64,
    charges: Charges,
    state: Mutex<(JobState, Option<Duration>)>,
    timed_out: AtomicBool,
    was_unanswered: AtomicBool,
}

impl Job {
    pub(crate) fn new(
        call: Call,
        variables: Variables,
        inline: Budget,
        timeout: Duration,
        limits: &Limits,
        charges: Charges,
    ) -> Self {
        let started = Instant::now();
        let asking = AskingState::new(&call, limits);
        Self {
            id: JobId(Uuid::new_v4()),
            target: call.target,
            arguments: call.arguments,
            variables,
            caller: call.caller,
            inline,
            format: call.format,
            wants_progress: call.wants_progress,
            pace: Mutex::default(),
            log_level: call.log_level,
            wish: call.cancellation,
            cancellation: CancellationToken::new(),
            clock: Clock::new(timeout),
            is_in_background: AtomicBool::new(false),
            asking,
            trail: Trail::default(),
            guarded: Guarded::default(),
            row_policies: RowPolicyStamp::default(),
            result: OnceLock::new(),
            databases: Mutex::default(),
            started_at: SystemTime::now(),
            started,
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            charges,
            state: Mutex::new((JobState::Waiting, None)),
            timed_out: AtomicBool::new(false),
            was_unanswered: AtomicBool::new(false),
        }
    }

    /// The job's name.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// What was asked.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The arguments, valid against the target's schema.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// The values of the template's variables, percent-decoded.
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// The value of a resource template's variable, percent-decoded.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Who asks.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.caller.principal
    }

    /// Who asks, and from where.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether the caller wants to hear of progress.
    pub fn wants_progress(&self) -> bool {
        self.wants_progress
    }

    /// The least severe log message that the caller wants to hear; none when it wants none.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// How much of the answer may travel inline.
    pub fn inline_budget(&self) -> Budget {
        self.inline
    }

    /// The form of the answer, if it shall be a body of its own.
    pub fn format(&self) -> Option<AnswerFormat> {
        self.format
    }

    /// When the job is ended for having run too long.
    pub fn deadline(&self) -> Instant {
        self.clock.deadline()
    }

    /// Lets the job run for `time` from now on at least: work that goes on when its answer has ended has bounds of its
    /// own.
    pub fn extend(&self, time: Duration) {
        self.clock.extend(time);
    }

    /// Ends the job when its deadline has passed; never resolves.
    pub(crate) async fn watch_deadline(&self) {
        tokio::select! {
            () = self.clock.run_out() => {}
            () = self.follow() => {}
        }
        self.time_out();
        std::future::pending::<()>().await;
    }

    /// Says where the rows of the job are kept, by the URI of a stored result; the first one said stays.
    pub fn keep_in(&self, result: String) {
        self.result.get_or_init(|| result);
    }

    /// Says that the job asks the database of that name by its caller's own right: whoever loses the right has no part in
    /// what came of it.
    pub fn relies_on(&self, database: &str) {
        for job in self.chain() {
            job.databases.lock().insert(database.to_owned());
        }
    }

    /// The databases that it has asked by its caller's own right.
    pub fn databases(&self) -> BTreeSet<String> {
        self.databases.lock().clone()
    }

    /// What the row policies that it runs under make of its caller.
    pub fn row_policy_stamp(&self) -> u64 {
        self.row_policies.of(&self.caller.principal)
    }

    /// Whether its answer has ended while its work goes on.
    pub fn is_in_background(&self) -> bool {
        self.is_in_background.load(Ordering::Acquire)
    }

    pub(crate) fn enter_background(&self) {
        self.is_in_background.store(true, Ordering::Release);
    }

    pub(crate) fn leave_background(&self) {
        self.is_in_background.store(false, Ordering::Release);
    }

    /// Cancels the job when its adapter wishes so, unless it is in the background or a task by then; never resolves.
    pub(crate) async fn obey(&self) {
        self.wish.cancelled().await;
        if !self.is_in_background() && !self.is_task() {
            self.cancel();
        }
        std::future::pending::<()>().await;
    }

    /// Resolves when the job is cancelled, by its caller, an operator or its deadline.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// Whether the job is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled() || (self.wish.is_cancelled() && !self.is_in_background() && !self.is_task())
    }

    /// A token that fires when the job is cancelled, for work that outlives a borrow of the job.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancellation.clone()
    }

    /// Cancels the job.
    pub fn cancel(&self) {
        self.cancellation.cancel();
    }

    /// Cancels the job because its time is over, unless somebody has cancelled it already.
    fn time_out(&self) {
        if !self.is_cancelled() {
            self.timed_out.store(true, Ordering::Relaxed);
            self.was_unanswered.store(self.clock.is_paused(), Ordering::Relaxed);
            self.cancel();
        }
    }

    /// Whether it was its deadline that cancelled it.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Relaxed)
    }

    /// Whether it was cancelled because nobody answered what it asked.
    pub(crate) fn was_unanswered(&self) -> bool {
        self.was_unanswered.load(Ordering::Relaxed)
    }

    /// How long it may run.
    pub(crate) fn time_limit(&self) -> Duration {
        self.deadline() - self.started
    }

    /// Counts `rows` answered. A call that exceeds what its caller may have of a day is cancelled.
    pub fn count_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.charge(Taken { rows, ..Taken::default() });
    }

    /// Rows answered so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(crate) fn count_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.charge(Taken { bytes: bytes as u64, ..Taken::default() });
    }

    fn charge(&self, taken: Taken) {
        if !self.charges.charge(taken) {
            self.cancel();
        }
    }

    /// The bound of a day that it exceeded.
    pub(crate) fn exceeded(&self) -> Option<Reached> {
        self.charges.exceeded()
    }

    /// Charges the time for which it runs, each second, and what is left of one when this is dropped; never resolves.
    pub(crate) async fn charge_time(&self) {
        if self.charges.is_empty() {
            return std::future::pending().await;
        }
        let mut running = Running { job: self, charged_until: Instant::now() };
        loop {
            tokio::time::sleep(TIME_CHARGED_EACH).await;
            running.charge();
        }
    }

    /// Bytes of text, or of a body, answered so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How long it has run, or ran.
    pub fn elapsed(&self) -> Duration {
        self.state.lock().1.unwrap_or_else(|| self.started.elapsed())
    }

    pub(crate) fn enter(&self, state: JobState) {
        let elapsed = state.has_ended().then(|| self.started.elapsed());
        *self.state.lock() = (state, elapsed);
    }

    /// The job as somebody else sees it.
    pub fn status(&self) -> JobStatus {
        let (state, ended_after) = *self.state.lock();
        JobStatus {
            id: self.id,
            // Whoever looks at an ended job must not keep a state of the registry alive.
            caller: Caller { state: None, ..self.caller.clone() },
            target: (self.target.kind(), self.target.name().to_owned()),
            state,
            started_at: self.started_at,
            started: self.started,
            elapsed: ended_after.unwrap_or_else(|| self.started.elapsed()),
            result: self.result.get().cloned(),
            rows: self.rows(),
            bytes: self.bytes(),
        }
    }
}

/// A call that runs, and until when its time was charged.
struct Running<'a> {
    job: &'a Job,
    charged_until: Instant,
}

impl Running<'_> {
    fn charge(&mut self) {
        let now = Instant::now();
        let time = now.duration_since(std::mem::replace(&mut self.charged_until, now));
        // While it asks somebody it does nothing.
        if !self.job.clock.is_paused() {
            self.job.charge(Taken { time, ..Taken::default() });
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.charge();
    }
}
