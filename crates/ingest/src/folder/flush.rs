//! Moves rows from the log to the Delta tables.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::IngestError;
use super::closed_tables::without_root;
use super::pending::PendingRows;
use super::shared::{FolderShared, IngestCounters};
use super::storage::{FlushJob, TableStorage};
use crate::delta::PartitionBy;

/// A move of the rows of one table.
struct FlushStep {
    storage: Arc<TableStorage>,
    incarnation: u64,
    partition_by: Vec<PartitionBy>,
}

impl FolderShared {
    /// Moves the rows of a table that are in the log to its Delta table.
    ///
    /// # Errors
    /// `UnknownTable`, `TableClosed`, `Delta`. The rows remain in the log, and visible.
    pub(crate) async fn flush_table(&self, key: &str) -> Result<(), IngestError> {
        let step = self.flush_step(key)?;
        let flushing = step.storage.flush.lock().await;
        // Rows of a failed move come first, then those since.
        while let Some((rows, is_retry)) = self.start_flush(key, step.incarnation) {
            let job = FlushJob {
                rows: rows.clone(),
                application: self.application.clone(),
                partition_by: step.partition_by.clone(),
                writer: self.writer_options(&self.flush_stop),
            };
            let result = step.storage.commit_rows(job).await;
            if let Some(damage) = result.as_ref().err().and_then(IngestError::damage) {
                let closed = self.close_unwritable(key, step.incarnation, damage).await;
                drop((rows, flushing));
                self.release_log().await;
                return Err(closed);
            }
            self.finish_flush(key, &step, &rows, result)?;
            if !is_retry {
                break;
            }
        }
        drop(flushing);
        self.release_log().await;
        Ok(())
    }

    fn flush_step(&self, key: &str) -> Result<FlushStep, IngestError> {
        let state = self.state.lock();
        let table = state.tables.get(key).filter(|table| table.dropped_at.is_none());
        let table = table.ok_or_else(|| IngestError::UnknownTable(key.to_owned()))?;
        if let Some(closure) = table.closure.as_ref().filter(|closure| !closure.moves_rows()) {
            return Err(closure.to_error(&table.name));
        }
        Ok(FlushStep {
            storage: table.storage.clone(),
            incarnation: table.incarnation,
            partition_by: table.declaration.partition_by.clone(),
        })
    }

    fn start_flush(&self, key: &str, incarnation: u64) -> Option<(Arc<PendingRows>, bool)> {
        let mut state = self.state.lock();
        let table = state.tables.get_mut(key).filter(|table| table.incarnation == incarnation)?;
        let is_retry = table.flushing.is_some();
        table.start_flush().map(|rows| (rows, is_retry))
    }

    fn finish_flush(
        &self,
        key: &str,
        step: &FlushStep,
        rows: &PendingRows,
        result: Result<Arc<crate::delta::DeltaSnapshot>, IngestError>,
    ) -> Result<(), IngestError> {
        let mut state = self.state.lock();
        match result {
            Ok(snapshot) => {
                if let Some(table) = state.current_table(key, step.incarnation) {
                    table.flushing = None;
                    table.flushed_sequence = rows.last_sequence;
                    // A step that added columns may have noted a newer version, which has these rows.
                    if table.snapshot.as_ref().is_none_or(|known| known.version < snapshot.version) {
                        table.set_snapshot(snapshot);
                    }
                    table.release_view();
                    table.flushes += 1;
                    table.last_error = None;
                }
                IngestCounters::add(&self.counters.flushes, 1);
                tracing::debug!(database = %self.name, table = key, rows = rows.rows, "rows are in the Delta table");
                Ok(())
            }
            // Nothing is wrong. The rows are moved after the next start.
            Err(error) if error.is_stop() => Err(error),
            Err(error) => {
                tracing::error!(database = %self.name, table = key, %error, "rows remain in the log");
                if let Some(table) = state.current_table(key, step.incarnation) {
                    table.last_error = Some(without_root(&self.path, &error.to_string()));
                }
                drop(state);
                IngestCounters::add(&self.counters.failed_flushes, 1);
                self.flush_failures.send_modify(|failures| *failures += 1);
                Err(error)
            }
        }
    }

    /// Moves the rows of all tables.
    ///
    /// # Errors
    /// The first error, after all tables were tried.
    pub(crate) async fn flush_all(&self) -> Result<(), IngestError> {
        let keys = self.keys_of_tables(|_| true);
        self.flush_tables(keys).await
    }

    /// Moves the rows of tables that have many or old ones, or of all tables if a write waits for memory.
    pub(crate) async fn flush_due_tables(&self) -> Result<(), IngestError> {
        let is_memory_short = self.memory_waiters.load(Ordering::SeqCst) > 0;
        let keys = self.keys_of_tables(|table| is_memory_short || table.is_flush_due(&self.options));
        self.flush_tables(keys).await
    }

    async fn flush_tables(&self, keys: Vec<String>) -> Result<(), IngestError> {
        let mut result = Ok(());
        for key in keys {
            if self.flush_stop.is_stopped() {
                break;
            }
            match self.flush_table(&key).await {
                // It was dropped meanwhile.
                Ok(()) | Err(IngestError::UnknownTable(_)) => {}
                Err(error) if error.is_stop() => break,
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }

    /// The tables with rows that can be moved.
    fn keys_of_tables(&self, condition: impl Fn(&super::table_state::TableState) -> bool) -> Vec<String> {
        let state = self.state.lock();
        let tables = state.tables.iter().filter(|(_, table)| table.moves_rows());
        let with_rows = tables.filter(|(_, table)| table.pending.is_some() || table.flushing.is_some());
        with_rows.filter(|(_, table)| condition(table)).map(|(key, _)| key.clone()).collect()
    }

    /// The number of rows that only the log has.
    pub(crate) fn waiting_rows(&self) -> u64 {
        let state = self.state.lock();
        state.tables.values().flat_map(super::table_state::TableState::logged_rows).map(|logged| logged.rows).sum()
    }

    /// When the oldest row of any table is old enough to be moved.
    pub(crate) fn next_flush(&self) -> Option<Instant> {
        let state = self.state.lock();
        let tables = state.tables.values().filter(|table| table.moves_rows());
        let oldest = tables.filter_map(|table| table.pending.as_ref()).map(|rows| rows.since).min();
        oldest.map(|since| Instant::from_std(since) + self.options.flush_age.max(Duration::from_millis(1)))
    }
}
