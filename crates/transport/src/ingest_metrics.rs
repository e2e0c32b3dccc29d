//! The metrics of databases that take rows, and of receivers of messages. They count themselves, so that nothing is counted
//! twice.

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
    /// Rows that were rejected, whether they were kept in a table of rejected rows or not.
    pub rejected_rows: u64,
    /// Bytes that were stored.
    pub bytes: u64,
    /// Its log and its files, if it is a folder.
    pub folder: Option<FolderNumbers>,
}

/// The log and the files of a database that is a folder, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderNumbers {
    /// Moves of rows from the log to files.
    pub flushes: u64,
    /// Moves that failed.
    pub failed_flushes: u64,
    /// Groups of files that were joined.
    pub compactions: u64,
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

/// A receiver of messages of a broker, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiverNumbers {
    /// The address of the broker.
    pub broker: String,
    /// The name of the session.
    pub client_id: String,
    /// Whether messages arrive now.
    pub is_connected: bool,
    /// Messages that arrived, with those that arrived again.
    pub messages: u64,
    /// Rows that were stored.
    pub rows: u64,
    /// Rows, and whole messages, that were rejected.
    pub rejected_rows: u64,
    /// Sessions after the first.
    pub reconnects: u64,
    /// Writes that failed and were repeated.
    pub failed_writes: u64,
}

/// What takes rows now, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestReading {
    /// The databases.
    pub databases: Vec<IngestNumbers>,
    /// The receivers.
    pub receivers: Vec<ReceiverNumbers>,
}

/// Reads the numbers of everything that takes rows now.
pub type IngestReader = Arc<dyn Fn() -> IngestReading + Send + Sync>;

/// The reader, and what has gauges.
#[derive(Default)]
pub(crate) struct IngestMetrics(Mutex<RecordedIngest>);

#[derive(Default)]
struct RecordedIngest {
    reader: Option<IngestReader>,
    folders: BTreeSet<String>,
    /// By broker and session.
    receivers: BTreeSet<(String, String)>,
}

impl IngestMetrics {
    pub(crate) fn set_reader(&self, reader: IngestReader) {
        self.0.lock().reader = Some(reader);
    }

    /// Records into the recorder of this thread.
    pub(crate) fn record(&self) {
        let mut state = self.0.lock();
        let Some(reader) = &state.reader else { return };
        let IngestReading { databases, receivers } = reader();
        let folders = databases.iter().filter(|numbers| numbers.folder.is_some());
        let current: BTreeSet<String> = folders.map(|numbers| numbers.database.clone()).collect();
        // What a folder that is gone had last is no longer so.
        for database in state.folders.difference(&current) {
            record_gauges(database, &FolderNumbers::default());
        }
        for numbers in &databases {
            record_writes(numbers);
            if let Some(folder) = &numbers.folder {
                record_upkeep(&numbers.database, folder);
                record_gauges(&numbers.database, folder);
            }
        }
        state.folders = current;
        let current: BTreeSet<(String, String)> =
            receivers.iter().map(|numbers| (numbers.broker.clone(), numbers.client_id.clone())).collect();
        for (broker, client_id) in state.receivers.difference(&current) {
            record_connection(broker, client_id, false);
        }
        receivers.iter().for_each(record_receiver);
        state.receivers = current;
    }
}

fn record_receiver(numbers: &ReceiverNumbers) {
    let (broker, client_id) = (|| numbers.broker.clone(), || numbers.client_id.clone());
    record_connection(&numbers.broker, &numbers.client_id, numbers.is_connected);
    for (outcome, count) in [("stored", numbers.rows), ("rejected", numbers.rejected_rows)] {
        let rows = counter!("tidegate_mqtt_rows_total", "broker" => broker(), "client_id" => client_id(), "outcome" => outcome);
        rows.absolute(count);
    }
    let totals = [
        ("tidegate_mqtt_messages_total", numbers.messages),
        ("tidegate_mqtt_reconnects_total", numbers.reconnects),
        ("tidegate_mqtt_failed_writes_total", numbers.failed_writes),
    ];
    for (name, count) in totals {
        counter!(name, "broker" => broker(), "client_id" => client_id()).absolute(count);
    }
}

fn record_connection(broker: &str, client_id: &str, is_connected: bool) {
    let gauge = gauge!("tidegate_mqtt_connected", "broker" => broker.to_owned(), "client_id" => client_id.to_owned());
    gauge.set(if is_connected { 1.0 } else { 0.0 });
}

fn record_writes(numbers: &IngestNumbers) {
    let database = || numbers.database.clone();
    let writes = [("stored", numbers.writes), ("repeated", numbers.repeated_writes), ("failed", numbers.failed_writes)];
    for (outcome, count) in writes {
        counter!("tidegate_ingest_writes_total", "database" => database(), "outcome" => outcome).absolute(count);
    }
    for (outcome, count) in [("stored", numbers.rows), ("rejected", numbers.rejected_rows)] {
        counter!("tidegate_ingest_rows_total", "database" => database(), "outcome" => outcome).absolute(count);
    }
    counter!("tidegate_ingest_bytes_total", "database" => database()).absolute(numbers.bytes);
}

fn record_upkeep(database: &str, numbers: &FolderNumbers) {
    let database = || database.to_owned();
    for (outcome, count) in [("done", numbers.flushes), ("failed", numbers.failed_flushes)] {
        counter!("tidegate_ingest_flushes_total", "database" => database(), "outcome" => outcome).absolute(count);
    }
    counter!("tidegate_ingest_compactions_total", "database" => database()).absolute(numbers.compactions);
    counter!("tidegate_ingest_compacted_files_total", "database" => database()).absolute(numbers.compacted_files);
}

fn record_gauges(database: &str, numbers: &FolderNumbers) {
    let database = || database.to_owned();
    gauge!("tidegate_ingest_waiting_rows", "database" => database()).set(numbers.waiting_rows as f64);
    gauge!("tidegate_ingest_waiting_bytes", "database" => database()).set(numbers.waiting_bytes as f64);
    gauge!("tidegate_ingest_oldest_age_seconds", "database" => database()).set(numbers.oldest_age.as_secs_f64());
    gauge!("tidegate_ingest_log_bytes", "database" => database()).set(numbers.log_bytes as f64);
    gauge!("tidegate_ingest_files", "database" => database()).set(numbers.files as f64);
}
