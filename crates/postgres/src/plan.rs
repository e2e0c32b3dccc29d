//! A statement that is prepared on a connection of its own and waits to be run.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{Plan, QueryRows};
use tidegate_runtime::Job;
use tidegate_sql::{Author, Statement, Transaction};

use crate::batch_forwarder;
use crate::batch_stream::{ErrorContext, RowError};
use crate::error;
use crate::explain::PlanEstimate;
use crate::lease::Lease;
use crate::prepared::PreparedStatement;
use crate::running_statement::{RunningStatement, TransactionBounds, TransactionEnd};
use crate::server::PostgresServer;
use crate::session::TransactionIdentity;
use crate::transaction::{self, COMMIT, ROLLBACK, ROLLBACK_AND_UNLOCK};

/// Bytes of rows of a writing statement that are held until it is committed; beyond them they leave before.
const BUFFERED_BYTES_MAX: usize = 4 << 20;

/// A statement that is prepared.
pub(crate) struct PostgresPlan {
    pub(crate) server: Arc<PostgresServer>,
    pub(crate) statement: Statement,
    pub(crate) identity: TransactionIdentity,
    /// Before the lease, so that it is closed within the transaction.
    pub(crate) prepared: Arc<PreparedStatement>,
    pub(crate) lease: Lease,
    /// Whether its transaction has begun; else it begins together with the statement.
    pub(crate) has_begun: bool,
    pub(crate) estimate: Mutex<Option<Arc<PlanEstimate>>>,
}

/// How an attempt to run a statement ended before its first row.
enum RunAttempt {
    /// Rows flow, or there are none.
    Rows(QueryRows),
    /// Others came in between; the connection is free again.
    Retry(Error, Lease),
    /// The prepared statement no longer fits its tables.
    Outdated(Error, Lease),
}

#[async_trait]
impl Plan for PostgresPlan {
    fn schema(&self) -> SchemaRef {
        self.prepared.schema.clone()
    }

    fn estimated_rows(&self) -> Option<u64> {
        self.estimate.lock().as_ref().map(|explained| explained.rows)
    }

    fn estimated_bytes(&self) -> Option<u64> {
        None
    }

    fn is_pipeline_breaking(&self) -> bool {
        self.estimate.lock().as_ref().is_some_and(|explained| explained.is_pipeline_breaking)
    }

    async fn explain(&self) -> Result<String, Error> {
        let known = self.estimate.lock().clone();
        let explained = match known {
            Some(explained) => explained,
            None => {
                let explained =
                    Arc::new(PlanEstimate::request(&self.lease, &self.statement, &self.server.database).await?);
                *self.estimate.lock() = Some(explained.clone());
                explained
            }
        };
        Ok(explained.render())
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        let Self { server, statement, identity, mut lease, mut prepared, mut has_begun, .. } = *self;
        let transaction = statement.transaction().clone();
        let mut tries = 0;
        let mut was_outdated = false;
        loop {
            let run = PlanRun { server: &server, statement: &statement, transaction: &transaction, job };
            match run.attempt(lease, prepared, has_begun).await? {
                RunAttempt::Rows(rows) => return Ok(rows),
                RunAttempt::Retry(error, freed) => {
                    if tries == transaction.retries_max {
                        return Err(error);
                    }
                    tries += 1;
                    tokio::time::sleep(transaction::backoff_delay(tries)).await;
                    lease = freed;
                }
                RunAttempt::Outdated(error, freed) => {
                    if std::mem::replace(&mut was_outdated, true) {
                        return Err(error);
                    }
                    lease = freed;
                    server.forget_prepared(&mut lease, &statement, &identity).await?;
                }
            }
            lease.begin(&transaction, &identity).await?;
            has_begun = true;
            prepared = server.prepare(&mut lease, &statement, &transaction, &identity).await?;
        }
    }
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
        let schema = prepared.schema.clone();
        let context = ErrorContext {
            database: self.server.database.clone(),
            text: self.statement.text().into(),
            author: self.statement.author(),
        };
        let bounds = TransactionBounds {
            begin_sql: (!has_begun).then(|| transaction::begin_sql(self.transaction)),
            transaction_end: self.transaction_end(),
        };
        let started = RunningStatement::start(lease, prepared, self.statement.parameters(), bounds, context.clone());
        let work = async {
            let mut running = started.await?;
            match self.read_first_batches(&mut running).await {
                Ok(held) => Ok((running, held)),
                Err(failure) => {
                    let freed = running.recover_lease(&failure).await;
                    Err((failure, freed))
                }
            }
        };
        let (failure, freed) = match self.run_in_time(work).await? {
            Ok((running, held)) => return self.deliver(running, held, schema).await,
            Err(failed) => failed,
        };
        match (failure, freed) {
            (RowError::Server(output), Some(lease)) if error::is_retryable(&output) => {
                Ok(RunAttempt::Retry(RowError::Server(output).into_error(&context), lease))
            }
            (RowError::Server(output), Some(lease)) if error::is_statement_outdated(&output) => {
                Ok(RunAttempt::Outdated(RowError::Server(output).into_error(&context), lease))
            }
            (failure, _) => Err(failure.into_error(&context)),
        }
    }

    /// What comes before anything is answered: the first batch; of a statement that writes all, if they are few.
    async fn read_first_batches(&self, running: &mut RunningStatement) -> Result<Vec<RecordBatch>, RowError> {
        let mut held = Vec::new();
        let mut bytes = 0;
        while let Some(batch) = running.next().await? {
            bytes += batch.get_array_memory_size();
            held.push(batch);
            if !self.transaction.writes || bytes > BUFFERED_BYTES_MAX {
                break;
            }
        }
        Ok(held)
    }

    async fn deliver(
        &self,
        running: RunningStatement,
        held: Vec<RecordBatch>,
        schema: SchemaRef,
    ) -> Result<RunAttempt, Error> {
        if !running.has_ended() {
            let stall = self.transaction.stall_timeout;
            let rest = batch_forwarder::spawn_forwarder(
                running,
                self.server.background_tasks().clone(),
                self.job.cancellation(),
                stall,
            );
            let batches = futures::stream::iter(held.into_iter().map(Ok)).chain(rest).boxed();
            return Ok(RunAttempt::Rows(QueryRows { schema, batches }));
        }
        let context = running.context().clone();
        running.finish().await.map_err(|failure| failure.into_error(&context))?;
        let batches = futures::stream::iter(held.into_iter().map(Ok)).boxed();
        Ok(RunAttempt::Rows(QueryRows { schema, batches }))
    }

    /// Ends `work` when the job, the database or the time for the first row does.
    async fn run_in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let limit = self.transaction.first_row_timeout;
        let late = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.job.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the query was cancelled")),
            error = self.server.closed() => Err(error),
            outcome = work => Ok(outcome),
            () = late => {
                let waited = limit.unwrap_or_default().as_millis();
                Err(Error::new(ErrorKind::TimedOut, format!("no row came within {waited} ms")))
            }
        }
    }

    fn transaction_end(&self) -> TransactionEnd {
        let words = match self.statement.author() {
            _ if self.transaction.writes => return TransactionEnd::AfterRows(COMMIT),
            Author::Owner | Author::Handler => ROLLBACK,
            Author::Caller => ROLLBACK_AND_UNLOCK,
        };
        if self.server.options.is_behind_pooler {
            TransactionEnd::AfterRows(words)
        } else {
            TransactionEnd::Pipelined(words)
        }
    }
}
