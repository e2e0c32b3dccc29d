//! The limits of a database of SQLite files.

use std::time::Duration;

use tidegate_query::RowPolicies;

/// The limits of a [`SqliteDatabase`](crate::SqliteDatabase).
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The maximum number of connections, each with its own thread. A query holds a connection from its start to its
    /// last row. Further queries wait for a free connection.
    pub connections_max: usize,
    /// How long a query waits for a file that another program has locked.
    pub busy_timeout: Duration,
    /// How long a query waits for a client that reads no rows. Then the query fails, so that its snapshot does not
    /// block the checkpoints of a writer.
    pub stall_timeout: Duration,
    /// How long an unused connection stays open.
    pub idle_timeout: Duration,
    /// The maximum number of rows of a batch. The first batches are smaller, so that the first rows arrive early.
    pub batch_rows: usize,
    /// The size of values, in bytes, at which a batch is complete, even with fewer rows.
    pub batch_bytes: usize,
    /// The maximum size of one text or blob, and of one row of a table, in bytes. Larger ones are an error.
    pub value_bytes_max: usize,
    /// The page cache of one connection, in bytes, and the size of a sort that stays in memory.
    pub cache_bytes: usize,
    /// The memory that SQLite may use for all connections of the process, in bytes. SQLite has only one such limit:
    /// with several databases, the smallest applies.
    pub memory_bytes: u64,
    /// The maximum age of a cached result; `None` disables the cache.
    pub cached_answer_max_age: Option<Duration>,
    /// Which rows and columns are visible to which callers.
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
