//! `test_network`: reach, rights, clock, version and a round trip of each node, with what is wrong.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::TryStreamExt;
use serde::Deserialize;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{ColumnFormatter, NodeCheck, NodeDatabase, QueryRows};
use tidegate_runtime::{Answer, Job, RunningCall, Tool};
use tidegate_sql::Statement;
use tokio::time::Instant;

use super::{NetworkNode, chosen_networks, each_node, milliseconds, nodes_of, one_line, within};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::typed_rows::{TableBuilder, count_column, integer_column, text_column};

/// The time for one request to a node. A node gets three, at most.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// A larger difference of the clocks is reported: a token is valid for a minute.
const CLOCK_OFFSET_MAX: Duration = Duration::from_secs(5);
const ROUND_TRIP_SQL: &str = "SELECT 1 AS one";

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    read_only_tool(
        "test_network",
        "Test a network",
        "Tests each node of a network: reach, your rights, clock, version, a query; says what to correct.",
        InputSchemaBuilder::new().with_database().with_output_arguments(),
        context_handler(node, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
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

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { database, shape } = parse_arguments(&call)?;
    let networks = chosen_networks(&node.databases, database.as_deref(), call.principal())?;
    let nodes = nodes_of(&networks)?;
    let own_version = &node.identity.version;
    let reports =
        each_node(&nodes, async |node: Arc<dyn NodeDatabase>| test(&*node, own_version, call.job()).await).await;
    let is_terse = shape.is_default() && networks.len() == 1;
    let output_options = shape.output_options("Name one network in database.")?;
    Ok(node.executor.answer_rows(table(&nodes, &reports, is_terse)?, output_options))
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

fn table(nodes: &[NetworkNode], reports: &[NodeReport], is_terse: bool) -> Result<QueryRows, Error> {
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
