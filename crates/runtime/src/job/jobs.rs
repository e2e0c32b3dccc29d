//! What others learn of calls: the list of jobs, which are those that run or wait and the last ended ones; and of each
//! its state, its statements, and where its answer comes from.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::Value;
use tidegate_core::{AuditedStatement, Caller, Error, ErrorKind, shorten, tenant_share};
use tokio::time::Instant;
use uuid::Uuid;

use super::{AnswerCompleteness, Job};

/// All open jobs and a bounded number of ended jobs.
#[derive(Debug)]
pub struct Jobs {
    ended_max: usize,
    table: Mutex<JobTable>,
}

#[derive(Debug, Default)]
struct JobTable {
    open: HashMap<JobId, Arc<Job>>,
    ended: VecDeque<JobStatus>,
}

impl Jobs {
    pub(crate) fn new(ended_max: usize) -> Self {
        Self { ended_max, table: Mutex::default() }
    }

    /// Adds `job`. Returns false if `open_max` jobs are open already.
    pub(crate) fn open(&self, job: Arc<Job>, open_max: usize) -> bool {
        let mut table = self.table.lock();
        if table.open.len() >= open_max {
            return false;
        }
        table.open.insert(job.id(), job);
        true
    }

    pub(crate) fn close(&self, job: &Job) {
        let status = job.status();
        let mut table = self.table.lock();
        table.open.remove(&job.id());
        if self.ended_max == 0 {
            return;
        }
        if table.ended.len() >= self.ended_max {
            let index = table.index_to_evict(&status, self.ended_max);
            table.ended.remove(index);
        }
        table.ended.push_back(status);
    }

    /// The number of jobs that run or wait.
    pub fn open_count(&self) -> usize {
        self.table.lock().open.len()
    }

    /// The number of jobs of the caller's tenant that run or wait; of all callers without a tenant if it has none, and
    /// of all callers for the user of the process.
    pub fn open_count_for(&self, caller: &Caller) -> usize {
        let table = self.table.lock();
        table.open.values().filter(|job| caller.shares_tenant_with(job.caller())).count()
    }

    /// The jobs of `caller`, newest first. A caller with the access `operator` gets all jobs of its tenant.
    pub fn list(&self, caller: &Caller) -> Vec<JobStatus> {
        let mut jobs: Vec<JobStatus> = {
            let table = self.table.lock();
            let open = table.open.values().map(|job| job.status());
            open.chain(table.ended.iter().cloned()).filter(|job| caller.can_see_activity_of(&job.caller)).collect()
        };
        jobs.sort_by_key(|job| std::cmp::Reverse((job.started, job.started_at)));
        jobs
    }

    /// The job `id`, if `caller` can see it: an open job, or one of the last ended jobs.
    pub fn get(&self, id: &str, caller: &Caller) -> Option<JobStatus> {
        let id = JobId(Uuid::try_parse(id.trim()).ok()?);
        let table = self.table.lock();
        let open = table.open.get(&id).map(|job| job.status());
        let status = open.or_else(|| table.ended.iter().find(|job| job.id == id).cloned());
        status.filter(|job| caller.can_see_activity_of(&job.caller))
    }

    /// Cancels an open job that `caller` can see. Returns false if there is none with that id.
    pub fn cancel(&self, id: JobId, caller: &Caller) -> bool {
        let job = self.table.lock().open.get(&id).filter(|job| caller.can_see_activity_of(job.caller())).cloned();
        job.inspect(|job| job.cancel()).is_some()
    }

    /// Cancels every open job.
    pub fn cancel_all(&self) {
        for job in self.table.lock().open.values() {
            job.cancel();
        }
    }
}

impl JobTable {
    /// The ended job to evict: the oldest one, of the same tenant if that tenant has used its share of `ended_max`.
    fn index_to_evict(&self, job: &JobStatus, ended_max: usize) -> usize {
        let tenant = &job.caller.principal.tenant;
        let is_same_tenant = |job: &&JobStatus| tenant.is_some() && job.caller.principal.tenant == *tenant;
        if self.ended.iter().filter(is_same_tenant).count() < tenant_share(ended_max) {
            return 0;
        }
        self.ended.iter().position(|job| is_same_tenant(&job)).unwrap_or_default()
    }
}

/// The id of a job; it cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub Uuid);

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobState {
    /// Waits for a run permit.
    #[default]
    Waiting,
    /// Its handler runs.
    Running,
    /// Ended without an error.
    Done,
    /// Ended with an error of this kind.
    Failed(ErrorKind),
}

impl JobState {
    /// The name of the state, as used in answers and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed(kind) => kind.name(),
        }
    }

    /// Whether the job has ended.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed(_))
    }
}

/// The status of a job as other callers see it.
#[derive(Debug, Clone)]
pub struct JobStatus {
    /// The id of the job.
    pub id: JobId,
    /// Its caller.
    pub caller: Caller,
    /// The kind and the name of the target.
    pub target: (&'static str, String),
    /// Its state.
    pub state: JobState,
    /// When the call was accepted.
    pub started_at: SystemTime,
    /// The same time by a monotonic clock, which determines the order of jobs.
    pub(crate) started: Instant,
    /// The run time so far, or in total.
    pub elapsed: Duration,
    /// The URI of the stored result of the job.
    pub result: Option<String>,
    /// The number of rows returned so far.
    pub rows: u64,
    /// The number of bytes of text sent so far.
    pub bytes: u64,
    /// The arguments as JSON text, redacted and cut; `None` for a call without any.
    pub arguments: Option<String>,
    /// The message of the error of a job that has failed.
    pub message: Option<String>,
}

/// Limits of what the status of a job has of its arguments and of its error. The last ended jobs are kept.
const ARGUMENT_BYTES_MAX: usize = 1_024;
const MESSAGE_CHARACTERS_MAX: usize = 500;

const AUDITED_STATEMENTS_MAX: usize = 32;
const AUDITED_TABLES_MAX: usize = 64;

/// Locked for moments only: nothing that is called meanwhile uses the job.
#[derive(Debug, Default)]
pub(crate) struct JobRecord {
    state: JobState,
    /// The run time of a job that has ended.
    ended_after: Option<Duration>,
    result_uri: Option<String>,
    message: Option<String>,
    answer_age: Option<Duration>,
    databases: BTreeSet<String>,
    statements: Vec<AuditedStatement>,
    pub(super) completeness: AnswerCompleteness,
}

impl Job {
    pub(crate) fn set_state(&self, state: JobState) {
        let mut record = self.record.lock();
        record.state = state;
        record.ended_after = state.has_ended().then(|| self.timer.started.elapsed());
    }

    /// The run time so far, or in total.
    pub fn elapsed(&self) -> Duration {
        self.record.lock().ended_after.unwrap_or_else(|| self.timer.started.elapsed())
    }

    /// The status of the job for other callers.
    pub fn status(&self) -> JobStatus {
        let arguments = self.redacted_arguments();
        let record = self.record.lock();
        JobStatus {
            id: self.id,
            // The status of an ended job must not keep a registry snapshot alive.
            caller: Caller { pinned_snapshot: None, ..self.caller().clone() },
            target: (self.target().kind(), self.target().name().to_owned()),
            state: record.state,
            started_at: self.timer.started_at,
            started: self.timer.started,
            elapsed: record.ended_after.unwrap_or_else(|| self.timer.started.elapsed()),
            result: record.result_uri.clone(),
            rows: self.usage.rows(),
            bytes: self.usage.bytes(),
            arguments,
            message: record.message.clone(),
        }
    }

    fn redacted_arguments(&self) -> Option<String> {
        let arguments = Some(self.arguments()).filter(|arguments| !arguments.is_empty())?;
        let redaction = self.terms.snapshot.argument_redaction();
        Some(Value::Object(redaction.redact(arguments, ARGUMENT_BYTES_MAX)).to_string())
    }

    /// Sets the message of the error with which the job fails.
    pub(crate) fn set_failure(&self, error: &Error) {
        self.record.lock().message = Some(shorten(error.message(), MESSAGE_CHARACTERS_MAX));
    }

    /// Sets the URI of the stored result that contains the rows of the job. Only the first call has an effect.
    pub fn set_result_uri(&self, result: String) {
        self.record.lock().result_uri.get_or_insert(result);
    }

    /// States that the answer is an earlier one, made `age` ago. Only the first call has an effect.
    pub fn set_answer_age(&self, age: Duration) {
        self.record.lock().answer_age.get_or_insert(age);
    }

    /// The age of the answer; `None` unless it is an earlier one. Known before the answer begins.
    pub fn answer_age(&self) -> Option<Duration> {
        self.record.lock().answer_age
    }

    /// Records that the job queries a database with the rights of its caller. A caller that loses the right to the
    /// database loses access to the results of the job.
    pub fn record_database(&self, database: &str) {
        for job in self.ancestors() {
            job.record.lock().databases.insert(database.to_owned());
        }
    }

    /// The databases that the job has queried with the rights of its caller.
    pub fn databases(&self) -> BTreeSet<String> {
        self.record.lock().databases.clone()
    }

    /// Records a statement for the audit line, if there is an auditor. If a call has many statements, only the first ones
    /// are recorded.
    pub fn record_statement(&self, statement: impl FnOnce() -> AuditedStatement) {
        let is_full = |record: &JobRecord| record.statements.len() >= AUDITED_STATEMENTS_MAX;
        if self.events.auditor().is_none() || is_full(&self.record.lock()) {
            return;
        }
        // Not under the lock: the fingerprint of a long statement takes a moment.
        let mut statement = statement();
        statement.tables.truncate(AUDITED_TABLES_MAX);
        let mut record = self.record.lock();
        if !is_full(&record) {
            record.statements.push(statement);
        }
    }

    /// Takes the recorded statements.
    pub fn take_statements(&self) -> Vec<AuditedStatement> {
        std::mem::take(&mut self.record.lock().statements)
    }
}
