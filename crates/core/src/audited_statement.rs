//! A statement as the audit log records it.

use std::fmt;

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
