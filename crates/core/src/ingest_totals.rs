//! What databases with tables that take rows count.

/// What happened to a database since it was opened. All values only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IngestTotals {
    /// What was written.
    pub written: WriteTotals,
    /// Moves of rows from the log to files.
    pub flushes: u64,
    /// Moves that failed.
    pub failed_flushes: u64,
    /// Groups of files that were joined.
    pub compactions: u64,
    /// Files that were joined with others.
    pub compacted_files: u64,
}

/// What was written to a database since it was opened. All values only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteTotals {
    /// Writes that were stored.
    pub writes: u64,
    /// Writes that were answered from their key. Those to a network count as stored.
    pub repeated_writes: u64,
    /// Writes that failed: the storage refused them, or did not answer.
    pub failed_writes: u64,
    /// Rows that were stored in the tables that they were sent to.
    pub rows: u64,
    /// Rows that were rejected: stored in tables of rejected rows, or nowhere.
    pub rejected_rows: u64,
    /// Bytes that were stored: in a folder, those in the log or in files; elsewhere, those of the rows in memory.
    pub bytes: u64,
}
