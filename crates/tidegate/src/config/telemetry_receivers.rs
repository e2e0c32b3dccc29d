//! Receivers of telemetry: the tables they write to, and the sources that these tables are.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::{AllowedNames, DatabaseTenants, Principal, nearest_names};
use tidegate_query::{Database, NodeMemory, WriteTarget};
use tidegate_telemetry::formats::TelemetryTable;
use tidegate_telemetry::metrics::{JsonLabels, MetricKind};
use tidegate_tools::{
    DeclaredKind, LogSource, MetricSource, MetricSourceKind, MetricTable, TablePresence, TelemetryReceivers,
    TraceSource, register_telemetry_receivers, register_traces,
};

use super::databases::OpenDatabases;
use super::problems::Problems;
use super::telemetry_sources::TelemetrySources;
use super::types::Config;
use crate::ingest::DeclaredTables;
use crate::node::ServedState;

/// The labels of data points beside those of their attributes.
const POINT_LABELS: [&str; 2] = ["service_name", "unit"];
/// The column that says whether values are totals or increments.
const TEMPORALITY: &str = "aggregation_temporality";

/// The databases that receive telemetry.
#[derive(Default)]
pub(super) struct ReceiverDatabases {
    otlp: Option<ReceiverDatabase>,
    prometheus: Option<ReceiverDatabase>,
    bulk: Option<ReceiverDatabase>,
}

/// A database that receives telemetry.
struct ReceiverDatabase {
    database: Arc<dyn Database>,
    /// `None` if this process takes no rows.
    target: Option<Arc<dyn WriteTarget>>,
    tables: Option<DeclaredTables>,
    /// The tables when the configuration was applied, for a process that does not write them.
    names: Arc<BTreeSet<String>>,
}

impl ReceiverDatabases {
    /// The databases that `config` names. Names that are not those of databases with an ingest folder are problems.
    pub(super) async fn find(config: &Config, open: &OpenDatabases, problems: &Problems) -> Self {
        let receivers = &config.receivers;
        Self {
            otlp: find(config, open, receivers.otlp.as_deref(), &problems.at("receivers.otlp")).await,
            prometheus: find(config, open, receivers.prometheus.as_deref(), &problems.at("receivers.prometheus")).await,
            bulk: find(config, open, receivers.bulk.as_deref(), &problems.at("receivers.bulk")).await,
        }
    }

    /// Adds the tables of the receivers to `sources`, except those that are declared. Each appears when its table exists.
    pub(super) fn add_sources(&self, sources: &mut TelemetrySources) {
        let logs: Vec<LogSource> = self
            .otlp
            .iter()
            .map(log_source)
            .filter_map(|source| {
                let is_declared = |other: &LogSource| other.database == source.database && other.table == source.table;
                let declared = sources.logs.iter().any(is_declared);
                let name = free_name(&source.name, &source.database, |name| {
                    sources.logs.iter().any(|other| other.name == name)
                });
                (!declared).then_some(LogSource { name, ..source })
            })
            .collect();
        sources.logs = sources.logs.with(logs);
        let implied = self.otlp.iter().flat_map(otlp_metrics).chain(self.prometheus.iter().map(prometheus_metrics));
        let metrics: Vec<MetricSource> = implied
            .filter_map(|(short, table)| {
                let is_declared = |other: &MetricSource| match &other.kind {
                    MetricSourceKind::Table(other) => other.database == table.database && other.table == table.table,
                    MetricSourceKind::Prometheus(_) | MetricSourceKind::Node(_) => false,
                };
                let declared = sources.metrics.iter().any(is_declared);
                let name =
                    free_name(&short, &table.database, |name| sources.metrics.iter().any(|other| other.name == name));
                (!declared).then_some(MetricSource {
                    name,
                    access: Vec::new(),
                    kind: MetricSourceKind::Table(Box::new(table)),
                })
            })
            .collect();
        sources.metrics = sources.metrics.with(metrics);
    }

    /// Adds the tools that receive telemetry, and `get_trace`.
    pub(super) fn add_tools(
        self,
        state: ServedState,
        tenancy: DatabaseTenants,
        memory: &Arc<NodeMemory>,
        built_in: &AllowedNames,
    ) -> ServedState {
        let services = state.services().clone();
        let traces = self.otlp.as_ref().map(|otlp| TraceSource {
            database: otlp.database.name().to_owned(),
            presence: otlp.presence(TelemetryTable::Traces),
        });
        let target = |receiver: Option<ReceiverDatabase>| receiver.and_then(|receiver| receiver.target);
        let receivers = TelemetryReceivers {
            otlp: target(self.otlp),
            prometheus: target(self.prometheus),
            bulk: target(self.bulk),
            tenancy,
            memory: memory.clone(),
        };
        let node_name = services.identity.name.clone();
        state.entries(|entries| {
            let entries = register_telemetry_receivers(entries, receivers, &node_name, built_in);
            match traces {
                Some(source) => register_traces(entries, &services, source, built_in),
                None => entries,
            }
        })
    }
}

async fn find(
    config: &Config,
    open: &OpenDatabases,
    name: Option<&str>,
    problems: &Problems,
) -> Option<ReceiverDatabase> {
    let name = name?;
    let with_folder = config.databases.iter().filter(|entry| entry.used_keys().folder.is_some());
    let names: Vec<&str> = with_folder.map(|entry| entry.name.as_str()).collect();
    if !names.contains(&name) {
        problems.add("", no_folder(config, &names, name));
        return None;
    }
    // A database that could not be opened is a problem of its own.
    let opened = open.by_name.get(name)?;
    let database = &opened.database;
    let tables = opened.declared_tables().cloned();
    let catalog = match &tables {
        Some(_) => None,
        None => database.catalog(&Principal::process_user()).await.ok(),
    };
    let names = catalog.iter().flat_map(|catalog| &catalog.tables).map(|table| table.name.clone()).collect();
    Some(ReceiverDatabase {
        database: database.clone(),
        target: opened.caller_target(),
        tables,
        names: Arc::new(names),
    })
}

fn no_folder(config: &Config, names: &[&str], name: &str) -> String {
    let lead = match config.databases.iter().any(|entry| entry.name == name) {
        true => format!("the database {name:?} has no ingest folder"),
        false => format!("there is no database {name:?}"),
    };
    let near = nearest_names(name, names.iter().copied());
    match (near.is_empty(), names.is_empty()) {
        (false, _) => format!("{lead}; nearest: {}", near.join(", ")),
        (true, false) => format!("{lead}; databases with an ingest folder are {}", names.join(", ")),
        (true, true) => format!("{lead}; declare one under databases: {{name: {name}, ingest: ./{name}}}"),
    }
}

impl ReceiverDatabase {
    /// Whether the table exists. It does after its first rows.
    fn presence(&self, table: TelemetryTable) -> TablePresence {
        match &self.tables {
            Some(tables) => {
                let folder = tables.folder.clone();
                TablePresence::new(move || folder.has_table(table.name()))
            }
            None => {
                let names = self.names.clone();
                TablePresence::new(move || names.contains(table.name()))
            }
        }
    }

    fn metric_table(&self, table: TelemetryTable, metric: &str, value: &str) -> MetricTable {
        MetricTable {
            database: self.database.name().to_owned(),
            table: table.name().to_owned(),
            time: Some("time".to_owned()),
            metric: Some(metric.to_owned()),
            value: Some(value.to_owned()),
            presence: self.presence(table),
            ..MetricTable::default()
        }
    }
}

fn log_source(receiver: &ReceiverDatabase) -> LogSource {
    LogSource {
        name: TelemetryTable::Logs.name().to_owned(),
        database: receiver.database.name().to_owned(),
        table: TelemetryTable::Logs.name().to_owned(),
        time: Some("time".to_owned()),
        message: Some("body".to_owned()),
        severity: Some("severity_text".to_owned()),
        presence: receiver.presence(TelemetryTable::Logs),
        ..LogSource::default()
    }
}

/// The metric sources of the tables of OTLP, with their names.
fn otlp_metrics(receiver: &ReceiverDatabase) -> Vec<(String, MetricTable)> {
    use TelemetryTable::{ExponentialHistogram, Gauge, Histogram, Sum, Summary};
    let json = |column: &str, prefix: &str| JsonLabels { column: column.to_owned(), prefix: prefix.to_owned() };
    let source = |table: TelemetryTable, value: &str, further: &[&str], suffix: &str| {
        let labels = POINT_LABELS.iter().chain(further).map(|label| (*label).to_owned());
        let table_source = MetricTable {
            labels: labels.collect(),
            json_labels: vec![
                json("attributes", ""),
                json("resource_attributes", "resource."),
                json("scope_attributes", "scope."),
            ],
            // The unit is that of the observations.
            has_other_unit: value == "count",
            kind: match table {
                Gauge => DeclaredKind::Fixed(MetricKind::Gauge),
                Summary => DeclaredKind::Fixed(MetricKind::Counter),
                // Sums are recognised by their columns.
                Sum => DeclaredKind::Nowhere,
                _ => DeclaredKind::Sum { monotonic: None, temporality: TEMPORALITY.to_owned() },
            },
            ..receiver.metric_table(table, "metric_name", value)
        };
        (format!("{}{suffix}", table.name()), table_source)
    };
    let mut sources = vec![
        source(Gauge, "value", &["scope_name"], ""),
        source(Sum, "value", &["scope_name", TEMPORALITY], ""),
        source(Summary, "count", &["scope_name"], ".count"),
        source(Summary, "sum", &["scope_name"], ".sum"),
    ];
    for table in [Histogram, ExponentialHistogram] {
        for value in ["count", "sum"] {
            sources.push(source(table, value, &["scope_name", TEMPORALITY], &format!(".{value}")));
        }
    }
    sources
}

fn prometheus_metrics(receiver: &ReceiverDatabase) -> (String, MetricTable) {
    let table = TelemetryTable::PrometheusSamples;
    let members = JsonLabels { column: "labels".to_owned(), prefix: String::new() };
    let kind = DeclaredKind::Type("type".to_owned());
    let source = MetricTable { json_labels: vec![members], kind, ..receiver.metric_table(table, "metric", "value") };
    (table.name().to_owned(), source)
}

/// The name, or with that of the database if it is taken.
fn free_name(name: &str, database: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if is_taken(name) { format!("{database}.{name}") } else { name.to_owned() }
}
