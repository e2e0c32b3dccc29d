//! The bounds of a database of SQLite files.

use std::time::Duration;

use tidegate_query::RowPolicies;

/// The bounds of a [`SqliteDatabase`](crate::SqliteDatabase).
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// Connections at once, each with a thread of its own. A query has one from its start to its last row; who comes
    /// when none is free waits.
    pub connections_max: usize,
    /// How long a query waits for a file that another program has locked.
    pub busy_timeout: Duration,
    /// How long a query waits for a reader that takes no rows; then it ends, so that its snapshot does not keep a
    /// writer's log from being emptied.
    pub stall_timeout: Duration,
    /// How long a connection that nobody uses stays open.
    pub idle_timeout: Duration,
    /// Rows of a batch at most. The first batches are smaller, so that the first rows leave early.
    pub batch_rows: usize,
    /// Bytes of values after which a batch leaves, however few its rows.
    pub batch_bytes: usize,
    /// Bytes that one text or blob may have, and one row of a table. Longer ones are an error.
    pub value_bytes_max: usize,
    /// Bytes of pages that one connection keeps, and of rows that it sorts before they go to a temporary file.
    pub cache_bytes: usize,
    /// Bytes that SQLite may hold for all connections of the process. SQLite has but one such bound: of several
    /// databases the smallest holds.
    pub memory_bytes: u64,
    /// How old an answer may be that is given again; none is ever, unless said.
    pub cached_answer_max_age: Option<Duration>,
    /// Which rows and columns of the tables are shown to whom.
    pub row_policies: RowPolicies,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            connections_max: 4,
            busy_timeout: Duration::from_secs(5),
            stall_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            batch_rows: 8_192,
            batch_bytes: 1 << 20,
            value_bytes_max: 16 << 20,
            cache_bytes: 8 << 20,
            cached_answer_max_age: None,
            memory_bytes: 512 << 20,
            row_policies: RowPolicies::default(),
        }
    }
}
