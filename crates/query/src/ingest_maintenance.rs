//! The interface of databases that keep the rows they take in a log first: their state, and the steps of their upkeep.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use tidegate_core::Error;

use crate::counted_target::WriteTotals;

/// A table that takes rows, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestStatus {
    /// The name.
    pub table: String,
    /// Rows that are in the log only.
    pub waiting_rows: u64,
    /// Bytes of these rows in memory.
    pub waiting_bytes: u64,
    /// The age of the oldest of these rows.
    pub oldest_age: Option<Duration>,
    /// Data files of the table.
    pub files: u64,
    /// Rows in these files.
    pub rows: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// The sequence number of the last write with rows of the table, as in its receipt; 0 if the log has had none.
    pub sequence: u64,
    /// The sequence number of the last write whose rows are in files. They then have all rows of writes before it.
    pub flushed_sequence: u64,
    /// Moves of rows from the log to files since the database was opened.
    pub flushes: u64,
    /// Groups of files that were joined since the database was opened.
    pub compactions: u64,
    /// Why the table is closed, or the last error of a step until it succeeds, or what is wrong with the database.
    pub last_error: Option<String>,
}

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

/// What was found when the files of a table were compared with what was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestVerification {
    /// Rows that were read from files.
    pub file_rows: u64,
    /// Files that were read.
    pub files: u64,
    /// Rows that are in the log only.
    pub log_rows: u64,
    /// What is wrong, file by file. Nothing if everything is as it was written.
    pub problems: Vec<String>,
}

/// The upkeep of a database whose tables take rows. An operator uses it.
#[async_trait]
pub trait IngestMaintenance: Send + Sync + Debug + 'static {
    /// The name of the database.
    fn database(&self) -> &str;

    /// The tables with columns, also those of rejected rows, by name.
    fn status(&self) -> Vec<IngestStatus>;

    /// What happened since the database was opened.
    fn totals(&self) -> IngestTotals;

    /// The bytes of its log.
    fn log_bytes(&self) -> u64;

    /// Moves the rows of `table` that are in the log only to files.
    ///
    /// # Errors
    /// `NotFound`; `Unavailable` when the storage fails. The rows stay in the log, and visible.
    async fn flush(&self, table: &str) -> Result<(), Error>;

    /// Joins small files of `table`, and returns how many.
    ///
    /// # Errors
    /// As [`IngestMaintenance::flush`]. The files stay as they are.
    async fn compact(&self, table: &str) -> Result<u64, Error>;

    /// Reads all files of `table`, and compares their checksums and rows with what was written.
    ///
    /// # Errors
    /// As [`IngestMaintenance::flush`].
    async fn verify(&self, table: &str) -> Result<IngestVerification, Error>;
}
