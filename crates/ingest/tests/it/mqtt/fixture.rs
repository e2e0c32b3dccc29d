//! Receivers, publishers, and the rows of a table.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use rumqttc::{AsyncClient, Event, MqttOptions as PublisherOptions, Outgoing, Packet, QoS};
use tidegate_ingest::mqtt::{BrokerAddress, Delivery, MqttNumbers, MqttOptions, MqttReceiver, TopicColumn};
use tidegate_ingest::{IngestFolder, IngestOptions, TableDeclaration};
use tidegate_ingest_formats::BodyFormat;
use tokio::task::JoinHandle;

/// A test that takes longer has failed.
const TEST_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

pub(crate) async fn within_time(test: impl Future<Output = ()>) {
    tokio::time::timeout(TEST_MAX, test).await.expect("the test takes too long");
}

/// A folder with the table `sensors`: `site` text, `n` a required integer, `note` text.
pub(crate) async fn open_folder(path: &Path, more: impl FnOnce(&mut IngestOptions)) -> Arc<IngestFolder> {
    let never = Duration::from_secs(24 * 60 * 60);
    let columns = Schema::new(vec![
        Field::new("site", DataType::Utf8, true),
        Field::new("n", DataType::Int64, false),
        Field::new("note", DataType::Utf8, true),
    ]);
    let declaration = TableDeclaration { columns: Some(Arc::new(columns)), ..TableDeclaration::default() };
    let tables = BTreeMap::from([("sensors".to_owned(), declaration)]);
    let mut options =
        IngestOptions { tables, flush_age: never, maintenance_interval: never, ..IngestOptions::default() };
    more(&mut options);
    IngestFolder::open("plant", path.to_owned(), options).await.unwrap()
}

pub(crate) fn options(port: u16) -> MqttOptions {
    MqttOptions {
        broker: BrokerAddress { host: "127.0.0.1".to_owned(), port, uses_tls: false },
        authorities: None,
        topics: vec!["plant/+/data".to_owned()],
        table: "sensors".to_owned(),
        delivery: Delivery::AtLeastOnce,
        client_id: "tidegate-test".to_owned(),
        credentials: None,
        format: BodyFormat::Json,
        topic_columns: vec![TopicColumn { column: "site".to_owned(), level: Some(1) }],
    }
}

/// Starts a receiver, and waits until the broker has confirmed its subscriptions.
pub(crate) async fn connected(options: MqttOptions, folder: &Arc<IngestFolder>) -> MqttReceiver {
    let receiver = MqttReceiver::start(options, folder.clone(), Arc::default());
    until(&receiver, |numbers| numbers.connected).await;
    receiver
}

pub(crate) async fn until(receiver: &MqttReceiver, reached: impl Fn(&MqttNumbers) -> bool) {
    while !reached(&receiver.counters().numbers()) {
        tokio::time::sleep(POLL).await;
    }
}

/// All rows of a table that are in memory.
pub(crate) fn rows(folder: &IngestFolder, table: &str) -> RecordBatch {
    let Some(view) = folder.view(table) else { return RecordBatch::new_empty(Arc::new(Schema::empty())) };
    assert!(view.files().is_empty());
    concat_batches(view.schema(), view.batches()).unwrap()
}

/// How often each number is in column `n` of `sensors`.
pub(crate) fn numbers(folder: &IngestFolder) -> BTreeMap<i64, usize> {
    let rows = rows(folder, "sensors");
    let mut counts = BTreeMap::new();
    if let Some(column) = rows.column_by_name("n") {
        for number in column.as_primitive::<Int64Type>().values() {
            *counts.entry(*number).or_default() += 1;
        }
    }
    counts
}

pub(crate) async fn until_distinct(folder: &IngestFolder, count: usize) -> BTreeMap<i64, usize> {
    loop {
        // Fewer rows have fewer numbers. Reading all rows in each round would slow down the receiver.
        if folder.view("sensors").is_some_and(|view| view.rows() >= count as u64) {
            let numbers = numbers(folder);
            if numbers.len() >= count {
                return numbers;
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

pub(crate) fn texts(rows: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let column = rows.column_by_name(column).unwrap().as_string::<i32>();
    (0..column.len()).map(|row| column.is_valid(row).then(|| column.value(row).to_owned())).collect()
}

/// Publishes with another implementation, QoS 1, and returns when the broker has acknowledged all.
pub(crate) async fn publish(port: u16, messages: Vec<(String, Vec<u8>)>) {
    let count = messages.len();
    let mut options = PublisherOptions::new("publisher", "127.0.0.1", port);
    options.set_max_packet_size(64 << 20, 64 << 20).set_inflight(1_000);
    let (client, mut events) = AsyncClient::new(options, 10);
    let sender: JoinHandle<()> = tokio::spawn(async move {
        for (topic, payload) in messages {
            client.publish(topic, QoS::AtLeastOnce, false, payload).await.unwrap();
        }
        // Keeps the channel open until the task is aborted.
        std::future::pending::<()>().await;
    });
    let mut acknowledged = 0;
    while acknowledged < count {
        match events.poll().await {
            Ok(Event::Incoming(Packet::PubAck(_))) => acknowledged += 1,
            Ok(Event::Outgoing(Outgoing::Disconnect)) => break,
            Ok(_) => {}
            // The broker starts.
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
    sender.abort();
}

pub(crate) fn numbered(range: std::ops::Range<i64>) -> Vec<(String, Vec<u8>)> {
    range.map(|n| (format!("plant/site{}/data", n % 7), format!("{{\"n\": {n}}}").into_bytes())).collect()
}
