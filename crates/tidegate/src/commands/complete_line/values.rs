//! The values of arguments: names of the configuration, and what a node over its databases has.
//!
//! Names that the configuration alone has are offered in any case. A node adds to them if it opens in time.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tidegate_query::{Database, REJECTS_SUFFIX};
use tokio::time::timeout;

use super::Candidate;
use super::typed_line::{TypedLine, TypedOptions};
use super::value_kind::ValueKind;
use crate::config::{self, Config};
use crate::open_node::{NodeSpec, OpenNode};
use crate::options::LimitDefaults;

/// How long a node may take to open and to list tables. A user waits for it.
pub(super) const NODE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long one database may take to list its tables, so that one which does not answer hides no others.
const CATALOG_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the databases may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);
/// The kind of databases whose tables are those of other databases.
const FEDERATED: &str = "federated";
/// The number of values that a shell gets. A longer list cannot be read.
const VALUES_MAX: usize = 1_000;

/// The values of `kind` that may begin with `typed`. A configuration with errors has none.
pub(super) async fn find(kind: ValueKind, typed: &str, line: &TypedLine) -> Vec<Candidate> {
    let Some(options) = line.options() else { return Vec::new() };
    let Ok(spec) = NodeSpec::read(options.sources.as_deref(), &options.global) else { return Vec::new() };
    let loaded = spec.loaded_config.clone();
    let config = &loaded.config;
    let mut values = match kind {
        ValueKind::Path => Vec::new(),
        ValueKind::Toolset => config.toolsets.keys().map(Candidate::new).collect(),
        ValueKind::Role => roles(config, typed),
        ValueKind::Database => databases(&spec),
        // The tables and tools of a running server are not here.
        _ if options.connects => Vec::new(),
        ValueKind::IngestTable => ingest_tables(spec, config).await,
        ValueKind::IngestTarget => {
            let names = config::ingest_names(config).into_iter().map(|names| Candidate::new(names.database)).collect();
            [names, ingest_tables(spec, config).await].concat()
        }
        ValueKind::Tool => tools(spec, config).await,
        ValueKind::AccessedName => {
            let databases = databases(&spec);
            [tools(spec, config).await, databases].concat()
        }
        ValueKind::ToolArgument => tool_arguments(spec, &options, typed).await,
    };
    values.sort_by(|one, other| one.text.cmp(&other.text));
    values.dedup_by(|one, other| one.text == other.text);
    values.truncate(VALUES_MAX);
    values
}

fn databases(spec: &NodeSpec<'_>) -> Vec<Candidate> {
    spec.database_names().into_iter().map(Candidate::new).collect()
}

/// Roles, with those before the last comma kept.
fn roles(config: &Config, typed: &str) -> Vec<Candidate> {
    let kept = typed.rfind(',').map_or("", |comma| &typed[..=comma]);
    config.roles.iter().map(|role| Candidate::new(format!("{kept}{}", role.name))).collect()
}

/// What `read` finds in the node, if the node opens in time: its databases may not answer.
async fn from_node<T: Default>(spec: NodeSpec<'_>, read: impl AsyncFnOnce(&OpenNode) -> T) -> T {
    let reading = async {
        let node = spec.open(LimitDefaults::CommandLine).await.ok()?;
        let found = read(&node).await;
        Some((node, found))
    };
    let Ok(Some((node, found))) = timeout(NODE_TIMEOUT, reading).await else { return T::default() };
    // What is left open ends with the process.
    let _ = timeout(CLOSE_TIMEOUT, node.close()).await;
    found
}

async fn tools(spec: NodeSpec<'_>, config: &Config) -> Vec<Candidate> {
    let declared = config.tools.iter();
    let declared: Vec<Candidate> =
        declared.map(|tool| Candidate::new(&tool.name).with_description(&tool.description)).collect();
    let of_node: Vec<Candidate> = from_node(spec, async |node| {
        let Ok(caller) = node.local_caller(None) else { return Vec::new() };
        let snapshot = node.node().registry().snapshot();
        let described = snapshot
            .tools(&caller)
            .map(|tool| Candidate::new(&tool.name).with_description(tool.description.as_deref().unwrap_or_default()));
        described.collect()
    })
    .await;
    declared.into_iter().chain(of_node).collect()
}

/// `KEY=` of the tool, and the names of databases and tables after `database=` and `table=`.
async fn tool_arguments(spec: NodeSpec<'_>, options: &TypedOptions, typed: &str) -> Vec<Candidate> {
    let with_key = |key: &str, values: Vec<Candidate>| {
        let values = values.into_iter();
        values.map(|value| Candidate { text: format!("{key}={}", value.text), ..value }).collect()
    };
    match (typed.split_once('='), &options.tool) {
        (Some(("database", _)), _) => with_key("database", databases(&spec)),
        (Some(("table", _)), _) => {
            let tables = from_node(spec, async |node| table_names(&node.assembly.open_databases(), node).await).await;
            with_key("table", tables.into_iter().map(Candidate::new).collect())
        }
        (Some(_), _) | (None, None) => Vec::new(),
        (None, Some(tool)) => {
            from_node(spec, async |node| {
                let Ok(caller) = node.local_caller(None) else { return Vec::new() };
                let snapshot = node.node().registry().snapshot();
                let Ok(tool) = snapshot.tool(tool, &caller) else { return Vec::new() };
                let schema = tool.input_schema.json();
                let properties = schema["properties"].as_object().into_iter().flatten();
                let described = properties.map(|(key, property)| {
                    let description = property["description"].as_str().unwrap_or_default();
                    Candidate::new(format!("{key}=")).with_description(description)
                });
                described.collect()
            })
            .await
        }
    }
}

/// The tables of `databases`, with the name of the database before them if there are several.
async fn table_names(databases: &[Arc<dyn Database>], node: &OpenNode) -> Vec<String> {
    let stored: Vec<_> = databases.iter().filter(|database| database.kind() != FEDERATED).collect();
    let is_only = stored.len() == 1;
    let tables = qualified_tables(stored.into_iter(), node).await.into_iter();
    tables.map(|(database, table)| if is_only { table } else { format!("{database}.{table}") }).collect()
}

/// The tables of `databases`, each with the name of its database. One that does not answer has none.
async fn qualified_tables(
    databases: impl Iterator<Item = &Arc<dyn Database>>,
    node: &OpenNode,
) -> Vec<(String, String)> {
    let Ok(caller) = node.local_caller(None) else { return Vec::new() };
    let principal = &caller.principal;
    let listed = databases.map(|database| async move {
        let catalog = timeout(CATALOG_TIMEOUT, database.catalog(principal)).await;
        let tables = catalog.ok().and_then(Result::ok).map(|catalog| catalog.tables.clone()).unwrap_or_default();
        tables.into_iter().map(|table| (database.name().to_owned(), table.name)).collect::<Vec<_>>()
    });
    join_all(listed).await.into_iter().flatten().collect()
}

/// `DATABASE.TABLE` of the tables that take rows: the declared ones, and those of a folder that were created later.
async fn ingest_tables(spec: NodeSpec<'_>, config: &Config) -> Vec<Candidate> {
    let named = config::ingest_names(config);
    let folders: Vec<&str> = named.iter().filter(|names| names.is_folder).map(|names| names.database).collect();
    let declared =
        named.iter().flat_map(|names| names.tables.iter().map(|table| (names.database.to_owned(), table.clone())));
    let mut tables: Vec<(String, String)> = declared.collect();
    if !folders.is_empty() {
        let stored = from_node(spec, async |node| {
            let open = node.assembly.open_databases();
            qualified_tables(open.iter().filter(|database| folders.contains(&database.name())), node).await
        });
        tables.extend(stored.await);
    }
    let taking_rows = tables.into_iter().filter(|(_, table)| !table.ends_with(REJECTS_SUFFIX));
    taking_rows.map(|(database, table)| Candidate::new(format!("{database}.{table}"))).collect()
}
