//! The metrics of databases that take rows. The databases themselves count, so that nothing is counted twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use metrics::{counter, gauge};
use parking_lot::Mutex;

/// A database that takes rows, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestNumbers {
    /// The name of the database.
    pub database: String,
    /// Writes that were stored, since the database was opened.
    pub writes: u64,
    /// Writes that were answered from their key.
    pub repeated_writes: u64,
    /// Writes that failed at their end.
    pub failed_writes: u64,
    /// Rows that were stored.
    pub rows: u64,
    /// Rows that were rejected and kept.
    pub rejected_rows: u64,
    /// Bytes that were stored.
    pub bytes: u64,
    /// Moves of rows from the log to files.
    pub flushes: u64,
    /// Moves that failed.
    pub failed_flushes: u64,
    /// Files that were joined with others.
    pub compacted_files: u64,
    /// Rows that are in the log only.
    pub waiting_rows: u64,
    /// Bytes of these rows in memory.
    pub waiting_bytes: u64,
    /// The age of the oldest of these rows; zero if there are none.
    pub oldest_age: Duration,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Data files of all tables.
    pub files: u64,
}

/// Reads the numbers of all databases that take rows now.
pub type IngestReader = Arc<dyn Fn() -> Vec<IngestNumbers> + Send + Sync>;

/// The reader, and the databases that have gauges.
#[derive(Default)]
pub(crate) struct IngestMetrics(Mutex<(Option<IngestReader>, BTreeSet<String>)>);

impl IngestMetrics {
    pub(crate) fn set_reader(&self, reader: IngestReader) {
        self.0.lock().0 = Some(reader);
    }

    /// Records into the recorder of this thread.
    pub(crate) fn record(&self) {
        let mut state = self.0.lock();
        let (Some(reader), known) = (&state.0, &state.1) else { return };
        let numbers = reader();
        let current: BTreeSet<String> = numbers.iter().map(|numbers| numbers.database.clone()).collect();
        // What a database that is gone had last is no longer so.
        for database in known.difference(&current) {
            record_gauges(&IngestNumbers { database: database.clone(), ..IngestNumbers::default() });
        }
        for numbers in &numbers {
            record_counters(numbers);
            record_gauges(numbers);
        }
        state.1 = current;
    }
}

fn record_counters(numbers: &IngestNumbers) {
    let database = || numbers.database.clone();
    let writes = [("stored", numbers.writes), ("repeated", numbers.repeated_writes), ("failed", numbers.failed_writes)];
    for (outcome, count) in writes {
        counter!("tidegate_ingest_writes_total", "database" => database(), "outcome" => outcome).absolute(count);
    }
    for (outcome, count) in [("stored", numbers.rows), ("rejected", numbers.rejected_rows)] {
        counter!("tidegate_ingest_rows_total", "database" => database(), "outcome" => outcome).absolute(count);
    }
    for (outcome, count) in [("done", numbers.flushes), ("failed", numbers.failed_flushes)] {
        counter!("tidegate_ingest_flushes_total", "database" => database(), "outcome" => outcome).absolute(count);
    }
    counter!("tidegate_ingest_bytes_total", "database" => database()).absolute(numbers.bytes);
    counter!("tidegate_ingest_compacted_files_total", "database" => database()).absolute(numbers.compacted_files);
}

fn record_gauges(numbers: &IngestNumbers) {
    let database = || numbers.database.clone();
    gauge!("tidegate_ingest_waiting_rows", "database" => database()).set(numbers.waiting_rows as f64);
    gauge!("tidegate_ingest_waiting_bytes", "database" => database()).set(numbers.waiting_bytes as f64);
    gauge!("tidegate_ingest_oldest_age_seconds", "database" => database()).set(numbers.oldest_age.as_secs_f64());
    gauge!("tidegate_ingest_log_bytes", "database" => database()).set(numbers.log_bytes as f64);
    gauge!("tidegate_ingest_files", "database" => database()).set(numbers.files as f64);
}
