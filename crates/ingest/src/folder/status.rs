//! What an owner reads about the tables.

use std::time::Duration;

use super::shared::FolderShared;
use super::table_state::TableState;

/// A table in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestTableStatus {
    /// The name.
    pub table: String,
    /// Rows that the Delta table does not have yet.
    pub waiting_rows: u64,
    /// Bytes of these rows in memory.
    pub waiting_bytes: u64,
    /// The age of the oldest of these rows.
    pub oldest_age: Option<Duration>,
    /// Data files of the Delta table.
    pub files: u64,
    /// Rows of the Delta table.
    pub rows: u64,
    /// Bytes of the data files.
    pub bytes: u64,
    /// The version of the Delta table. `None` if it does not exist yet.
    pub delta_version: Option<u64>,
    /// The sequence number of the last write with rows of the table.
    pub sequence: u64,
    /// The sequence number of the last write whose rows the Delta table has, with all before it.
    pub flushed_sequence: u64,
    /// Moves of rows to the Delta table since the folder was opened.
    pub flushes: u64,
    /// Groups of files that were joined since the folder was opened.
    pub compactions: u64,
    /// Why the table is closed; or the last error of the background task, until the step succeeds; or what is wrong
    /// with the keys of the database.
    pub last_error: Option<String>,
}

impl IngestTableStatus {
    /// `of_database`: what is wrong with the whole database.
    fn new(table: &TableState, of_database: Option<&str>) -> Self {
        let waiting = || table.flushing.as_deref().into_iter().chain(table.pending.as_ref());
        let snapshot = table.snapshot.as_ref();
        Self {
            table: table.name.clone(),
            waiting_rows: waiting().map(|rows| rows.rows).sum(),
            waiting_bytes: waiting().map(|rows| rows.bytes).sum(),
            oldest_age: waiting().map(|rows| rows.since.elapsed()).max(),
            files: snapshot.map_or(0, |snapshot| snapshot.files.len() as u64),
            rows: snapshot.map_or(0, |snapshot| snapshot.rows()),
            bytes: snapshot.map_or(0, |snapshot| snapshot.bytes()),
            delta_version: snapshot.map(|snapshot| snapshot.version),
            sequence: table.last_sequence(),
            flushed_sequence: table.flushed_sequence,
            flushes: table.flushes,
            compactions: table.compactions,
            last_error: table.problem().or(of_database).map(str::to_owned),
        }
    }
}

impl FolderShared {
    pub(crate) fn status(&self) -> Vec<IngestTableStatus> {
        let state = self.state.lock();
        let of_database = state.keys.loss();
        let tables = state.tables.values().filter(|table| table.exists());
        tables.map(|table| IngestTableStatus::new(table, of_database)).collect()
    }
}
