//! The statements of a job, for its audit line.

use tidegate_core::AuditedStatement;

use super::Job;

const AUDITED_STATEMENTS_MAX: usize = 32;
const AUDITED_TABLES_MAX: usize = 64;

impl Job {
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
}
