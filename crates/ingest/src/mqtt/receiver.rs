//! Keeps a session with a broker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tidegate_core::Backoff;
use tidegate_query::{NodeMemory, WriteTarget};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::mqtt::connection::{Connection, ConnectionError};
use crate::mqtt::options::{Delivery, MqttOptions};
use crate::mqtt::session::{End, HeldMessages};
use crate::mqtt::store::Store;

const RECONNECT_FIRST: Duration = Duration::from_secs(1);
const RECONNECT_LONGEST: Duration = Duration::from_secs(60);

/// What a receiver has done since its start.
#[derive(Debug, Default)]
pub struct MqttCounters {
    pub(crate) received: AtomicU64,
    pub(crate) stored: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) reconnects: AtomicU64,
    pub(crate) write_failures: AtomicU64,
    pub(crate) connected: AtomicBool,
}

/// The values of [`MqttCounters`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MqttNumbers {
    /// Messages that arrived, with those that arrived again.
    pub received: u64,
    /// Rows that were stored.
    pub stored: u64,
    /// Rows, and whole messages, that were stored as rejected.
    pub rejected: u64,
    /// Sessions after the first.
    pub reconnects: u64,
    /// Writes that failed and are repeated.
    pub write_failures: u64,
    /// Whether the broker has confirmed the subscriptions of the present connection.
    pub connected: bool,
}

impl MqttCounters {
    /// The values now.
    #[must_use]
    pub fn numbers(&self) -> MqttNumbers {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MqttNumbers {
            received: read(&self.received),
            stored: read(&self.stored),
            rejected: read(&self.rejected),
            reconnects: read(&self.reconnects),
            write_failures: read(&self.write_failures),
            connected: self.connected.load(Ordering::Relaxed),
        }
    }
}

/// Receives the messages of a broker until it is stopped or dropped.
#[derive(Debug)]
pub struct MqttReceiver {
    options: Arc<MqttOptions>,
    counters: Arc<MqttCounters>,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl MqttReceiver {
    /// Begins to receive. The broker need not be reachable: connections are tried again, after 1 s up to 60 s. Rows draw on
    /// `memory` until they are stored; while there is none, messages wait.
    ///
    /// The options have no problems, as [`MqttOptions::problems`] and [`MqttOptions::table_problems`] find them. Must be
    /// called within a runtime of tokio.
    #[must_use]
    pub fn start(options: MqttOptions, target: Arc<dyn WriteTarget>, memory: Arc<NodeMemory>) -> Self {
        let options = Arc::new(options);
        let counters = Arc::new(MqttCounters::default());
        let stop = CancellationToken::new();
        let store = Arc::new(Store { target, options: options.clone(), counters: counters.clone(), memory });
        let run = Run { options: options.clone(), counters: counters.clone(), stop: stop.clone(), backoff: backoff() };
        let task = tokio::spawn(run.receive(HeldMessages::new(store)));
        Self { options, counters, stop, task: Some(task) }
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &MqttOptions {
        &self.options
    }

    /// What was received so far.
    #[must_use]
    pub fn counters(&self) -> &Arc<MqttCounters> {
        &self.counters
    }

    /// Stops. Messages that are not stored stay at the broker. When it returns, nothing is running any more.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
        {
            tracing::error!(broker = %self.options.broker, "receiving messages failed: {error}");
        }
    }
}

impl Drop for MqttReceiver {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn backoff() -> Backoff {
    Backoff::new(RECONNECT_FIRST, RECONNECT_LONGEST)
}

struct Run {
    options: Arc<MqttOptions>,
    counters: Arc<MqttCounters>,
    stop: CancellationToken,
    backoff: Backoff,
}

impl Run {
    async fn receive(mut self, mut held: HeldMessages) {
        let mut sessions = 0_u64;
        let mut is_logged = false;
        let stop = self.stop.clone();
        loop {
            let opened = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                opened = Connection::open(&self.options) => opened,
            };
            let error = match opened {
                Ok(connection) => match self.serve(connection, &mut held, &mut sessions, &mut is_logged).await {
                    Some(error) => error,
                    None => break,
                },
                Err(error) => error,
            };
            self.counters.connected.store(false, Ordering::Relaxed);
            match std::mem::replace(&mut is_logged, true) {
                false => {
                    tracing::warn!(broker = %self.options.broker, "no messages arrive, and connecting is tried again: {error}")
                }
                true => tracing::debug!(broker = %self.options.broker, "connecting failed again: {error}"),
            }
            let recover = async {
                match self.options.delivery {
                    Delivery::AtLeastOnce => held.forget(),
                    Delivery::AtMostOnce => held.store_all().await,
                }
                tokio::time::sleep(self.backoff.next_delay()).await;
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = recover => {}
            }
        }
        self.counters.connected.store(false, Ordering::Relaxed);
    }

    /// Serves a connection. Returns why it was lost, or nothing when the receiver stops.
    async fn serve(
        &mut self,
        mut connection: Connection,
        held: &mut HeldMessages,
        sessions: &mut u64,
        is_logged: &mut bool,
    ) -> Option<ConnectionError> {
        let stop = self.stop.clone();
        let subscribed = || {
            if *sessions > 0 {
                self.counters.reconnects.fetch_add(1, Ordering::Relaxed);
            }
            *sessions += 1;
            *is_logged = false;
            self.backoff.reset();
            self.counters.connected.store(true, Ordering::Relaxed);
            tracing::info!(broker = %self.options.broker, table = self.options.table, "messages are received");
        };
        match held.serve(&mut connection, &stop, subscribed).await {
            End::Lost(error) => Some(error),
            End::Stopped => {
                connection.close().await;
                None
            }
        }
    }
}
