//! Who writes down what is done here: asked for room before a call begins, told of the call when it has ended.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::error::Error;
use crate::event::Subscriber;
use crate::job::Job;

/// Statements that are remembered of one call.
const AUDITED_STATEMENTS_MAX: usize = 32;
/// Tables that are remembered of one statement.
const AUDITED_TABLES_MAX: usize = 64;

/// Writes down every call.
///
/// What is refused, a call at the door or a message before it, an auditor hears as a [`Subscriber`]; nothing waits for
/// that. A call waits until there is room for its line, so that none runs of which nothing can be said.
#[async_trait]
pub trait Auditor: Subscriber {
    /// Waits for room for the line of a call that is about to begin.
    ///
    /// # Errors
    /// `Unavailable` when there is none in time; the call does not run then.
    async fn reserve(&self) -> Result<Box<dyn AuditReservation>, Error>;

    /// Hears of a call that ended with `outcome` before it had room for its line. Must not block.
    fn record_unreserved(&self, job: &Job, outcome: &'static str);

    /// What it has done so far.
    fn stats(&self) -> AuditStats;
}

/// Room for the line of one call; dropping it gives it back.
pub trait AuditReservation: Send {
    /// Writes that `job` ended with `outcome`. Must not block.
    fn write(self: Box<Self>, job: &Job, outcome: &'static str);
}

/// What an auditor has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditStats {
    /// Lines that were written.
    pub written: u64,
    /// Lines that were dropped.
    pub dropped: u64,
    /// Lines that wait to be written.
    pub waiting: u64,
    /// Whether calls wait and are refused, since nothing can be written.
    pub is_blocked: bool,
}

/// A statement that a call asked of a database.
pub struct AuditedStatement {
    /// Which database.
    pub database: String,
    /// The tables that it reads, as far as they are known.
    pub tables: Vec<String>,
    /// Gives what stays the same when only the values in the statement change. Asked on the auditor's thread, as finding it
    /// takes longer than a call has for this.
    pub fingerprint: Box<dyn FnOnce() -> String + Send>,
}

impl fmt::Debug for AuditedStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { database, tables, .. } = self;
        f.debug_struct("AuditedStatement").field("database", database).field("tables", tables).finish_non_exhaustive()
    }
}

/// What a job remembers for its line.
#[derive(Debug, Default)]
pub(crate) struct AuditTrail {
    is_enabled: AtomicBool,
    statements: Mutex<Vec<AuditedStatement>>,
}

impl Job {
    pub(crate) fn enable_audit_trail(&self) {
        self.audit_trail.is_enabled.store(true, Ordering::Relaxed);
    }

    /// Whether somebody writes down what this call does.
    pub fn is_audited(&self) -> bool {
        self.audit_trail.is_enabled.load(Ordering::Relaxed)
    }

    /// Remembers a statement for the line of this call. Of a call with many statements the first are remembered.
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

    /// Takes the statements that were remembered.
    pub fn take_statements(&self) -> Vec<AuditedStatement> {
        std::mem::take(&mut *self.audit_trail.statements.lock())
    }
}
