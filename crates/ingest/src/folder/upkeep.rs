//! A folder as an operator keeps it up.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use tidegate_core::Error;
use tidegate_query::{IngestMaintenance, IngestStatus, IngestTotals, IngestVerification, WriteTotals};

use super::IngestError;
use super::closed_tables::TableClosure;
use super::folder_handle::IngestFolder;
use super::names::table_key;

#[async_trait]
impl IngestMaintenance for IngestFolder {
    fn database(&self) -> &str {
        &self.shared.name
    }

    fn status(&self) -> Vec<IngestStatus> {
        self.shared.status()
    }

    fn totals(&self) -> IngestTotals {
        let counters = self.counters();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let kept_rejects = read(&counters.rejected_rows);
        IngestTotals {
            written: WriteTotals {
                writes: read(&counters.writes),
                repeated_writes: read(&counters.repeated_writes),
                failed_writes: read(&counters.failed_writes),
                // The rows of a write are counted before those of them that were rejected.
                rows: read(&counters.rows).saturating_sub(kept_rejects),
                rejected_rows: kept_rejects + read(&counters.refused_rows),
                bytes: read(&counters.bytes),
            },
            flushes: read(&counters.flushes),
            failed_flushes: read(&counters.failed_flushes),
            compactions: read(&counters.compactions),
            compacted_files: read(&counters.compacted_files),
        }
    }

    fn log_bytes(&self) -> u64 {
        Self::log_bytes(self)
    }

    async fn flush(&self, table: &str) -> Result<(), Error> {
        self.require_table(table)?;
        Self::flush(self, table).await.map_err(|error| error.for_caller(&self.shared.name))
    }

    async fn compact(&self, table: &str) -> Result<u64, Error> {
        if let Some(closure) = self.require_table(table)? {
            return Err(closure.to_error(table).for_caller(&self.shared.name));
        }
        Self::compact(self, table).await.map_err(|error| error.for_caller(&self.shared.name))
    }

    async fn verify(&self, table: &str) -> Result<IngestVerification, Error> {
        if let Some(closure) = self.require_table(table)? {
            return Ok(IngestVerification { problems: vec![closure.reason], ..IngestVerification::default() });
        }
        let found = Self::verify(self, table).await.map_err(|error| error.for_caller(&self.shared.name))?;
        let problems = found.problems.into_iter().map(|(path, problem)| format!("{}: {problem}", path.display()));
        Ok(IngestVerification {
            file_rows: found.file_rows,
            files: found.files,
            log_rows: found.log_rows,
            problems: problems.collect(),
        })
    }
}

impl IngestFolder {
    /// Fails if the table does not exist, and returns why it is closed, if it is.
    fn require_table(&self, table: &str) -> Result<Option<TableClosure>, Error> {
        let state = self.shared.state.lock();
        let known = state.tables.get(&table_key(table)).filter(|known| known.name == table && known.exists());
        match known {
            Some(known) => Ok(known.closure.clone()),
            None => Err(IngestError::UnknownTable(table.to_owned()).for_caller(&self.shared.name)),
        }
    }
}
