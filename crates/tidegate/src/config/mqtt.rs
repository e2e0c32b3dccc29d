//! Receivers of MQTT messages: their options, and those that run.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use tidegate_core::{ErrorKind, Principal};
use tidegate_ingest_formats::BodyFormat;
use tidegate_mqtt::{BrokerCredentials, Delivery, MqttCounters, MqttOptions, MqttReceiver, TopicColumn};
use tidegate_query::{IngestTable, IngestTarget, REJECTS_SUFFIX};
use tokio::sync::Mutex;

use super::LoadedConfig;
use super::databases::{OpenDatabases, OpenedDatabase};
use super::ingest::declared_table;
use super::problem::{ConfigProblem, accept, checked};
use super::types::{Config, DatabaseConfig, MqttConfig, MqttFormat};

/// What a receiver needs.
pub(super) struct DeclaredReceiver {
    options: MqttOptions,
    target: Arc<dyn IngestTarget>,
}

/// The receivers of the applied configuration.
#[derive(Default)]
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
    /// Only a server receives messages, no command.
    is_serving: bool,
    is_closed: bool,
    declared: Vec<DeclaredReceiver>,
    running: Vec<(MqttReceiver, Arc<dyn IngestTarget>)>,
}

impl MqttReceivers {
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
        let is_same = |own: &DeclaredReceiver, (receiver, target): &(MqttReceiver, Arc<dyn IngestTarget>)| {
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
                let receiver = MqttReceiver::start(own.options.clone(), own.target.clone());
                self.running.push((receiver, own.target.clone()));
            }
        }
    }
}

/// The receivers that `loaded` declares, without those of tables that another process writes.
pub(super) async fn build_receivers(
    loaded: &LoadedConfig,
    open: &OpenDatabases,
    problems: &mut Vec<ConfigProblem>,
) -> Vec<DeclaredReceiver> {
    let mut receivers = Vec::new();
    let mut sessions = HashSet::new();
    for (index, entry) in loaded.config.mqtt.iter().enumerate() {
        let path = format!("mqtt[{index}]");
        if !sessions.insert((entry.broker.as_str(), entry.client_id.as_str())) {
            let message = "another entry has it at the same broker, which would end one of the two sessions";
            problems.push(ConfigProblem::new(format!("{path}.client_id"), message));
        }
        receivers.extend(accept(build_receiver(entry, &path, loaded, open).await, problems).flatten());
    }
    receivers
}

async fn build_receiver(
    entry: &MqttConfig,
    path: &str,
    loaded: &LoadedConfig,
    open: &OpenDatabases,
) -> Result<Option<DeclaredReceiver>, Vec<ConfigProblem>> {
    let problem = |field: &str, message: String| ConfigProblem::new(format!("{path}.{field}"), message);
    let mut problems = Vec::new();
    let broker =
        accept(entry.broker.parse().map_err(|error| vec![problem("broker", format!("{error}"))]), &mut problems);
    let delivery = Delivery::from_qos(entry.qos.unwrap_or(1)).map_err(|message| vec![problem("qos", message)]);
    let delivery = accept(delivery, &mut problems);
    let Some((database, table)) = entry.table.split_once('.') else {
        problems.push(problem("table", "needs the database and the table: plant.sensors".to_owned()));
        return Err(problems);
    };
    let known = accept(
        find_table(&loaded.config, open, database, table).await.map_err(|message| vec![problem("table", message)]),
        &mut problems,
    );
    if entry.password.is_some() && entry.username.is_none() {
        problems.push(problem("password", "needs a username".to_owned()));
    }
    let (Some(broker), Some(delivery), Some(known)) = (broker, delivery, known) else { return Err(problems) };
    let levels = entry.topic_columns.iter();
    let levels = levels.map(|(column, level)| TopicColumn { column: column.clone(), level: Some(*level) });
    let whole = entry.topic.iter().map(|column| TopicColumn { column: column.clone(), level: None });
    let options = MqttOptions {
        broker,
        authorities: entry.authorities.as_ref().map(|file| loaded.resolve(file)),
        topics: entry.topics.clone(),
        table: table.to_owned(),
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
    let found =
        options.problems().into_iter().chain(known.table.iter().flat_map(|table| options.table_problems(table)));
    problems.extend(found.map(|own| problem(&own.field, own.message)));
    checked(known.target.map(|target| DeclaredReceiver { options, target }), problems)
}

/// The table of a receiver.
struct ReceiverTable {
    /// `None` if another process writes to it, or if this one takes no rows.
    target: Option<Arc<dyn IngestTarget>>,
    /// `None` if the table cannot be read now. Its messages then wait at the broker.
    table: Option<IngestTable>,
}

/// Finds a table that takes rows, by the declaration of its database if another process writes to it.
async fn find_table(
    config: &Config,
    open: &OpenDatabases,
    database: &str,
    table: &str,
) -> Result<ReceiverTable, String> {
    let Some(entry) = config.databases.iter().find(|entry| entry.name == database && entry.ingest.is_some()) else {
        return Err(no_rows_taken(config, database));
    };
    // A database that could not be opened is a problem of its own.
    let Some(opened) = open.by_name.get(database) else { return Ok(ReceiverTable { target: None, table: None }) };
    let Some(target) = &opened.target else {
        let declared = declared_table(entry, table);
        if declared.is_none() && entry.create_tables == Some(false) {
            require_stored_table(entry, opened, table).await?;
        }
        return Ok(ReceiverTable { target: None, table: declared });
    };
    match target.table(table).await {
        Ok(known) => Ok(ReceiverTable { target: Some(target.clone()), table: Some(known) }),
        Err(error) if error.kind() == ErrorKind::Unavailable => {
            Ok(ReceiverTable { target: Some(target.clone()), table: None })
        }
        Err(error) => Err(with_names(error.message().to_owned(), error.choices().iter().map(String::as_str))),
    }
}

/// Checks that a table exists that its database neither declares nor creates.
async fn require_stored_table(entry: &DatabaseConfig, opened: &OpenedDatabase, table: &str) -> Result<(), String> {
    let catalog = opened.database.catalog(&Principal::process_user()).await.map_err(|error| error.to_string())?;
    let stored = catalog.tables.iter().map(|stored| stored.name.as_str());
    if stored.clone().any(|name| name == table) {
        return Ok(());
    }
    let names = stored.chain(entry.tables.keys().map(String::as_str)).filter(|name| !name.ends_with(REJECTS_SUFFIX));
    let names: BTreeSet<&str> = names.collect();
    Err(with_names(format!("database {:?} has no table {table:?} that takes rows", entry.name), names))
}

fn no_rows_taken(config: &Config, database: &str) -> String {
    let lead = match config.databases.iter().any(|entry| entry.name == database) {
        true => format!("database {database:?} takes no rows, as it has no key ingest"),
        false => format!("there is no database {database:?}"),
    };
    let taking = config.databases.iter().filter(|entry| entry.ingest.is_some()).map(|entry| entry.name.as_str());
    let taking: BTreeSet<&str> = taking.collect();
    if taking.is_empty() {
        return format!("{lead}; declare one under databases: {{name: {database}, ingest: ./{database}}}");
    }
    with_names(lead, taking)
}

fn with_names<'a>(lead: String, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { lead } else { format!("{lead}; there are {}", names.join(", ")) }
}
