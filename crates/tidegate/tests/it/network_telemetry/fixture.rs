//! One database with all rows, networks of nodes with a part of them each, and the tools over these databases.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::engines::{
    EmbeddedDatabase, Engine, EngineOptions, NetworkDatabase, NetworkNode, NetworkOptions, PartialAnswers,
};
use tidegate_core::{AllowedNames, CallOrigin, CallTarget, Caller, Content, Error, Principal, TransportKind};
use tidegate_query::{Database, Databases, Executor};
use tidegate_runtime::event::EventDispatcher;
use tidegate_runtime::{AnswerMeta, Call, Registry, ReplyPart, SnapshotBuilder};
use tidegate_tools::{
    LogSource, LogSources, MetricSource, MetricSourceKind, MetricSources, MetricTable, NodeIdentity, TablePresence,
    ToolServices, TraceSource, register_log_tools, register_metric_tools, register_traces,
};

use super::tables::{TestTable, write};
use crate::file_node::FileNode;

/// The database with all rows. Sources with the name of a database are in this database, and have declared labels.
pub(super) const WHOLE: &str = "whole";
/// The network that answers only if all nodes do.
pub(super) const NETWORK: &str = "network";
/// The network of the same nodes whose answers may lack rows.
pub(super) const PARTIAL: &str = "partial";
/// The source of metrics in the network without declared labels.
pub(super) const BY_NODE: &str = "by_node";
/// The sources of metrics with a column for each metric: with all rows, and in the network.
pub(super) const WHOLE_MACHINES: &str = "whole_machines";
pub(super) const NETWORK_MACHINES: &str = "network_machines";

/// Names of nodes, in order.
const NODE_NAMES: [&str; 3] = ["bergen", "milan", "oslo"];

pub(super) struct TelemetryNetwork {
    nodes: Vec<Arc<FileNode>>,
    registry: Arc<Registry>,
    _folders: Vec<TempDir>,
    _engine: Engine,
}

/// The answer of a call.
pub(super) struct Answer {
    /// Its structured data, or else its first text as JSON.
    pub(super) json: Value,
    pub(super) texts: Vec<String>,
    pub(super) metadata: AnswerMeta,
}

impl TelemetryNetwork {
    /// A network of as many nodes as the tables have parts.
    pub(super) fn new(tables: &[TestTable]) -> Self {
        let engine = Engine::start(EngineOptions { threads: 2, ..EngineOptions::with_memory(256 << 20) }).unwrap();
        let (whole, folder) = open(WHOLE, tables.iter().map(|table| (table.name, &table.whole)), &engine);
        let (mut nodes, mut folders) = (Vec::new(), vec![folder]);
        let nodes_count = tables.first().map_or(0, |table| table.parts.len());
        for (index, name) in NODE_NAMES.into_iter().take(nodes_count).enumerate() {
            let parts = tables.iter().map(|table| (table.name, &table.parts[index]));
            let (database, folder) = open(name, parts, &engine);
            nodes.push(Arc::new(FileNode::new(database)));
            folders.push(folder);
        }
        let network = |name: &str, partial: PartialAnswers| {
            let members = nodes.iter().map(|node| NetworkNode { database: node.clone(), holds: None }).collect();
            let options = NetworkOptions { partial, timeout: Duration::from_secs(60), ranges: Vec::new() };
            Arc::new(NetworkDatabase::new(name, options, members, &engine).unwrap())
        };
        let databases: [Arc<dyn Database>; 3] =
            [Arc::new(whole), network(NETWORK, PartialAnswers::Forbid), network(PARTIAL, PartialAnswers::Allow)];
        Self { registry: registry(databases), nodes, _folders: folders, _engine: engine }
    }

    /// From now on, a node answers no statement.
    pub(super) fn set_away(&self, name: &str) {
        let node = self.nodes.iter().find(|node| node.name() == name).unwrap();
        node.set_away();
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, Error> {
        let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
        let mut call = Call::new(CallTarget::Tool(tool.to_owned()), Caller::new(Principal::process_user(), origin));
        if let Value::Object(arguments) = arguments {
            call.arguments = arguments;
        }
        let mut reply = self.registry.call(call)?;
        let (mut texts, mut structured): (Vec<String>, Option<Value>) = (vec![String::new()], None);
        while let Some(part) = reply.next().await {
            match part {
                ReplyPart::Text(piece) => texts.last_mut().unwrap().push_str(&piece),
                ReplyPart::EndOfText => texts.push(String::new()),
                ReplyPart::Item(Content::Text { text, .. }) => texts.extend([text, String::new()]),
                ReplyPart::Structured(json) => structured = Some(serde_json::from_str(json.get()).unwrap()),
                ReplyPart::End(Ok(metadata)) => {
                    texts.retain(|text| !text.is_empty());
                    let json = structured.unwrap_or_else(|| serde_json::from_str(&texts[0]).unwrap());
                    return Ok(Answer { json, texts, metadata });
                }
                ReplyPart::End(Err(error)) => return Err(error),
                _ => {}
            }
        }
        panic!("a reply has an end")
    }

    /// Calls a tool that reads one source.
    pub(super) async fn call_source(&self, tool: &str, source: &str, arguments: &Value) -> Result<Answer, Error> {
        let mut arguments = arguments.clone();
        arguments["source"] = json!(source);
        self.call(tool, arguments).await
    }

    /// The JSON of a call that succeeds.
    pub(super) async fn answer(&self, tool: &str, source: &str, arguments: Value) -> Value {
        let answer = self.call_source(tool, source, &arguments).await;
        answer.unwrap_or_else(|error| panic!("{tool} {source} {arguments}: {error}")).json
    }
}

/// A database of files with these tables, and its folder.
fn open<'a>(
    name: &str,
    tables: impl Iterator<Item = (&'a str, &'a RecordBatch)>,
    engine: &Engine,
) -> (EmbeddedDatabase, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for (table, rows) in tables {
        write(folder.path(), table, rows);
    }
    (EmbeddedDatabase::open(name, vec![folder.path().to_owned()], engine).unwrap(), folder)
}

fn registry(databases: [Arc<dyn Database>; 3]) -> Arc<Registry> {
    let identity = NodeIdentity { name: "t".into(), title: "T".into(), version: "1".into() };
    let services = ToolServices::new(Databases::new(databases), Executor::new(EventDispatcher::default()), identity);
    let everything = AllowedNames::Everything;
    let builder = register_log_tools(SnapshotBuilder::new(), &services, &log_sources(), &everything);
    let builder = register_metric_tools(builder, &services, &metric_sources(), &everything);
    let traces = TraceSource { database: WHOLE.to_owned(), presence: TablePresence::default() };
    let builder = register_traces(builder, &services, traces, &everything);
    let registry = Registry::new(builder.build(), EventDispatcher::default());
    services.attach(&registry);
    registry
}

fn log_sources() -> LogSources {
    let source = |database: &str| LogSource {
        name: database.to_owned(),
        database: database.to_owned(),
        table: "events".to_owned(),
        ..LogSource::default()
    };
    LogSources::new([WHOLE, NETWORK, PARTIAL].map(source))
}

fn metric_sources() -> MetricSources {
    let source = |name: &str, database: &str, table: &str, labels: &[&str]| MetricSource {
        name: name.to_owned(),
        access: Vec::new(),
        kind: MetricSourceKind::Table(Box::new(MetricTable {
            database: database.to_owned(),
            table: table.to_owned(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            ..MetricTable::default()
        })),
    };
    MetricSources::new([
        source(WHOLE, WHOLE, "samples", &["site", "host"]),
        source(NETWORK, NETWORK, "samples", &["site", "host"]),
        source(PARTIAL, PARTIAL, "samples", &["site", "host"]),
        source(BY_NODE, NETWORK, "samples", &[]),
        source(WHOLE_MACHINES, WHOLE, "machines", &["site"]),
        source(NETWORK_MACHINES, NETWORK, "machines", &["site"]),
    ])
}
