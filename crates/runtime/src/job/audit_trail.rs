//! The statements of a job, for its audit line.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::Job;

/// The maximum number of statements recorded per call.
const AUDITED_STATEMENTS_MAX: usize = 32;
/// The maximum number of tables recorded per statement.
const AUDITED_TABLES_MAX: usize = 64;

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
