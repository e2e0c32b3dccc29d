//! The ingest folders and the receivers of messages in numbers, for the metrics of the node.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tidegate_ingest::IngestFolder;
use tidegate_mqtt::MqttNumbers;
use tidegate_query::{IngestMaintenance, IngestTotals};
use tidegate_transport::{IngestNumbers, IngestReader, IngestReading, ReceiverNumbers};

use super::mqtt::{RunningCounters, RunningReceivers};
use crate::ingest::DeclaredTables;

/// Reads the numbers of `folders`, without keeping them open, and of the receivers that run.
pub(super) fn reader<'a>(
    folders: impl Iterator<Item = &'a DeclaredTables>,
    receivers: RunningReceivers,
) -> IngestReader {
    let folders: Vec<Weak<IngestFolder>> = folders.map(|tables| Arc::downgrade(&tables.folder)).collect();
    Arc::new(move || IngestReading {
        databases: folders.iter().filter_map(Weak::upgrade).map(|folder| numbers(folder.as_ref())).collect(),
        receivers: receivers.lock().iter().map(receiver_numbers).collect(),
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

fn numbers(folder: &dyn IngestMaintenance) -> IngestNumbers {
    let tables = folder.status();
    let IngestTotals {
        writes,
        repeated_writes,
        failed_writes,
        rows,
        rejected_rows,
        bytes,
        flushes,
        failed_flushes,
        compactions,
        compacted_files,
    } = folder.totals();
    IngestNumbers {
        database: folder.database().to_owned(),
        writes,
        repeated_writes,
        failed_writes,
        rows,
        rejected_rows,
        bytes,
        flushes,
        failed_flushes,
        compactions,
        compacted_files,
        waiting_rows: tables.iter().map(|table| table.waiting_rows).sum(),
        waiting_bytes: tables.iter().map(|table| table.waiting_bytes).sum(),
        oldest_age: tables.iter().filter_map(|table| table.oldest_age).max().unwrap_or(Duration::ZERO),
        log_bytes: folder.log_bytes(),
        files: tables.iter().map(|table| table.files).sum(),
    }
}
