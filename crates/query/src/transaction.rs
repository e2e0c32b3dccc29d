//! How a statement is run by a database that has transactions.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// What a transaction sees of others that run beside it.
///
/// [PostgreSQL, Transaction Isolation](https://www.postgresql.org/docs/current/transaction-iso.html)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Isolation {
    /// Each statement sees what was committed when it began.
    #[default]
    ReadCommitted,
    /// Everything sees what was committed when the transaction began.
    RepeatableRead,
    /// As if the transactions ran one after the other.
    Serializable,
}

/// How a statement is run. The default only reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// What it sees of others.
    pub isolation: Isolation,
    /// Whether it may write. Only a declared tool's may.
    pub writes: bool,
    /// Whether it waits for a moment in which it cannot fail for others; for serializable ones that only read.
    pub deferrable: bool,
    /// How often it is tried again after a serialization failure or a deadlock, as long as no row was answered.
    pub retries_max: u32,
    /// How long the first row may take; none is as long as the whole call.
    pub first_row_timeout: Option<Duration>,
    /// How long a reader may leave rows waiting before the connection is taken from it.
    pub stall_timeout: Duration,
}

impl Default for Transaction {
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            writes: false,
            deferrable: false,
            retries_max: 3,
            first_row_timeout: None,
            stall_timeout: Duration::from_secs(30),
        }
    }
}

impl Transaction {
    /// The default one.
    pub fn read_only() -> Arc<Self> {
        static READ_ONLY: LazyLock<Arc<Transaction>> = LazyLock::new(Arc::default);
        READ_ONLY.clone()
    }
}
