//! Runs a prepared statement, after the planner's estimate for it.

use std::pin::pin;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures::StreamExt;
use serde_json::Value;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{Plan, QueryRows, changed_rows_batch, changed_rows_schema};
use tidegate_runtime::Job;
use tidegate_runtime::event::QueryStep;
use tidegate_sql::{Author, CommitRule, Statement, Transaction};
use tokio::sync::OnceCell;
use tokio_postgres::types::ToSql;

use crate::pool::Lease;
use crate::prepared::PreparedStatement;
use crate::running_statement::{ErrorContext, RowError, RunningStatement, TransactionCommands, spawn_forwarder};
use crate::server::PostgresServer;
use crate::session::{COMMIT, ROLLBACK, ROLLBACK_AND_UNLOCK, TransactionIdentity};
use crate::values::{BoundParameter, RawBytes};
use crate::{error, session};

/// The maximum size of the rows of a writing statement that are held until it is committed, in bytes. If there are more,
/// rows are sent before.
const BUFFERED_BYTES_MAX: usize = 4 << 20;

pub(crate) struct PostgresPlan {
    pub(crate) server: Arc<PostgresServer>,
    pub(crate) statement: Statement,
    pub(crate) identity: TransactionIdentity,
    /// Before the lease, so that it is closed within the transaction.
    pub(crate) prepared: Arc<PreparedStatement>,
    pub(crate) lease: Lease,
    /// Whether its transaction has begun; otherwise it begins together with the statement.
    pub(crate) has_begun: bool,
    pub(crate) estimate: OnceCell<PlanEstimate>,
}

/// The outcome of an attempt to run a statement up to its first rows.
enum RunAttempt {
    Rows(QueryRows),
    /// It conflicted with concurrent transactions.
    Conflict(Error, Lease),
    /// The prepared statement no longer matches its tables.
    Outdated(Error, Lease),
}

#[async_trait]
impl Plan for PostgresPlan {
    fn schema(&self) -> SchemaRef {
        answer_schema(&self.prepared, self.statement.transaction())
    }

    fn estimated_rows(&self) -> Option<u64> {
        self.estimate.get().and_then(PlanEstimate::rows)
    }

    fn is_pipeline_breaking(&self) -> Option<bool> {
        self.estimate.get().and_then(PlanEstimate::is_pipeline_breaking)
    }

    async fn explain(&self) -> Result<String, Error> {
        // Without a transaction, the server keeps no locks, which name the tables that the plan depends on.
        if !self.has_begun {
            return Ok(HIDDEN_PLAN.to_owned());
        }
        let request = || PlanEstimate::request(&self.lease, &self.statement, &self.server.database);
        Ok(self.estimate.get_or_try_init(request).await?.render())
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        let Self { server, statement, identity, mut lease, mut prepared, mut has_begun, .. } = *self;
        let transaction = statement.transaction().clone();
        let (mut retries, mut backoff) = (0, session::retry_backoff());
        let mut was_outdated = false;
        loop {
            let run = PlanRun { server: &server, statement: &statement, transaction: &transaction, job };
            match run.attempt(lease, prepared, has_begun).await? {
                RunAttempt::Rows(rows) => return Ok(rows),
                RunAttempt::Conflict(error, freed) => {
                    if retries == transaction.retries_max {
                        return Err(error);
                    }
                    retries += 1;
                    job.report_step(QueryStep::Retried { reason: "its transaction conflicted with another one" });
                    tokio::time::sleep(backoff.next_delay()).await;
                    lease = freed;
                }
                RunAttempt::Outdated(error, freed) => {
                    if std::mem::replace(&mut was_outdated, true) {
                        return Err(error);
                    }
                    lease = freed;
                    job.report_step(QueryStep::Retried { reason: "its tables changed" });
                    Box::pin(server.forget_prepared(&mut lease, &statement, &identity)).await?;
                }
            }
            has_begun = true;
            let preparing = async {
                lease.begin(&transaction, &identity).await?;
                server.prepare(&mut lease, &statement, &transaction, &identity).await
            };
            prepared = Box::pin(preparing).await?;
        }
    }
}

/// The columns of the answer. A statement that writes and returns no rows is answered with the number of changed rows.
pub(crate) fn answer_schema(prepared: &PreparedStatement, transaction: &Transaction) -> SchemaRef {
    if is_counted(prepared, transaction) { changed_rows_schema() } else { prepared.schema.clone() }
}

fn is_counted(prepared: &PreparedStatement, transaction: &Transaction) -> bool {
    transaction.writes && (prepared.columns.is_empty() || transaction.commit == CommitRule::Never)
}

struct PlanRun<'a> {
    server: &'a PostgresServer,
    statement: &'a Statement,
    transaction: &'a Transaction,
    job: &'a Job,
}

impl PlanRun<'_> {
    async fn attempt(
        &self,
        lease: Lease,
        prepared: Arc<PreparedStatement>,
        has_begun: bool,
    ) -> Result<RunAttempt, Error> {
        let schema = answer_schema(&prepared, self.transaction);
        let context = ErrorContext {
            database: self.server.database.clone(),
            text: self.statement.text().into(),
            author: self.statement.author(),
        };
        let runs_alone = !has_begun && prepared.runs_alone.get() == Some(&true) && lease.session()?.is_unchanged();
        let bounds = if runs_alone { TransactionCommands::Implicit } else { self.transaction_commands(has_begun) };
        let started = RunningStatement::start(lease, prepared, self.statement.parameters(), bounds, context.clone());
        let work = async {
            let mut running = started.await?;
            match self.read_first_batches(&mut running).await {
                Ok(batches) => Ok((running, batches)),
                Err(error) => {
                    let freed = Box::pin(running.recover_lease(&error)).await;
                    Err((error, freed))
                }
            }
        };
        let (error, freed) = match self.run_in_time(pin!(work)).await? {
            Ok((running, batches)) => return self.deliver(running, batches, schema).await.map(RunAttempt::Rows),
            Err(failed) => failed,
        };
        let (is_conflict, is_outdated) = match &error {
            RowError::Server(error) => (error::is_retryable(error), error::is_statement_outdated(error)),
            RowError::Value(_) => (false, false),
        };
        let error = error.into_error(&context);
        match freed {
            Some(lease) if is_conflict => Ok(RunAttempt::Conflict(error, lease)),
            Some(lease) if is_outdated => Ok(RunAttempt::Outdated(error, lease)),
            _ => Err(error),
        }
    }

    /// The batches before anything is sent: the first one; for a writing statement all, if they are small.
    async fn read_first_batches(&self, running: &mut RunningStatement) -> Result<Vec<RecordBatch>, RowError> {
        let mut batches = Vec::new();
        let mut bytes = 0;
        while let Some(batch) = running.next().await? {
            if self.transaction.commit == CommitRule::Never {
                continue;
            }
            bytes += batch.get_array_memory_size();
            batches.push(batch);
            if !self.transaction.writes || bytes > BUFFERED_BYTES_MAX {
                break;
            }
        }
        Ok(batches)
    }

    async fn deliver(
        &self,
        running: RunningStatement,
        first: Vec<RecordBatch>,
        schema: SchemaRef,
    ) -> Result<QueryRows, Error> {
        if running.has_ended() {
            let context = running.context().clone();
            let is_counted = is_counted(running.prepared(), self.transaction);
            let changed = running.rows_affected().unwrap_or_default();
            running.finish(self.transaction.commit).await.map_err(|error| error.into_error(&context))?;
            if is_counted {
                return Ok(QueryRows::from_batch(changed_rows_batch(changed)));
            }
            let batches = futures::stream::iter(first.into_iter().map(Ok)).boxed();
            return Ok(QueryRows::new(schema, batches));
        }
        let first = futures::stream::iter(first.into_iter().map(Ok));
        let background_tasks = self.server.pool.background_tasks().clone();
        let rest = spawn_forwarder(running, background_tasks, self.job.cancellation(), self.transaction);
        Ok(QueryRows::new(schema, first.chain(rest).boxed()))
    }

    /// Ends `work` when the job, the database or the time limit for the first row ends.
    async fn run_in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let limit = self.transaction.first_row_timeout;
        let timeout = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.job.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the query was cancelled")),
            error = self.server.pool.closed() => Err(error),
            outcome = work => Ok(outcome),
            () = timeout => {
                let limit = limit.unwrap_or_default().as_millis();
                Err(Error::new(ErrorKind::TimedOut, format!("no row came within {limit} ms")))
            }
        }
    }

    fn transaction_commands(&self, has_begun: bool) -> TransactionCommands {
        let writes = self.transaction.writes;
        let end_sql = match self.statement.author() {
            _ if writes && self.transaction.commit != CommitRule::Never => COMMIT,
            Author::Owner | Author::Handler => ROLLBACK,
            Author::Caller => ROLLBACK_AND_UNLOCK,
        };
        TransactionCommands::Explicit {
            begin_sql: (!has_begun).then(|| session::begin_sql(self.transaction)),
            end_sql,
            is_end_pipelined: !writes && !self.server.options.is_behind_pooler,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlanEstimate {
    rows: u64,
    cost: f64,
    is_pipeline_breaking: bool,
    plan: Value,
    /// Whether the statistics behind the plan contain what the role may not read. Then nothing of it goes to the caller:
    /// each number, and each choice between two ways to join, would show how often a value occurs in the rows of others.
    is_hidden: bool,
}

/// Instead of a plan that is hidden.
const HIDDEN_PLAN: &str = "The plan is hidden: it depends on all rows and columns of the tables that the \
    statement reads, and your role may not read all of them.";

/// Whether the role may not read some rows or columns of a table that the transaction has locked to plan a statement, also
/// behind views. A partition is read with the privileges and policies of its parents. The tables of the server itself
/// have object identifiers below 16384.
const HAS_UNREADABLE_PARTS_SQL: &str = "
WITH RECURSIVE line AS (
  SELECT c.oid AS relation, c.oid AS ancestor
  FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation
  WHERE l.locktype = 'relation' AND l.pid = pg_catalog.pg_backend_pid()
    AND c.relkind IN ('r', 'p', 'm', 'f') AND c.oid >= 16384
  UNION SELECT line.relation, i.inhparent FROM line JOIN pg_catalog.pg_inherits i ON i.inhrelid = line.ancestor)
SELECT EXISTS (
  SELECT FROM line GROUP BY relation
  HAVING pg_catalog.bool_or(pg_catalog.row_security_active(ancestor))
    OR NOT pg_catalog.bool_or(pg_catalog.has_table_privilege(ancestor, 'SELECT')))";

/// Members of a plan node that describe it, in addition to its type.
const DETAILS: [(&str, &str); 8] = [
    ("Relation Name", "on "),
    ("Index Name", "using "),
    ("CTE Name", "of "),
    ("Join Type", "join: "),
    ("Strategy", ""),
    ("Hash Cond", "where "),
    ("Index Cond", "where "),
    ("Filter", "filter: "),
];
const DEPTH_MAX: usize = 40;

impl PlanEstimate {
    /// Requests the estimate from the server, in the transaction of `lease`, which keeps the locks of the tables.
    pub(crate) async fn request(lease: &Lease, statement: &Statement, database: &str) -> Result<Self, Error> {
        let text = format!("EXPLAIN (FORMAT JSON) {}", statement.text());
        let bound = BoundParameter::bind_all(statement.parameters())?;
        let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        let client = lease.session()?.client();
        let requested = client.query_one(&text, &bound).await;
        let row = requested.map_err(|error| error::statement_error(&error, database, &text))?;
        let unreadable = |error: &dyn std::fmt::Display| Error::internal(format!("a plan of {database}: {error}"));
        let RawBytes(json) = row.try_get(0).map_err(|error| unreadable(&error))?;
        let mut plan: Value = serde_json::from_slice(json.unwrap_or_default()).map_err(|error| unreadable(&error))?;
        let locked = client.query_typed(HAS_UNREADABLE_PARTS_SQL, &[]).await;
        let locked = locked.map_err(|error| error::internal_statement_error(&error, database))?;
        let is_hidden = locked.first().is_none_or(|row| row.try_get(0).unwrap_or(true));
        Ok(Self::from_plan(plan.pointer_mut("/0/Plan").map(Value::take).unwrap_or_default(), is_hidden))
    }

    fn from_plan(plan: Value, is_hidden: bool) -> Self {
        let number = |name: &str| plan.get(name).and_then(Value::as_f64).unwrap_or_default();
        let (rows, cost, startup) = (number("Plan Rows"), number("Total Cost"), number("Startup Cost"));
        // If most of the cost arises before the first row, rows cannot be streamed meanwhile.
        Self { rows: rows as u64, cost, is_pipeline_breaking: cost > 0.0 && startup > 0.9 * cost, plan, is_hidden }
    }

    /// The expected number of rows; `None` if it is hidden.
    pub(crate) fn rows(&self) -> Option<u64> {
        (!self.is_hidden).then_some(self.rows)
    }

    /// Whether most of the cost arises before the first row; `None` if it is hidden.
    fn is_pipeline_breaking(&self) -> Option<bool> {
        (!self.is_hidden).then_some(self.is_pipeline_breaking)
    }

    /// The plan as an indented tree, or why it is hidden.
    pub(crate) fn render(&self) -> String {
        if self.is_hidden {
            return HIDDEN_PLAN.to_owned();
        }
        let line = |(depth, node): (usize, &Value)| format!("{}{}\n", "  ".repeat(depth), node_title(node));
        nodes(&self.plan).into_iter().map(line).collect()
    }

    /// Rejects a statement whose estimated cost exceeds `max`; the error names the most expensive node of a plan that is not
    /// hidden.
    pub(crate) fn check_cost(&self, max: f64) -> Result<(), Error> {
        if self.cost <= max {
            return Ok(());
        }
        let hint = "Use conditions on indexed columns, or fewer joins.";
        if self.is_hidden {
            let message = format!("the estimated cost of the statement exceeds the limit, which is {max:.0}");
            return Err(Error::new(ErrorKind::TooLarge, message).with_hint(hint));
        }
        let cost = |node: &Value| node.get("Total Cost").and_then(Value::as_f64).unwrap_or_default();
        let own_cost = |node: &Value| cost(node) - children(node).iter().map(cost).sum::<f64>();
        let costliest = nodes(&self.plan).into_iter().max_by(|(_, a), (_, b)| own_cost(a).total_cmp(&own_cost(b)));
        let message = format!(
            "the estimated cost of the statement is {:.0}, and the limit is {max:.0}; most expensive step: {}",
            self.cost,
            costliest.map(|(_, node)| node_title(node)).unwrap_or_default()
        );
        Err(Error::new(ErrorKind::TooLarge, message)
            .with_hint(format!("{hint} The tool explain shows the whole plan.")))
    }
}

/// The nodes of a plan with their depths, parents first, up to the maximum depth.
fn nodes(plan: &Value) -> Vec<(usize, &Value)> {
    let (mut nodes, mut stack) = (Vec::new(), vec![(0, plan)]);
    while let Some((depth, node)) = stack.pop() {
        nodes.push((depth, node));
        if depth < DEPTH_MAX {
            stack.extend(children(node).iter().rev().map(|child| (depth + 1, child)));
        }
    }
    nodes
}

fn node_title(node: &Value) -> String {
    let member = |name: &str| node.get(name).and_then(Value::as_str);
    let mut title = member("Node Type").unwrap_or("Step").to_owned();
    for (name, words) in DETAILS {
        if let Some(value) = member(name).filter(|value| *value != "Plain" && *value != "Inner") {
            title.push_str(&format!(" {words}{value}"));
        }
    }
    let number = |name: &str| node.get(name).and_then(Value::as_f64).unwrap_or_default();
    format!("{title} (rows {:.0}, cost {:.0})", number("Plan Rows"), number("Total Cost"))
}

fn children(node: &Value) -> &[Value] {
    node.get("Plans").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
