//! Runs a prepared statement.

use std::pin::pin;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{Plan, QueryRows, changed_rows_batch, changed_rows_schema};
use tidegate_runtime::Job;
use tidegate_runtime::event::QueryStep;
use tidegate_sql::{Author, CommitRule, Statement, Transaction};
use tokio::sync::OnceCell;

use crate::explain::{HIDDEN_PLAN, PlanEstimate};
use crate::pool::Lease;
use crate::prepared::PreparedStatement;
use crate::running_statement::{ErrorContext, RowError, RunningStatement, TransactionCommands, spawn_forwarder};
use crate::server::PostgresServer;
use crate::session::{COMMIT, ROLLBACK, ROLLBACK_AND_UNLOCK, TransactionIdentity};
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
