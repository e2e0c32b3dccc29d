//! Receivers of MQTT messages: their options, and those that run.

use std::collections::HashSet;
use std::sync::Arc;

use tidegate_ingest::mqtt::{BrokerCredentials, Delivery, MqttCounters, MqttOptions, MqttReceiver, TopicColumn};
use tidegate_ingest_formats::BodyFormat;
use tidegate_query::{NodeMemory, WriteTarget};
use tokio::sync::Mutex;

use super::LoadedConfig;
use super::databases::OpenDatabases;
use super::named_table::NamedTable;
use super::problems::Problems;
use super::types::{MqttConfig, MqttFormat};

/// What a receiver needs.
pub(super) struct DeclaredReceiver {
    options: MqttOptions,
    target: Arc<dyn WriteTarget>,
}

/// The receivers of the applied configuration.
pub(crate) struct MqttReceivers {
    state: Mutex<ReceiversState>,
    running: RunningReceivers,
}

/// What the receivers that run now count.
pub(super) type RunningReceivers = Arc<parking_lot::Mutex<Vec<RunningCounters>>>;

/// What a receiver counts.
pub(super) struct RunningCounters {
    pub(super) broker: String,
    pub(super) client_id: String,
    pub(super) counters: Arc<MqttCounters>,
}

#[derive(Default)]
struct ReceiversState {
    /// What rows draw on.
    memory: Arc<NodeMemory>,
    /// Only a server receives messages, no command.
    is_serving: bool,
    is_closed: bool,
    declared: Vec<DeclaredReceiver>,
    running: Vec<(MqttReceiver, Arc<dyn WriteTarget>)>,
}

impl MqttReceivers {
    /// None yet. Their rows draw on `memory`.
    pub(crate) fn new(memory: Arc<NodeMemory>) -> Self {
        Self { state: Mutex::new(ReceiversState { memory, ..ReceiversState::default() }), running: Arc::default() }
    }

    /// Receives as `declared` from now on. Receivers that stay the same go on.
    pub(super) async fn enter(&self, declared: Vec<DeclaredReceiver>) {
        let mut state = self.state.lock().await;
        state.declared = declared;
        self.apply(&mut state).await;
    }

    /// Begins to receive.
    pub(crate) async fn start(&self) {
        let mut state = self.state.lock().await;
        // A server can end before its background tasks begin.
        state.is_serving = !state.is_closed;
        self.apply(&mut state).await;
    }

    /// Stops all receivers. What is not stored stays at the brokers.
    pub(crate) async fn close(&self) {
        let mut state = self.state.lock().await;
        (state.is_serving, state.is_closed) = (false, true);
        self.apply(&mut state).await;
    }

    /// What the receivers count, for the metrics.
    pub(super) fn running(&self) -> RunningReceivers {
        self.running.clone()
    }

    async fn apply(&self, state: &mut ReceiversState) {
        state.apply().await;
        let counters = state.running.iter().map(|(receiver, _)| RunningCounters {
            broker: receiver.options().broker.to_string(),
            client_id: receiver.options().client_id.clone(),
            counters: receiver.counters().clone(),
        });
        *self.running.lock() = counters.collect();
    }
}

impl ReceiversState {
    async fn apply(&mut self) {
        let declared = if self.is_serving { self.declared.as_slice() } else { &[] };
        let is_same = |own: &DeclaredReceiver, (receiver, target): &(MqttReceiver, Arc<dyn WriteTarget>)| {
            *receiver.options() == own.options && Arc::ptr_eq(target, &own.target)
        };
        let (kept, ended): (Vec<_>, Vec<_>) = std::mem::take(&mut self.running)
            .into_iter()
            .partition(|running| declared.iter().any(|own| is_same(own, running)));
        // Before others start, because they may have the same client id.
        futures::future::join_all(ended.into_iter().map(|(receiver, _)| receiver.stop())).await;
        self.running = kept;
        for own in declared {
            if !self.running.iter().any(|running| is_same(own, running)) {
                let receiver = MqttReceiver::start(own.options.clone(), own.target.clone(), self.memory.clone());
                self.running.push((receiver, own.target.clone()));
            }
        }
    }
}

/// The receivers that `loaded` declares, without those of tables that another process writes.
pub(super) async fn build_receivers(
    loaded: &LoadedConfig,
    open: &OpenDatabases,
    problems: &Problems,
) -> Vec<DeclaredReceiver> {
    let mut receivers = Vec::new();
    let mut sessions = HashSet::new();
    for (index, entry) in loaded.config.mqtt.iter().enumerate() {
        let problems = problems.at(format_args!("mqtt[{index}]"));
        if !sessions.insert((entry.broker.as_str(), entry.client_id.as_str())) {
            let message = "another entry has it at the same broker, which would end one of the two sessions";
            problems.add("client_id", message);
        }
        receivers.extend(build_receiver(entry, loaded, open, &problems).await);
    }
    receivers
}

async fn build_receiver(
    entry: &MqttConfig,
    loaded: &LoadedConfig,
    open: &OpenDatabases,
    problems: &Problems,
) -> Option<DeclaredReceiver> {
    let broker = entry.broker.parse().map_err(|error| problems.add("broker", format!("{error}"))).ok();
    let delivery = Delivery::from_qos(entry.qos.unwrap_or(1)).map_err(|message| problems.add("qos", message)).ok();
    let table = NamedTable::find(&entry.table, &loaded.config, open).await;
    let table = table.map_err(|message| problems.add("table", message)).ok();
    if entry.password.is_some() && entry.username.is_none() {
        problems.add("password", "needs a username");
    }
    let is_network = |name: &str| open.by_name.get(name).is_some_and(|opened| opened.database.network().is_some());
    if table.iter().flat_map(|table| &table.target).any(|target| is_network(target.database())) {
        let message = "is a table of a network, which takes rows from callers only; receive the messages at its nodes";
        problems.add("table", message);
    }
    let (Some(broker), Some(delivery), Some(table)) = (broker, delivery, table) else { return None };
    let levels = entry.topic_columns.iter();
    let levels = levels.map(|(column, level)| TopicColumn { column: column.clone(), level: Some(*level) });
    let whole = entry.topic.iter().map(|column| TopicColumn { column: column.clone(), level: None });
    let options = MqttOptions {
        broker,
        authorities: entry.authorities.as_ref().map(|file| loaded.resolve(file)),
        topics: entry.topics.clone(),
        table: table.name,
        delivery,
        client_id: entry.client_id.clone(),
        credentials: entry.username.as_ref().map(|username| BrokerCredentials {
            username: username.clone(),
            password: entry.password.as_ref().map(|password| password.0.expose().to_owned()),
        }),
        format: match entry.format {
            MqttFormat::Json => BodyFormat::Json,
            MqttFormat::Ndjson => BodyFormat::Ndjson,
            MqttFormat::Csv => BodyFormat::Csv,
            MqttFormat::Arrow => BodyFormat::Arrow,
        },
        topic_columns: levels.chain(whole).collect(),
    };
    // The messages for a table that cannot be read now wait at the broker.
    let of_table = table.known.iter().flat_map(|known| options.table_problems(known));
    let found = options.problems().into_iter().chain(of_table);
    found.for_each(|own| problems.add(own.field, own.message));
    table.target.map(|target| DeclaredReceiver { options, target })
}
