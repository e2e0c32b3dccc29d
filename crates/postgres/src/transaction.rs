//! The SQL that begins and ends a transaction, and the delay before a conflicting one is retried.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_sql::{Isolation, Transaction};

/// Begins `transaction`, in one message.
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

/// Ends a transaction that only read, so that not even a setting stays.
pub(crate) const ROLLBACK: &str = "ROLLBACK";

/// Ends a transaction that ran what a caller wrote. A lock of the session is all that a rollback would leave.
pub(crate) const ROLLBACK_AND_UNLOCK: &str = "ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()";

/// The first delay before a retry; it doubles, plus a random part of the same size.
const FIRST_BACKOFF: Duration = Duration::from_millis(10);

/// The delay before the retry number `tries` of a transaction that conflicted with another one.
pub fn backoff_delay(tries: u32) -> Duration {
    let least = FIRST_BACKOFF * 2_u32.saturating_pow(tries.saturating_sub(1).min(6));
    // The clock's last digits are random enough to separate two callers.
    let random = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    least + least.mul_f64(f64::from(random % 1_000) / 1_000.0)
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
