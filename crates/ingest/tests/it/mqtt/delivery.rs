//! What arrives when the broker, the receiver or the storage fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind};
use tidegate_ingest::IngestFolder;
use tidegate_ingest::mqtt::{Delivery, MqttReceiver};
use tidegate_query::{IngestTable, WriteRequest, WriteStart, WriteTarget};

use super::broker::Broker;
use super::fixture::{connected, numbered, numbers, open_folder, options, publish, until, until_distinct, within_time};

#[tokio::test(flavor = "multi_thread")]
async fn all_messages_arrive_once_when_nothing_fails() {
    let Some(mut broker) = Broker::installed() else { return };
    broker.start();
    within_time(async {
        let path = tempfile::tempdir().unwrap();
        let folder = open_folder(path.path(), |_| {}).await;
        let receiver = connected(options(broker.port), &folder).await;
        publish(broker.port, numbered(0..2_000)).await;
        until(&receiver, |numbers| numbers.stored >= 2_000).await;
        let found = numbers(&folder);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), (0..2_000).collect::<Vec<_>>());
        assert!(found.values().all(|count| *count == 1));
        let numbers = receiver.counters().numbers();
        assert_eq!((numbers.received, numbers.stored, numbers.rejected, numbers.reconnects), (2_000, 2_000, 0, 0));
        receiver.stop().await;
        folder.close().await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_starts_again_loses_nothing() {
    let Some(mut broker) = Broker::installed() else { return };
    broker.start();
    within_time(async {
        let path = tempfile::tempdir().unwrap();
        let folder = open_folder(path.path(), |_| {}).await;
        let receiver = connected(options(broker.port), &folder).await;
        publish(broker.port, numbered(0..3_000)).await;
        broker.end();
        until(&receiver, |numbers| !numbers.connected).await;
        broker.start();
        publish(broker.port, numbered(3_000..6_000)).await;
        let found = until_distinct(&folder, 6_000).await;
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), (0..6_000).collect::<Vec<_>>());
        until(&receiver, |numbers| numbers.reconnects == 1 && numbers.connected).await;
        receiver.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_dies_gets_the_rest_when_it_starts_again() {
    let Some(mut broker) = Broker::installed() else { return };
    broker.start();
    within_time(async {
        let path = tempfile::tempdir().unwrap();
        let folder = open_folder(path.path(), |_| {}).await;
        let mut receiver = connected(options(broker.port), &folder).await;
        for round in 0..5 {
            let before = receiver.counters().numbers().stored;
            let sent = publish(broker.port, numbered(round * 1_000..(round + 1) * 1_000));
            // In the middle of the messages, without waiting for anything.
            let dies = until(&receiver, |numbers| numbers.stored > before + 50);
            tokio::join!(sent, async {
                dies.await;
            });
            drop(receiver);
            receiver = MqttReceiver::start(options(broker.port), folder.clone(), Arc::default());
        }
        let found = until_distinct(&folder, 5_000).await;
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), (0..5_000).collect::<Vec<_>>());
        receiver.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_arrive_while_no_receiver_runs_are_kept() {
    let Some(mut broker) = Broker::installed() else { return };
    broker.start();
    within_time(async {
        let path = tempfile::tempdir().unwrap();
        let folder = open_folder(path.path(), |_| {}).await;
        connected(options(broker.port), &folder).await.stop().await;
        publish(broker.port, numbered(0..500)).await;
        assert!(numbers(&folder).is_empty());
        let receiver = MqttReceiver::start(options(broker.port), folder.clone(), Arc::default());
        let found = until_distinct(&folder, 500).await;
        assert!(found.values().all(|count| *count == 1));
        receiver.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_absent_at_the_start_is_found_later() {
    let Some(mut broker) = Broker::installed() else { return };
    within_time(async {
        let path = tempfile::tempdir().unwrap();
        let folder = open_folder(path.path(), |_| {}).await;
        let receiver = MqttReceiver::start(options(broker.port), folder.clone(), Arc::default());
        tokio::task::yield_now().await;
        assert!(!receiver.counters().numbers().connected);
        broker.start();
        until(&receiver, |numbers| numbers.connected).await;
        publish(broker.port, numbered(0..10)).await;
        until_distinct(&folder, 10).await;
        assert_eq!(receiver.counters().numbers().reconnects, 0);
        receiver.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_with_qos_0_arrive() {
    let Some(mut broker) = Broker::installed() else { return };
    broker.start();
    within_time(async {
        let path = tempfile::tempdir().unwrap();
        let folder = open_folder(path.path(), |_| {}).await;
        let mut options = options(broker.port);
        options.delivery = Delivery::AtMostOnce;
        let receiver = connected(options, &folder).await;
        publish(broker.port, numbered(0..100)).await;
        until_distinct(&folder, 100).await;
        receiver.stop().await;
    })
    .await;
}

/// A folder whose storage fails while `fails`.
#[derive(Debug)]
struct FailingTarget {
    folder: Arc<IngestFolder>,
    fails: AtomicBool,
}

#[async_trait]
impl WriteTarget for FailingTarget {
    fn database(&self) -> &str {
        self.folder.database()
    }

    fn tables(&self) -> Vec<String> {
        self.folder.tables()
    }

    async fn table(&self, table: &str) -> Result<IngestTable, Error> {
        self.folder.table(table).await
    }

    async fn begin(&self, request: WriteRequest) -> Result<WriteStart, Error> {
        match self.fails.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Unavailable, "there is no room")),
            false => self.folder.begin(request).await,
        }
    }

    async fn drop_table(&self, table: &str) -> Result<(), Error> {
        self.folder.drop_table(table).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_while_the_storage_fails() {
    let Some(mut broker) = Broker::installed() else { return };
    broker.start_with("max_inflight_messages 5");
    within_time(async {
        let path = tempfile::tempdir().unwrap();
        let folder = open_folder(path.path(), |_| {}).await;
        let target = Arc::new(FailingTarget { folder: folder.clone(), fails: AtomicBool::new(true) });
        let receiver = MqttReceiver::start(options(broker.port), target.clone(), Arc::default());
        until(&receiver, |numbers| numbers.connected).await;
        publish(broker.port, numbered(0..100)).await;
        until(&receiver, |numbers| numbers.received >= 5 && numbers.write_failures >= 2).await;
        // The broker sends no sixth message before one of five is acknowledged.
        assert_eq!(receiver.counters().numbers().received, 5);
        // A receiver that stops leaves them at the broker.
        receiver.stop().await;
        target.fails.store(false, Ordering::SeqCst);
        let receiver = MqttReceiver::start(options(broker.port), target.clone(), Arc::default());
        let found = until_distinct(&folder, 100).await;
        assert!(found.values().all(|count| *count == 1));
        receiver.stop().await;
    })
    .await;
}
