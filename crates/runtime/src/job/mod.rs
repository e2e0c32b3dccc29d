//! A call that is being executed.

mod answer_options;
mod call;
mod call_timer;
mod client_log;
mod interaction;
mod jobs;
mod missing_nodes;
mod progress_throttle;
mod protection;
mod request_body;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tidegate_core::{
    AnswerProtection, AuditedStatement, Budget, CallTarget, Caller, ClientCapabilities, DataFence, Error, ErrorKind,
    Format, LogLevel, Principal, ProvidedAnswer, RowPolicyFingerprints, TemplateVariables,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::call_timer::CallTimer;
use self::client_log::ClientLog;
use self::missing_nodes::AnswerCompleteness;
use self::progress_throttle::ProgressThrottle;
use crate::event::{Event, EventDispatcher, QueryStep};
use crate::limits::{PermitQueues, ReachedLimit, RunPermits, UsageAmount, UsageCharges};

pub use self::call::{Call, ClientRequest};
pub use self::jobs::Jobs;
pub use self::request_body::{RequestBody, RequestBodyReader};
pub use self::status::{JobId, JobState, JobStatus};

const AUDITED_STATEMENTS_MAX: usize = 32;
const AUDITED_TABLES_MAX: usize = 64;
const TIME_CHARGE_INTERVAL: Duration = Duration::from_secs(1);

/// A call that is being executed, with the data for its handler and its status for others.
#[derive(Debug)]
pub struct Job {
    id: JobId,
    target: CallTarget,
    arguments: Map<String, Value>,
    variables: TemplateVariables,
    caller: Caller,
    inline_budget: Budget,
    format: Option<Format>,
    pub(crate) batch_rows: Option<NonZeroU64>,
    pub(crate) wants_progress: bool,
    pub(crate) progress_throttle: Mutex<ProgressThrottle>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) client_log: ClientLog,
    pub(crate) events: EventDispatcher,
    client_request: Option<ClientRequest>,
    request_body: Option<RequestBody>,
    /// Fires when the adapter cancels the call; ignored once the answer has ended.
    client_cancellation: CancellationToken,
    cancellation: CancellationToken,
    timer: CallTimer,
    is_in_background: AtomicBool,
    interaction: InteractionState,
    pub(crate) is_audited: bool,
    audited_statements: Mutex<Vec<AuditedStatement>>,
    pub(crate) protection: AnswerProtection,
    secret_count: AtomicU64,
    fence: OnceLock<DataFence>,
    /// From the snapshot with which the caller was authenticated.
    pub(crate) row_policies: RowPolicyFingerprints,
    result_uri: OnceLock<String>,
    answer_age: OnceLock<Duration>,
    completeness: Mutex<AnswerCompleteness>,
    databases: Mutex<BTreeSet<String>>,
    started_at: SystemTime,
    started: Instant,
    rows: AtomicU64,
    bytes: AtomicU64,
    charges: UsageCharges,
    state: Mutex<(JobState, Option<Duration>)>,
    timeout_error: OnceLock<Error>,
}

#[derive(Debug)]
struct InteractionState {
    client_capabilities: ClientCapabilities,
    input_answers: BTreeMap<String, ProvidedAnswer>,
    supports_live_input: AtomicBool,
    on_behalf_of: Option<Arc<Job>>,
    /// Fires when the handler requests that the call continues as a task.
    task_requested: CancellationToken,
    task_started: CancellationToken,
    input_timeout: Duration,
    task_after: Duration,
    /// The minimum run time as a task. An entry with a time limit of its own keeps that limit.
    task_timeout: Duration,
    permit_queues: OnceLock<PermitQueues>,
    held_permits: Mutex<Option<RunPermits>>,
    reacquire_lock: tokio::sync::Mutex<()>,
}

impl Job {
    /// The job's id.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// The target of the call.
    pub fn target(&self) -> &CallTarget {
        &self.target
    }

    /// The arguments, validated against the target's schema.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// The values of the template's variables, percent-decoded.
    pub fn variables(&self) -> &TemplateVariables {
        &self.variables
    }

    /// The value of a resource template's variable, percent-decoded.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The principal of the caller.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.caller.principal
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether the caller requests progress.
    pub fn wants_progress(&self) -> bool {
        self.wants_progress
    }

    /// The least severe log message that the caller requests; `None` for no messages.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// Emits the event that a query of the job made a step.
    pub fn report_step(&self, step: QueryStep<'_>) {
        self.events.emit(Event::QueryStep { job: self, step });
    }

    /// Emits the detail of `error`, which is part of the answer and does not end the call.
    pub fn report_error_detail(&self, error: &Error) {
        self.events.emit_error_detail(error, self.id.0);
    }

    /// The JSON-RPC request that made the call; `None` for other calls, such as those over REST.
    pub fn client_request(&self) -> Option<&ClientRequest> {
        self.client_request.as_ref()
    }

    /// When the job reaches its time limit.
    pub fn deadline(&self) -> Instant {
        self.timer.deadline()
    }

    /// Extends the deadline so that the job can run for at least `time` from now. Work that continues after its answer
    /// has limits of its own.
    pub fn extend(&self, time: Duration) {
        self.timer.extend(time);
    }

    /// Ends the job at its deadline; never resolves.
    pub(crate) async fn watch_deadline(&self) {
        tokio::select! {
            () = self.timer.expired() => {}
            () = self.watch_parent_task() => {}
        }
        self.time_out();
        std::future::pending::<()>().await;
    }

    /// Sets the URI of the stored result that contains the rows of the job. Only the first call has an effect.
    pub fn set_result_uri(&self, result: String) {
        self.result_uri.get_or_init(|| result);
    }

    /// Records that the job queries a database with the rights of its caller. A caller that loses the right to the
    /// database loses access to the results of the job.
    pub fn record_database(&self, database: &str) {
        for job in self.ancestors() {
            job.databases.lock().insert(database.to_owned());
        }
    }

    /// The databases that the job has queried with the rights of its caller.
    pub fn databases(&self) -> BTreeSet<String> {
        self.databases.lock().clone()
    }

    /// Whether an auditor records this call.
    pub fn is_audited(&self) -> bool {
        self.is_audited
    }

    /// Records a statement for the audit line. If a call has many statements, only the first ones are recorded.
    pub fn record_statement(&self, statement: impl FnOnce() -> AuditedStatement) {
        if !self.is_audited() {
            return;
        }
        let mut statements = self.audited_statements.lock();
        if statements.len() < AUDITED_STATEMENTS_MAX {
            let mut statement = statement();
            statement.tables.truncate(AUDITED_TABLES_MAX);
            statements.push(statement);
        }
    }

    /// Takes the recorded statements.
    pub fn take_statements(&self) -> Vec<AuditedStatement> {
        std::mem::take(&mut *self.audited_statements.lock())
    }

    /// The fingerprint of the row policies that apply to the caller.
    pub fn row_policy_fingerprint(&self) -> u64 {
        self.row_policies.fingerprint_for(&self.caller.principal)
    }

    /// Whether the answer has ended while the work continues.
    pub fn is_in_background(&self) -> bool {
        self.is_in_background.load(Ordering::Acquire)
    }

    pub(crate) fn set_in_background(&self, is_in_background: bool) {
        self.is_in_background.store(is_in_background, Ordering::Release);
    }

    /// Cancels the job when its adapter cancels it, unless it is in the background or a task by then; never resolves.
    pub(crate) async fn watch_client_cancellation(&self) {
        self.client_cancellation.cancelled().await;
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
        self.cancellation.is_cancelled()
            || (self.client_cancellation.is_cancelled() && !self.is_in_background() && !self.is_task())
    }

    /// Whether [`Self::cancelled`] has resolved.
    pub(crate) fn is_stopped(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// A token that fires when the job is cancelled, for work that outlives a borrow of the job.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancellation.clone()
    }

    /// Cancels the job.
    pub fn cancel(&self) {
        self.cancellation.cancel();
    }

    /// Cancels the job at its deadline, unless it is already cancelled.
    fn time_out(&self) {
        if self.is_cancelled() {
            return;
        }
        let error = match self.timer.is_paused() {
            true => Error::new(ErrorKind::TimedOut, "the call requested input and received none within the time limit"),
            false => {
                let seconds = (self.deadline() - self.started).as_secs_f64();
                Error::new(ErrorKind::TimedOut, format!("the call exceeded its time limit of {seconds:.1} s"))
                    .with_hint("Ask for less: filter, aggregate, or set a smaller limit.")
            }
        };
        let _ = self.timeout_error.set(error);
        self.cancel();
    }

    pub(crate) fn timeout_error(&self) -> Option<&Error> {
        self.timeout_error.get()
    }

    /// Counts `rows` as returned, or as received. A call that exceeds a daily limit of its caller is cancelled.
    pub fn count_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.charge(UsageAmount { rows, ..UsageAmount::default() });
    }

    /// The number of rows returned or received so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(crate) fn count_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.charge(UsageAmount { bytes: bytes as u64, ..UsageAmount::default() });
    }

    fn charge(&self, amount: UsageAmount) {
        if !self.charges.charge(amount) {
            self.cancel();
        }
    }

    pub(crate) fn exceeded_limit(&self) -> Option<ReachedLimit> {
        self.charges.exceeded_limit()
    }

    /// Charges the run time each second, and the remainder when this is dropped; never resolves.
    pub(crate) async fn charge_time(&self) {
        if self.charges.is_empty() {
            return std::future::pending().await;
        }
        let mut running = TimeCharger { job: self, charged_until: Instant::now() };
        loop {
            tokio::time::sleep(TIME_CHARGE_INTERVAL).await;
            running.charge();
        }
    }

    /// The number of bytes of text, or of a body, sent so far, and of the body of the request received so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The run time so far, or in total.
    pub fn elapsed(&self) -> Duration {
        self.state.lock().1.unwrap_or_else(|| self.started.elapsed())
    }

    pub(crate) fn set_state(&self, state: JobState) {
        let elapsed = state.has_ended().then(|| self.started.elapsed());
        *self.state.lock() = (state, elapsed);
    }

    /// The status of the job for other callers.
    pub fn status(&self) -> JobStatus {
        let (state, ended_after) = *self.state.lock();
        JobStatus {
            id: self.id,
            // The status of an ended job must not keep a registry snapshot alive.
            caller: Caller { pinned_snapshot: None, ..self.caller.clone() },
            target: (self.target.kind(), self.target.name().to_owned()),
            state,
            started_at: self.started_at,
            started: self.started,
            elapsed: ended_after.unwrap_or_else(|| self.started.elapsed()),
            result: self.result_uri.get().cloned(),
            rows: self.rows(),
            bytes: self.bytes(),
        }
    }
}

struct TimeCharger<'a> {
    job: &'a Job,
    charged_until: Instant,
}

impl TimeCharger<'_> {
    fn charge(&mut self) {
        let now = Instant::now();
        let time = now.duration_since(std::mem::replace(&mut self.charged_until, now));
        // A job that waits for input uses no time.
        if !self.job.timer.is_paused() {
            self.job.charge(UsageAmount { time, ..UsageAmount::default() });
        }
    }
}

impl Drop for TimeCharger<'_> {
    fn drop(&mut self) {
        self.charge();
    }
}
