//! The transaction of a statement, for databases that have transactions.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The isolation level of a transaction.
///
/// [PostgreSQL, Transaction Isolation](https://www.postgresql.org/docs/current/transaction-iso.html)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Isolation {
    /// Each statement sees what was committed when it began.
    #[default]
    ReadCommitted,
    /// Everything sees what was committed when the transaction began.
    RepeatableRead,
    /// The transactions behave as if they ran one after the other.
    Serializable,
}

/// Whether a transaction that writes is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommitRule {
    /// It is committed.
    #[default]
    Always,
    /// It is committed if its statement changed this number of rows, else it is rolled back.
    IfRowsChanged(u64),
    /// It is rolled back. The answer of its statement is the number of changed rows.
    Never,
}

impl CommitRule {
    /// The number of changed rows that a commit requires.
    pub fn required_rows(self) -> Option<u64> {
        match self {
            Self::IfRowsChanged(rows) => Some(rows),
            Self::Always | Self::Never => None,
        }
    }
}

/// The transaction options of a statement. The default is read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The isolation level.
    pub isolation: Isolation,
    /// Whether the transaction may write. Only declared tools may.
    pub writes: bool,
    /// Whether it is committed, if it may write.
    pub commit: CommitRule,
    /// Whether it waits until it cannot fail because of other transactions; for read-only serializable transactions.
    pub deferrable: bool,
    /// How often it is retried after a serialization failure or a deadlock, as long as no row was returned.
    pub retries_max: u32,
    /// The timeout of the first row; `None` means the timeout of the call.
    pub first_row_timeout: Option<Duration>,
    /// How long a reader may leave rows unread before it loses the connection.
    pub stall_timeout: Duration,
}

impl Default for Transaction {
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            writes: false,
            commit: CommitRule::Always,
            deferrable: false,
            retries_max: 3,
            first_row_timeout: None,
            stall_timeout: Duration::from_secs(30),
        }
    }
}

impl Transaction {
    /// The default, read-only transaction.
    pub fn read_only() -> Arc<Self> {
        static READ_ONLY: LazyLock<Arc<Transaction>> = LazyLock::new(Arc::default);
        READ_ONLY.clone()
    }
}
