//! What an owner reads about the tables.

use tidegate_query::IngestStatus;

use super::shared::FolderShared;
use super::table_state::TableState;

impl FolderShared {
    /// The tables with columns, by name.
    pub(crate) fn status(&self) -> Vec<IngestStatus> {
        let state = self.state.lock();
        let of_database = state.keys.loss();
        let existing = state.tables.values().filter(|table| table.exists());
        let mut tables: Vec<IngestStatus> = existing.map(|table| table_status(table, of_database)).collect();
        tables.sort_by(|left, right| left.table.cmp(&right.table));
        tables
    }
}

/// `of_database`: what is wrong with the whole database.
fn table_status(table: &TableState, of_database: Option<&str>) -> IngestStatus {
    let waiting = || table.flushing.as_deref().into_iter().chain(table.pending.as_ref());
    let snapshot = table.snapshot.as_ref();
    IngestStatus {
        table: table.name.clone(),
        waiting_rows: waiting().map(|rows| rows.rows).sum(),
        waiting_bytes: waiting().map(|rows| rows.bytes).sum(),
        oldest_age: waiting().map(|rows| rows.since.elapsed()).max(),
        files: snapshot.map_or(0, |snapshot| snapshot.files.len() as u64),
        rows: snapshot.map_or(0, |snapshot| snapshot.rows()),
        bytes: snapshot.map_or(0, |snapshot| snapshot.bytes()),
        sequence: table.last_sequence(),
        flushed_sequence: table.flushed_sequence,
        flushes: table.flushes,
        compactions: table.compactions,
        last_error: table.problem().or(of_database).map(str::to_owned),
    }
}
