//! Tools for networks of nodes: `list_nodes` requests each node once, `locate` returns which nodes hold which part of a
//! table, and `test_network` has reach, rights, clock, version and a round trip of each node, with what is wrong.
//!
//! The tools exist only on a server with a network database, and only for callers that may query one.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::TryStreamExt;
use futures::future::join_all;
use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Access, AllowedNames, Error, ErrorKind, Principal, PrincipalRule};
use tidegate_query::{
    ColumnFormatter, Database, Databases, Network, NodeCheck, NodeDatabase, NodeObservation, PartRange, QueryRows,
    TablePart,
};
use tidegate_runtime::{Answer, Job, RunningCall, SnapshotBuilder, Tool};
use tidegate_sql::Statement;
use tokio::time::Instant;

use crate::arguments::{OutputArguments, parse_arguments};
use crate::table_names::strip_database;
use crate::tool_definition::{InputSchemaBuilder, add_tools, context_handler, read_only_tool};
use crate::tool_services::ToolServices;
use crate::typed_rows::{TableBuilder, count_column, integer_column, number_column, text_column, time_column};

/// Adds the tools that `allowed` includes to `builder`, if one of its databases is a network.
pub(crate) fn register(
    builder: SnapshotBuilder,
    services: &Arc<ToolServices>,
    allowed: &AllowedNames,
) -> SnapshotBuilder {
    let names = services.databases.names().filter_map(|name| services.databases.get_unrestricted(name));
    if !names.into_iter().any(is_network) {
        return builder;
    }
    let databases = services.databases.clone();
    let may_query = move |principal: &Principal| networks(&databases, principal).next().is_some();
    let access = Access { principal_rule: Some(PrincipalRule::new(may_query)), ..Access::default() };
    add_tools(
        builder,
        [list_nodes_tool(services), locate_tool(services), test_network_tool(services)],
        &access,
        allowed,
    )
}

fn is_network(database: &Arc<dyn Database>) -> bool {
    database.network().is_some()
}

/// The network databases that `principal` may query, ordered by name.
fn networks<'a>(databases: &'a Databases, principal: &'a Principal) -> impl Iterator<Item = &'a Arc<dyn Database>> {
    databases.visible_to(principal).filter(|database| is_network(database))
}

/// The network of that name, or all networks that `principal` may query.
///
/// # Errors
/// As [`Databases::get`]; `InvalidArguments` with the networks if the database is no network.
fn chosen_networks(
    databases: &Databases,
    name: Option<&str>,
    principal: &Principal,
) -> Result<Vec<Arc<dyn Database>>, Error> {
    let Some(name) = name else { return Ok(networks(databases, principal).cloned().collect()) };
    let database = databases.get(Some(name), principal)?;
    if !is_network(database) {
        let message = format!("the database {name:?} is no network of nodes");
        return Err(Error::new(ErrorKind::InvalidArguments, message).with_choices(network_names(databases, principal)));
    }
    Ok(vec![database.clone()])
}

fn network_names(databases: &Databases, principal: &Principal) -> Vec<String> {
    networks(databases, principal).map(|database| database.name().to_owned()).collect()
}

/// The network of `database`.
///
/// # Errors
/// Never for a database of [`chosen_networks`].
fn network_of(database: &Arc<dyn Database>) -> Result<&dyn Network, Error> {
    database.network().ok_or_else(|| Error::internal(format!("{} is no network any more", database.name())))
}

/// A node, and the name of its network.
struct NetworkNode {
    network: String,
    node: Arc<dyn NodeDatabase>,
}

/// The nodes of `networks`, in the order of the configuration.
fn nodes_of(networks: &[Arc<dyn Database>]) -> Result<Vec<NetworkNode>, Error> {
    let mut nodes = Vec::new();
    for database in networks {
        let of_network = network_of(database)?.nodes().iter();
        nodes.extend(of_network.map(|node| NetworkNode { network: database.name().to_owned(), node: node.clone() }));
    }
    Ok(nodes)
}

/// The values that `describe` has of all `nodes` at once.
async fn each_node<T, Fut: Future<Output = T>>(
    nodes: &[NetworkNode],
    describe: impl Fn(Arc<dyn NodeDatabase>) -> Fut,
) -> Vec<T> {
    join_all(nodes.iter().map(|node| describe(node.node.clone()))).await
}

/// The value of `request`, or `TimedOut` after `timeout`.
async fn within<T>(timeout: Duration, request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late =
        |_| Error::new(ErrorKind::TimedOut, format!("no answer within {} seconds", timeout.as_secs_f32().round()));
    tokio::time::timeout(timeout, request).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
}

/// What `result` says about a node.
fn state_name<T>(result: &Result<T, Error>) -> &'static str {
    match result.as_ref().map_err(Error::kind) {
        Ok(_) => "ok",
        Err(ErrorKind::Unavailable) => "unreachable",
        Err(ErrorKind::TimedOut) => "slow",
        Err(ErrorKind::Unauthenticated | ErrorKind::Forbidden) => "refused",
        Err(_) => "failed",
    }
}

fn milliseconds(time: Duration) -> Option<u64> {
    u64::try_from(time.as_millis()).ok()
}

/// `error` on one line.
fn one_line(error: &Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(|line| line.trim_end_matches('.')).collect();
    lines.join(". ")
}

/// A node that takes longer is listed with what was observed of it before.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

fn list_nodes_tool(services: &Arc<ToolServices>) -> Tool {
    read_only_tool(
        "list_nodes",
        "List nodes",
        "Nodes of a network database: state, version, latency, load.",
        InputSchemaBuilder::new().with_database().with_output_arguments(),
        context_handler(services, handle_list_nodes),
    )
}

#[derive(Deserialize)]
struct ListNodesArguments {
    database: Option<String>,
    #[serde(flatten)]
    shape: OutputArguments,
}

struct NodeRow {
    check: Result<NodeCheck, Error>,
    observed: NodeObservation,
}

async fn handle_list_nodes(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let ListNodesArguments { database, shape } = parse_arguments(&call)?;
    let networks = chosen_networks(&services.databases, database.as_deref(), call.principal())?;
    let nodes = nodes_of(&networks)?;
    let rows = each_node(&nodes, async |node: Arc<dyn NodeDatabase>| {
        let check = within(CHECK_TIMEOUT, node.check(call.principal())).await;
        NodeRow { check, observed: node.observed() }
    });
    let rows = rows.await;
    // One network is omitted from the rows, unless a program relies on the columns.
    let is_terse = shape.is_default() && networks.len() == 1;
    let output_options = shape.output_options("Name one network in database.")?;
    Ok(services.executor.answer_rows(nodes_as_rows(&nodes, &rows, is_terse)?, output_options))
}

fn nodes_as_rows(nodes: &[NetworkNode], rows: &[NodeRow], is_terse: bool) -> Result<QueryRows, Error> {
    let mut table = TableBuilder::new();
    if !is_terse {
        table = table.with_column("database", text_column(nodes.iter().map(|node| Some(node.network.clone()))));
    }
    let checks = || rows.iter().map(|row| row.check.as_ref().ok());
    let url = |(node, row): (&NetworkNode, &NodeRow)| match &row.check {
        Ok(check) => check.url.clone(),
        Err(_) => node.node.url(),
    };
    let version = |row: &NodeRow| match &row.check {
        Ok(check) => Some(check.version.clone()),
        Err(_) => row.observed.version.clone(),
    };
    let latency =
        |row: &NodeRow| milliseconds(row.check.as_ref().map_or(row.observed.latency, |check| Some(check.latency))?);
    table
        .with_column("node", text_column(nodes.iter().map(|node| Some(node.node.name().to_owned()))))
        .with_column("url", text_column(nodes.iter().zip(rows).map(|row| Some(url(row)))))
        .with_column("state", text_column(rows.iter().map(|row| Some(state_name(&row.check).to_owned()))))
        .with_column("version", text_column(rows.iter().map(version)))
        .with_column("latency_ms", count_column(rows.iter().map(latency)))
        .with_column("last_seen", time_column(rows.iter().map(|row| row.observed.last_seen)))
        .with_column("running_calls", count_column(checks().map(|check| check.map(|check| check.running_calls))))
        .with_column("clock_offset_ms", integer_column(checks().map(|check| check.map(|check| check.clock_offset_ms))))
        .with_column("failure", text_column(rows.iter().map(|row| row.check.as_ref().err().map(one_line))))
        .into_rows()
}

fn locate_tool(services: &Arc<ToolServices>) -> Tool {
    read_only_tool(
        "locate",
        "Locate a table",
        "Which nodes of a network hold which part of a table: rows, share, size, ranges, conditions.",
        InputSchemaBuilder::new()
            .with_database()
            .with_required("table", json!({"type": "string"}))
            .with_output_arguments(),
        context_handler(services, handle_locate),
    )
}

#[derive(Deserialize)]
struct LocateArguments {
    database: Option<String>,
    table: String,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle_locate(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let LocateArguments { database, table, shape } = parse_arguments(&call)?;
    let output_options = shape.output_options("")?;
    let database = find_network(&services, database.as_deref(), &table, call.principal())?;
    let network = network_of(&database)?;
    let located = match (network.locate(&table, call.job()).await, strip_database(&table, database.name())) {
        // The name of the network is before the table.
        (Err(error), Some(table)) if error.kind() == ErrorKind::NotFound => network.locate(table, call.job()).await,
        (located, _) => located,
    };
    Ok(services.executor.answer_rows(parts_as_rows(&located?)?, output_options))
}

/// The network that is named, in `database` or before `table`, or the only one.
fn find_network(
    services: &ToolServices,
    database: Option<&str>,
    table: &str,
    principal: &Principal,
) -> Result<Arc<dyn Database>, Error> {
    let chosen = chosen_networks(&services.databases, database, principal)?;
    if let [only] = &chosen[..] {
        return Ok(only.clone());
    }
    let named =
        networks(&services.databases, principal).filter(|network| strip_database(table, network.name()).is_some());
    // Two names may differ only in case.
    let named = named.max_by_key(|network| (network.name().len(), table.starts_with(network.name())));
    named.cloned().ok_or_else(|| {
        let message = "name the network in the argument \"database\", or before the table: database.table";
        Error::new(ErrorKind::InvalidArguments, message).with_choices(network_names(&services.databases, principal))
    })
}

fn parts_as_rows(parts: &[TablePart]) -> Result<QueryRows, Error> {
    let total = parts.iter().map(|part| part.rows).sum::<Option<u64>>().filter(|total| *total > 0);
    let share = |part: &TablePart| {
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = part.rows? as f64 / total? as f64;
        Some((share * 10_000.0).round() / 10_000.0)
    };
    let notes = |part: &TablePart| Some(part.notes.join("; ")).filter(|notes| !notes.is_empty());
    let range = |range: &PartRange| format!("{}: {} to {}", range.column, range.smallest, range.largest);
    let ranges = |part: &TablePart| {
        let ranges: Vec<String> = part.ranges.iter().map(range).collect();
        (!ranges.is_empty()).then(|| ranges.join("; "))
    };
    TableBuilder::new()
        .with_column("node", text_column(parts.iter().map(|part| Some(part.node.clone()))))
        .with_column("rows", count_column(parts.iter().map(|part| part.rows)))
        .with_column("share", number_column(parts.iter().map(share)))
        .with_column("bytes", count_column(parts.iter().map(|part| part.bytes)))
        .with_column("ranges", text_column(parts.iter().map(ranges)))
        .with_column("known_since", time_column(parts.iter().map(|part| part.known_since)))
        .with_column("holds", text_column(parts.iter().map(|part| part.holds.clone())))
        .with_column("notes", text_column(parts.iter().map(notes)))
        .into_rows()
}

/// The time for one request to a node. A node gets three, at most.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// A larger difference of the clocks is reported: a token is valid for a minute.
const CLOCK_OFFSET_MAX: Duration = Duration::from_secs(5);
const ROUND_TRIP_SQL: &str = "SELECT 1 AS one";

fn test_network_tool(services: &Arc<ToolServices>) -> Tool {
    read_only_tool(
        "test_network",
        "Test a network",
        "Tests each node of a network: reach, your rights, clock, version, a query; says what to correct.",
        InputSchemaBuilder::new().with_database().with_output_arguments(),
        context_handler(services, handle_test_network),
    )
}

#[derive(Deserialize)]
struct TestNetworkArguments {
    database: Option<String>,
    #[serde(flatten)]
    shape: OutputArguments,
}

/// What the test of one node found.
#[derive(Default)]
struct NodeReport {
    check: Option<NodeCheck>,
    tables: Option<u64>,
    round_trip: Option<Duration>,
    failures: Vec<String>,
    warnings: Vec<String>,
}

impl NodeReport {
    fn result(&self) -> &'static str {
        match (self.failures.is_empty(), self.warnings.is_empty()) {
            (false, _) => "failed",
            (true, false) => "warning",
            (true, true) => "ok",
        }
    }

    fn problem(&self) -> Option<String> {
        let all: Vec<&str> = self.failures.iter().chain(&self.warnings).map(String::as_str).collect();
        Some(all.join(" ")).filter(|text| !text.is_empty())
    }
}

async fn handle_test_network(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let TestNetworkArguments { database, shape } = parse_arguments(&call)?;
    let networks = chosen_networks(&services.databases, database.as_deref(), call.principal())?;
    let nodes = nodes_of(&networks)?;
    let own_version = &services.identity.version;
    let reports =
        each_node(&nodes, async |node: Arc<dyn NodeDatabase>| test(&*node, own_version, call.job()).await).await;
    let is_terse = shape.is_default() && networks.len() == 1;
    let output_options = shape.output_options("Name one network in database.")?;
    Ok(services.executor.answer_rows(reports_as_rows(&nodes, &reports, is_terse)?, output_options))
}

async fn test(node: &dyn NodeDatabase, own_version: &str, job: &Arc<Job>) -> NodeReport {
    let mut report = NodeReport::default();
    match within(REQUEST_TIMEOUT, node.check(job.principal())).await {
        Ok(check) => {
            report.warnings.extend(clock_warning(&check));
            report.warnings.extend(version_warning(&check, own_version));
            report.check = Some(check);
        }
        Err(error) => {
            report.failures.push(describe(&error));
            return report;
        }
    }
    match within(REQUEST_TIMEOUT, node.tables(job.principal())).await {
        Ok(tables) if tables.tables.is_empty() => {
            let message = "This subject sees no table there. A role of it at the node must include the database.";
            report.warnings.push(message.to_owned());
            report.tables = Some(0);
        }
        Ok(tables) => report.tables = Some(tables.tables.len() as u64),
        Err(error) => report.failures.push(format!("Its tables cannot be listed: {}", describe(&error))),
    }
    let started = Instant::now();
    match within(REQUEST_TIMEOUT, select_one(node, job)).await {
        Ok(()) => report.round_trip = Some(started.elapsed()),
        Err(error) => report.failures.push(format!("{ROUND_TRIP_SQL} fails: {}", describe(&error))),
    }
    report
}

async fn select_one(node: &dyn NodeDatabase, job: &Arc<Job>) -> Result<(), Error> {
    let statement = Statement::parse(ROUND_TRIP_SQL, node.dialect())?;
    let rows = node.run(&statement, job.principal(), job).await?;
    let batches: Vec<RecordBatch> = rows.batches.try_collect().await?;
    let values: Vec<Option<String>> = batches.iter().filter(|batch| batch.num_columns() == 1).flat_map(texts).collect();
    if values == [Some("1".to_owned())] {
        return Ok(());
    }
    let values: Vec<&str> = values.iter().map(|value| value.as_deref().unwrap_or("null")).collect();
    let message = format!("the answer has the values {}; expected one row with the value 1", values.join(", "));
    Err(Error::new(ErrorKind::Failed, message))
}

/// The values of the first column.
fn texts(batch: &RecordBatch) -> Vec<Option<String>> {
    let formatter = ColumnFormatter::new(batch.schema_ref().field(0), batch.column(0).as_ref());
    (0..batch.num_rows()).map(|row| formatter.format_value(row)).collect()
}

/// The error with what to correct, as far as its kind implies it.
fn describe(error: &Error) -> String {
    let correction = match error.kind() {
        ErrorKind::Unavailable => "Start the node, or correct its url in the configuration of this server.",
        ErrorKind::TimedOut => "The node is overloaded or stopped, or the network drops its packets.",
        ErrorKind::Unauthenticated => {
            "auth.tokens of the node must accept the issuer, the key and the audience of this server's tokens."
        }
        ErrorKind::Forbidden => "The roles of this subject at the node must permit it.",
        ErrorKind::NotFound => "database of the node must name a database there that this subject may query.",
        _ => return format!("{}.", one_line(error)),
    };
    format!("{}. {correction}", one_line(error))
}

fn clock_warning(check: &NodeCheck) -> Option<String> {
    let offset = Duration::from_millis(check.clock_offset_ms.unsigned_abs());
    // The offset is accurate to half of the round trip.
    if offset <= CLOCK_OFFSET_MAX + check.latency / 2 {
        return None;
    }
    let seconds = offset.as_secs_f64();
    let direction = if check.clock_offset_ms > 0 { "ahead of" } else { "behind" };
    Some(format!(
        "Its clock is {seconds:.1} s {direction} this server's. Synchronise both: a token is valid for a minute."
    ))
}

fn version_warning(check: &NodeCheck, own_version: &str) -> Option<String> {
    let is_other = check.version != own_version;
    is_other.then(|| format!("It runs version {}, and this server {own_version}. Use one version.", check.version))
}

fn reports_as_rows(nodes: &[NetworkNode], reports: &[NodeReport], is_terse: bool) -> Result<QueryRows, Error> {
    let mut table = TableBuilder::new();
    if !is_terse {
        table = table.with_column("database", text_column(nodes.iter().map(|node| Some(node.network.clone()))));
    }
    let checks = || reports.iter().map(|report| report.check.as_ref());
    let url = |(node, report): (&NetworkNode, &NodeReport)| match &report.check {
        Some(check) => check.url.clone(),
        None => node.node.url(),
    };
    table
        .with_column("node", text_column(nodes.iter().map(|node| Some(node.node.name().to_owned()))))
        .with_column("result", text_column(reports.iter().map(|report| Some(report.result().to_owned()))))
        .with_column("url", text_column(nodes.iter().zip(reports).map(|row| Some(url(row)))))
        .with_column("subject", text_column(checks().map(|check| check.map(|check| check.subject.clone()))))
        .with_column("version", text_column(checks().map(|check| check.map(|check| check.version.clone()))))
        .with_column("clock_offset_ms", integer_column(checks().map(|check| check.map(|check| check.clock_offset_ms))))
        .with_column("tables", count_column(reports.iter().map(|report| report.tables)))
        .with_column("latency_ms", count_column(checks().map(|check| milliseconds(check?.latency))))
        .with_column("round_trip_ms", count_column(reports.iter().map(|report| milliseconds(report.round_trip?))))
        .with_column("problem", text_column(reports.iter().map(NodeReport::problem)))
        .into_rows()
}
