//! What others learn of a call: its state, its statements, and where its answer comes from.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_core::{AuditedStatement, Caller};

use super::Job;
use super::missing_nodes::AnswerCompleteness;
use super::status::{JobState, JobStatus};

const AUDITED_STATEMENTS_MAX: usize = 32;
const AUDITED_TABLES_MAX: usize = 64;

/// Locked for moments only: nothing that is called meanwhile uses the job.
#[derive(Debug, Default)]
pub(crate) struct JobRecord {
    state: JobState,
    /// The run time of a job that has ended.
    ended_after: Option<Duration>,
    result_uri: Option<String>,
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
        }
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
