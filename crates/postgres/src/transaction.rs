//! The SQL that begins and ends a transaction, and the delays before a conflicting one is retried.

use std::time::Duration;

use tidegate_core::Backoff;
use tidegate_sql::{Isolation, Transaction};

pub(crate) fn begin_sql(transaction: &Transaction) -> String {
    let isolation = match transaction.isolation {
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    };
    let access = if transaction.writes { "READ WRITE" } else { "READ ONLY" };
    let deferrable = if transaction.deferrable { ", DEFERRABLE" } else { "" };
    format!("BEGIN ISOLATION LEVEL {isolation}, {access}{deferrable}")
}

/// Ends a transaction that wrote.
pub(crate) const COMMIT: &str = "COMMIT";
/// Ends a transaction that only read. A rollback resets its settings too.
pub(crate) const ROLLBACK: &str = "ROLLBACK";
/// Ends a transaction with a caller's SQL. Only locks of the session survive a rollback.
pub(crate) const ROLLBACK_AND_UNLOCK: &str = "ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()";

/// The delays before the retries of a transaction that conflicted with another one.
pub fn retry_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(20), Duration::from_millis(1_280))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begin_sql_states_isolation_and_access() {
        let begin = |transaction: Transaction| super::begin_sql(&transaction);
        assert_eq!(begin(Transaction::default()), "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY");
        let strict = Transaction { isolation: Isolation::Serializable, deferrable: true, ..Transaction::default() };
        assert_eq!(begin(strict), "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE");
        let writing = Transaction { isolation: Isolation::RepeatableRead, writes: true, ..Transaction::default() };
        assert_eq!(begin(writing), "BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE");
    }
}
