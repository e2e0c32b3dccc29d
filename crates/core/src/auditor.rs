//! Auditing of calls: an auditor reserves a line before a call starts and writes it when the call has ended.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::error::Error;
use crate::event::Subscriber;
use crate::job::Job;

/// The maximum number of statements recorded per call.
const AUDITED_STATEMENTS_MAX: usize = 32;
/// The maximum number of tables recorded per statement.
const AUDITED_TABLES_MAX: usize = 64;

/// Writes an audit line for every call.
///
/// An auditor learns of refused calls and messages as a [`Subscriber`], and nothing waits for these lines. A call waits
/// until its line is reserved, so that no call runs without a record.
#[async_trait]
pub trait Auditor: Subscriber {
    /// Waits until the line of a call that is about to start is reserved.
    ///
    /// # Errors
    /// `Unavailable` if no line can be reserved in time. The call does not run then.
    async fn reserve(&self) -> Result<Box<dyn AuditReservation>, Error>;

    /// Records a call that ended with `outcome` before its line was reserved. Must not block.
    fn record_unreserved(&self, job: &Job, outcome: &'static str);

    /// The counters of this auditor.
    fn stats(&self) -> AuditStats;
}

/// The reserved line of one call. Dropping it releases the reservation.
pub trait AuditReservation: Send {
    /// Records that `job` ended with `outcome`. Must not block.
    fn write(self: Box<Self>, job: &Job, outcome: &'static str);
}

/// The counters of an auditor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditStats {
    /// Lines written.
    pub written: u64,
    /// Lines dropped.
    pub dropped: u64,
    /// Lines that wait to be written.
    pub waiting: u64,
    /// Whether nothing can be written, so that calls wait and are refused.
    pub is_blocked: bool,
}

/// A statement that a call sent to a database.
pub struct AuditedStatement {
    /// The database.
    pub database: String,
    /// The tables that it reads, as far as they are known.
    pub tables: Vec<String>,
    /// Computes a fingerprint that does not depend on the values in the statement. It runs on the auditor's thread,
    /// because it takes longer than a call can wait.
    pub fingerprint: Box<dyn FnOnce() -> String + Send>,
}

impl fmt::Debug for AuditedStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { database, tables, .. } = self;
        f.debug_struct("AuditedStatement").field("database", database).field("tables", tables).finish_non_exhaustive()
    }
}

/// What a job records for its audit line.
#[derive(Debug, Default)]
pub(crate) struct AuditTrail {
    is_enabled: AtomicBool,
    statements: Mutex<Vec<AuditedStatement>>,
}

impl Job {
    pub(crate) fn enable_audit_trail(&self) {
        self.audit_trail.is_enabled.store(true, Ordering::Relaxed);
    }

    /// Whether an auditor records this call.
    pub fn is_audited(&self) -> bool {
        self.audit_trail.is_enabled.load(Ordering::Relaxed)
    }

    /// Records a statement for the audit line. If a call has many statements, only the first ones are recorded.
    pub fn record_statement(&self, statement: impl FnOnce() -> AuditedStatement) {
        if !self.is_audited() {
            return;
        }
        let mut statements = self.audit_trail.statements.lock();
        if statements.len() < AUDITED_STATEMENTS_MAX {
            let mut statement = statement();
            statement.tables.truncate(AUDITED_TABLES_MAX);
            statements.push(statement);
        }
    }

    /// Takes the recorded statements.
    pub fn take_statements(&self) -> Vec<AuditedStatement> {
        std::mem::take(&mut *self.audit_trail.statements.lock())
    }
}
