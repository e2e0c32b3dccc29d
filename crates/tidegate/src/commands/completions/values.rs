//! The values of arguments: names of the configuration, and what a node over its databases has.
//!
//! Names that the configuration alone has are offered in any case. A node adds to them if it opens in time.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use futures::future::join_all;
use tidegate_core::schema_description;
use tidegate_query::{Database, DatabaseKind, REJECTS_SUFFIX};
use tokio::time::timeout;

use super::typed_line::{TypedLine, TypedOptions};
use super::value_kind::ValueKind;
use crate::application::{Application, StartOptions};
use crate::config::Config;

/// How long a node may take to open and to list tables. A user waits for it.
pub(super) const NODE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long one database may take to list its tables, so that one which does not answer hides no others.
const CATALOG_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the databases may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);
/// The number of values that a shell gets. A longer list cannot be read.
const VALUES_MAX: usize = 1_000;
/// The length of a description.
const DESCRIPTION_CHARS_MAX: usize = 80;

/// The values of `kind` that begin with `typed`. A configuration with errors has none.
pub(super) fn find(kind: ValueKind, typed: &str, line: &TypedLine) -> Vec<CompletionCandidate> {
    if kind == ValueKind::Path {
        return paths(typed);
    }
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else { return Vec::new() };
    let mut values = runtime.block_on(read_values(kind, typed, line));
    // What is left open ends with the process.
    runtime.shutdown_timeout(CLOSE_TIMEOUT);
    // A line of the output is a word.
    let fits = |text: &str| text.starts_with(typed) && !text.contains(char::is_control);
    values.retain(|value| value.get_value().to_str().is_some_and(fits));
    values.sort_by(|one, other| one.get_value().cmp(other.get_value()));
    values.dedup_by(|one, other| one.get_value() == other.get_value());
    values.truncate(VALUES_MAX);
    values
}

/// Paths, also after `NAME=`. A flag with a value is no path, although positional arguments are asked for it, too.
fn paths(typed: &str) -> Vec<CompletionCandidate> {
    if typed.starts_with('-') {
        return Vec::new();
    }
    let name = typed.split_once('=').map(|(name, _)| name).filter(|name| !name.contains(['/', '.']));
    let (prefix, path) = typed.split_at(name.map_or(0, |name| name.len() + 1));
    let found = PathCompleter::any().complete(OsStr::new(path)).into_iter();
    found.map(|candidate| candidate.add_prefix(prefix)).collect()
}

async fn read_values(kind: ValueKind, typed: &str, line: &TypedLine) -> Vec<CompletionCandidate> {
    let Some(options) = line.options() else { return Vec::new() };
    let Ok(spec) = StartOptions::read(options.sources.as_deref(), &options.global) else { return Vec::new() };
    let loaded = spec.loaded_config.clone();
    let config = &loaded.config;
    match kind {
        ValueKind::Path => Vec::new(),
        ValueKind::Toolset => config.toolsets.keys().map(CompletionCandidate::new).collect(),
        ValueKind::Role => roles(config, typed),
        ValueKind::Database => databases(&spec),
        // The tables and tools of a running server are not here.
        _ if options.connects => Vec::new(),
        ValueKind::IngestTable => ingest_tables(spec, config).await,
        ValueKind::WriteTarget => {
            let taking = config.databases.iter().filter(|entry| entry.used_keys().ingest_tables.is_some());
            let mut values: Vec<_> = taking.map(|entry| CompletionCandidate::new(&entry.name)).collect();
            values.extend(ingest_tables(spec, config).await);
            values
        }
        ValueKind::Tool => tools(spec, config).await,
        ValueKind::AccessedName => {
            let mut values = databases(&spec);
            values.extend(tools(spec, config).await);
            values
        }
        ValueKind::ToolArgument => tool_arguments(spec, &options, typed).await,
    }
}

/// The candidate `text` with the first line of its description, which shells print beside it.
fn describe(text: &str, description: &str) -> CompletionCandidate {
    // It may come from a database, and the shell, which reads it from a pipe, prints it as it is.
    let line = description.lines().next().unwrap_or_default();
    let mut characters = line.chars().filter(|character| !character.is_control());
    let mut shortened: String = characters.by_ref().take(DESCRIPTION_CHARS_MAX).collect();
    if characters.next().is_some() {
        shortened.push('…');
    }
    CompletionCandidate::new(text).help((!shortened.is_empty()).then(|| shortened.into()))
}

fn databases(spec: &StartOptions<'_>) -> Vec<CompletionCandidate> {
    spec.database_names().into_iter().map(CompletionCandidate::new).collect()
}

/// Roles, with those before the last comma kept.
fn roles(config: &Config, typed: &str) -> Vec<CompletionCandidate> {
    let kept = typed.rfind(',').map_or("", |comma| &typed[..=comma]);
    config.roles.iter().map(|role| CompletionCandidate::new(format!("{kept}{}", role.name))).collect()
}

/// What `read` finds in the node, if the node opens in time: its databases may not answer.
async fn from_node<T: Default>(spec: StartOptions<'_>, read: impl AsyncFnOnce(&Application) -> T) -> T {
    let reading = async {
        let application = spec.open().await.ok()?;
        let found = read(&application).await;
        Some((application, found))
    };
    let Ok(Some((application, found))) = timeout(NODE_TIMEOUT, reading).await else { return T::default() };
    // What is left open ends with the process.
    let _ = timeout(CLOSE_TIMEOUT, application.close()).await;
    found
}

async fn tools(spec: StartOptions<'_>, config: &Config) -> Vec<CompletionCandidate> {
    let declared = config.tools.iter();
    let mut tools: Vec<_> = declared.map(|tool| describe(&tool.name, &tool.description)).collect();
    let of_node: Vec<CompletionCandidate> = from_node(spec, async |application| {
        let Ok(caller) = application.local_caller(None) else { return Vec::new() };
        let snapshot = application.node().registry().snapshot();
        let offered = snapshot.tools(&caller);
        offered.map(|tool| describe(&tool.name, tool.description.as_deref().unwrap_or_default())).collect()
    })
    .await;
    tools.extend(of_node);
    tools
}

/// `KEY=` of the tool, and the names of databases and tables after `database=` and `table=`.
async fn tool_arguments(spec: StartOptions<'_>, options: &TypedOptions, typed: &str) -> Vec<CompletionCandidate> {
    match (typed.split_once('='), &options.tool) {
        (Some(("database", _)), _) => databases(&spec).into_iter().map(|value| value.add_prefix("database=")).collect(),
        (Some(("table", _)), _) => {
            let tables = from_node(spec, async |application| {
                table_names(&application.applier.open_databases(), application).await
            })
            .await;
            tables.into_iter().map(|table| CompletionCandidate::new(format!("table={table}"))).collect()
        }
        (Some(_), _) | (None, None) => Vec::new(),
        (None, Some(tool)) => {
            from_node(spec, async |application| {
                let Ok(caller) = application.local_caller(None) else { return Vec::new() };
                let snapshot = application.node().registry().snapshot();
                let Ok(tool) = snapshot.tool(tool, &caller) else { return Vec::new() };
                let schema = tool.input_schema.json();
                let properties = schema["properties"].as_object().into_iter().flatten();
                let keys = properties.map(|(key, property)| describe(&format!("{key}="), schema_description(property)));
                keys.collect()
            })
            .await
        }
    }
}

/// The tables of `databases`, with the name of the database before them if there are several.
async fn table_names(databases: &[Arc<dyn Database>], application: &Application) -> Vec<String> {
    let stored: Vec<_> = databases.iter().filter(|database| database.kind() != DatabaseKind::Federated).collect();
    let is_only = stored.len() == 1;
    let tables = qualified_tables(stored.into_iter(), application).await.into_iter();
    tables.map(|(database, table)| if is_only { table } else { format!("{database}.{table}") }).collect()
}

/// The tables of `databases`, each with the name of its database. One that does not answer has none.
async fn qualified_tables(
    databases: impl Iterator<Item = &Arc<dyn Database>>,
    application: &Application,
) -> Vec<(String, String)> {
    let Ok(caller) = application.local_caller(None) else { return Vec::new() };
    let principal = &caller.principal;
    let listed = databases.map(|database| async move {
        let catalog = timeout(CATALOG_TIMEOUT, database.catalog(principal)).await;
        let tables = catalog.ok().and_then(Result::ok).map(|catalog| catalog.tables.clone()).unwrap_or_default();
        tables.into_iter().map(|table| (database.name().to_owned(), table.name)).collect::<Vec<_>>()
    });
    join_all(listed).await.into_iter().flatten().collect()
}

/// `DATABASE.TABLE` of the tables that take rows: the declared ones, and those of a folder that were created later.
async fn ingest_tables(spec: StartOptions<'_>, config: &Config) -> Vec<CompletionCandidate> {
    let entries = config.databases.iter();
    let folders = entries.clone().filter(|entry| entry.used_keys().folder.is_some());
    let folders: Vec<&str> = folders.map(|entry| entry.name.as_str()).collect();
    let names = entries.filter_map(|entry| Some((&entry.name, entry.used_keys().ingest_tables?)));
    let declared = names.flat_map(|(database, tables)| tables.into_iter().map(move |table| (database.clone(), table)));
    let mut tables: Vec<(String, String)> = declared.collect();
    if !folders.is_empty() {
        let stored = from_node(spec, async |application| {
            let open = application.applier.open_databases();
            qualified_tables(open.iter().filter(|database| folders.contains(&database.name())), application).await
        });
        tables.extend(stored.await);
    }
    let taking_rows = tables.into_iter().filter(|(_, table)| !table.ends_with(REJECTS_SUFFIX));
    taking_rows.map(|(database, table)| CompletionCandidate::new(format!("{database}.{table}"))).collect()
}
