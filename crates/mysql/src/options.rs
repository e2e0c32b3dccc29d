//! The options of a MySQL database.

use std::time::Duration;

use tidegate_query::{ClaimSettings, RowPolicies, RunAs};

/// The options of a [`MySqlDatabase`](crate::MySqlDatabase).
#[derive(Debug, Clone)]
pub struct MySqlOptions {
    /// The role that calls run as.
    pub run_as: RunAs,
    /// The variables with the identity of the caller.
    pub claims: ClaimSettings,
    /// The databases of the server whose tables are listed. By default that of the connection string; without one, all that
    /// the account may use.
    pub schemas: Option<Vec<String>>,
    /// The tables that take rows. The account may write to them.
    pub ingest_tables: Vec<String>,
    /// Whether an account with privileges beyond reading, and beyond what `ingest_tables` need, is an error instead of a
    /// warning.
    pub strict: bool,
    /// The maximum size of one message of the server, such as a row, in bytes.
    pub message_bytes_max: usize,
    /// The maximum number of connections.
    pub connections_max: usize,
    /// How long a call waits for a connection.
    pub acquire_timeout: Duration,
    /// How long a statement waits for a lock.
    pub lock_timeout: Duration,
    /// How long the server lets a statement run, with the time in which its rows are read. `None` is the limit of the
    /// server.
    pub statement_timeout: Option<Duration>,
    /// The maximum age of a cached answer; `None` disables the cache.
    pub cached_answer_max_age: Option<Duration>,
    /// The row policies; none by default.
    pub row_policies: RowPolicies,
}

impl Default for MySqlOptions {
    fn default() -> Self {
        Self {
            run_as: RunAs::default(),
            claims: ClaimSettings::default(),
            schemas: None,
            ingest_tables: Vec::new(),
            strict: false,
            message_bytes_max: 64 << 20,
            connections_max: 10,
            acquire_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(5),
            statement_timeout: None,
            cached_answer_max_age: None,
            row_policies: RowPolicies::default(),
        }
    }
}
