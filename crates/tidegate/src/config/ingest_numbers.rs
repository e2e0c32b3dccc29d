//! What takes rows, in numbers, for the metrics of the node.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tidegate_core::IngestTotals;
use tidegate_ingest::IngestFolder;
use tidegate_ingest::mqtt::MqttNumbers;
use tidegate_query::{CountedTarget, IngestMaintenance, WriteTarget as _};
use tidegate_transport::{FolderNumbers, IngestNumbers, IngestReader, IngestReading, ReceiverNumbers};

use super::databases::OpenDatabases;
use super::mqtt::{RunningCounters, RunningReceivers};

/// Reads the numbers of the tables of `databases`, without keeping them open, and of the receivers that run.
pub(super) fn reader(databases: &OpenDatabases, receivers: RunningReceivers) -> IngestReader {
    let folders: Vec<Weak<IngestFolder>> =
        databases.ingest_folders().map(|tables| Arc::downgrade(&tables.folder)).collect();
    let counted: Vec<Weak<CountedTarget>> = databases.counted_targets().map(Arc::downgrade).collect();
    Arc::new(move || {
        let folders = folders.iter().filter_map(Weak::upgrade).map(|folder| folder_numbers(folder.as_ref()));
        let counted = counted.iter().filter_map(Weak::upgrade).map(|target| write_numbers(&target));
        IngestReading {
            databases: folders.chain(counted).collect(),
            receivers: receivers.lock().iter().map(receiver_numbers).collect(),
        }
    })
}

fn receiver_numbers(running: &RunningCounters) -> ReceiverNumbers {
    let MqttNumbers { received, stored, rejected, reconnects, write_failures, connected } = running.counters.numbers();
    ReceiverNumbers {
        broker: running.broker.clone(),
        client_id: running.client_id.clone(),
        is_connected: connected,
        messages: received,
        rows: stored,
        rejected_rows: rejected,
        reconnects,
        failed_writes: write_failures,
    }
}

fn folder_numbers(folder: &dyn IngestMaintenance) -> IngestNumbers {
    let tables = folder.status();
    let numbers = FolderNumbers {
        waiting_rows: tables.iter().map(|table| table.waiting_rows).sum(),
        waiting_bytes: tables.iter().map(|table| table.waiting_bytes).sum(),
        oldest_age: tables.iter().filter_map(|table| table.oldest_age).max().unwrap_or(Duration::ZERO),
        log_bytes: folder.log_bytes(),
        files: tables.iter().map(|table| table.files).sum(),
    };
    IngestNumbers { database: folder.database().to_owned(), totals: folder.totals(), folder: Some(numbers) }
}

fn write_numbers(target: &CountedTarget) -> IngestNumbers {
    let totals = IngestTotals { written: target.totals(), ..IngestTotals::default() };
    IngestNumbers { database: target.database().to_owned(), totals, folder: None }
}
