//! A statement that is prepared on a connection of its own and waits to be run.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, Job};
use tidegate_query::{Author, Plan, Rows, Statement, Transaction};

use crate::error;
use crate::explain::Explained;
use crate::lease::Lease;
use crate::prepared::Prepared;
use crate::pump;
use crate::retrying;
use crate::rows::{ErrorContext, Failure};
use crate::running::{Bounds, Ending, Running};
use crate::server::Server;
use crate::session::Identity;
use crate::transaction::{self, COMMIT, ROLLBACK, ROLLBACK_AND_UNLOCK};

/// Bytes of rows of a writing statement that are held until it is committed; beyond them they leave before.
const HELD_BYTES_MAX: usize = 4 << 20;

/// A statement that is prepared.
pub(crate) struct PostgresPlan {
    pub(crate) server: Arc<Server>,
    pub(crate) statement: Statement,
    pub(crate) identity: Identity,
    /// Before the lease, so that it is closed within the transaction.
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) lease: Lease,
    /// Whether its transaction has begun; else it begins together with the statement.
    pub(crate) has_begun: bool,
    pub(crate) explained: Mutex<Option<Arc<Explained>>>,
}

/// How an attempt to run a statement ended before its first row.
enum Attempt {
    /// Rows flow, or there are none.
    Rows(Rows),
    /// Others came in between; the connection is free again.
    Again(Error, Lease),
    /// The prepared statement no longer fits its tables.
    Outdated(Error, Lease),
}

#[async_trait]
impl Plan for PostgresPlan {
    fn schema(&self) -> SchemaRef {
        self.prepared.schema.clone()
    }

    fn estimated_rows(&self) -> Option<u64> {
        self.explained.lock().as_ref().map(|explained| explained.rows)
    }

    fn estimated_bytes(&self) -> Option<u64> {
        None
    }

    fn is_blocking(&self) -> bool {
        self.explained.lock().as_ref().is_some_and(|explained| explained.is_blocking)
    }

    async fn explain(&self) -> Result<String, Error> {
        let known = self.explained.lock().clone();
        let explained = match known {
            Some(explained) => explained,
            None => {
                let explained = Arc::new(Explained::ask(&self.lease, &self.statement, &self.server.database).await?);
                *self.explained.lock() = Some(explained.clone());
                explained
            }
        };
        Ok(explained.text())
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<Rows, Error> {
        let Self { server, statement, identity, mut lease, mut prepared, mut has_begun, .. } = *self;
        let transaction = statement.transaction().clone();
        let mut tries = 0;
        let mut was_outdated = false;
        loop {
            let run = Run { server: &server, statement: &statement, transaction: &transaction, job };
            match run.attempt(lease, prepared, has_begun).await? {
                Attempt::Rows(rows) => return Ok(rows),
                Attempt::Again(error, freed) => {
                    if tries == transaction.retries_max {
                        return Err(error);
                    }
                    tries += 1;
                    tokio::time::sleep(retrying::pause(tries)).await;
                    lease = freed;
                }
                Attempt::Outdated(error, freed) => {
                    if std::mem::replace(&mut was_outdated, true) {
                        return Err(error);
                    }
                    lease = freed;
                    server.forget(&mut lease, &statement, &identity).await?;
                }
            }
            lease.begin(&transaction, &identity).await?;
            has_begun = true;
            prepared = server.prepare(&mut lease, &statement, &transaction, &identity).await?;
        }
    }
}

struct Run<'a> {
    server: &'a Server,
    statement: &'a Statement,
    transaction: &'a Transaction,
    job: &'a Job,
}

impl Run<'_> {
    async fn attempt(&self, lease: Lease, prepared: Arc<Prepared>, has_begun: bool) -> Result<Attempt, Error> {
        let schema = prepared.schema.clone();
        let context = ErrorContext {
            database: self.server.database.clone(),
            text: self.statement.text().into(),
            author: self.statement.author(),
        };
        let bounds =
            Bounds { opening: (!has_begun).then(|| transaction::begin(self.transaction)), ending: self.ending() };
        let started = Running::start(lease, prepared, self.statement.parameters(), bounds, context.clone());
        let work = async {
            let mut running = started.await?;
            match self.first(&mut running).await {
                Ok(held) => Ok((running, held)),
                Err(failure) => {
                    let freed = running.fail(&failure).await;
                    Err((failure, freed))
                }
            }
        };
        let (failure, freed) = match self.in_time(work).await? {
            Ok((running, held)) => return self.deliver(running, held, schema).await,
            Err(failed) => failed,
        };
        match (failure, freed) {
            (Failure::Server(said), Some(lease)) if error::is_retryable(&said) => {
                Ok(Attempt::Again(Failure::Server(said).told(&context), lease))
            }
            (Failure::Server(said), Some(lease)) if error::is_outdated(&said) => {
                Ok(Attempt::Outdated(Failure::Server(said).told(&context), lease))
            }
            (failure, _) => Err(failure.told(&context)),
        }
    }

    /// What comes before anything is answered: the first batch; of a statement that writes all, if they are few.
    async fn first(&self, running: &mut Running) -> Result<Vec<RecordBatch>, Failure> {
        let mut held = Vec::new();
        let mut bytes = 0;
        while let Some(batch) = running.next().await? {
            bytes += batch.get_array_memory_size();
            held.push(batch);
            if !self.transaction.writes || bytes > HELD_BYTES_MAX {
                break;
            }
        }
        Ok(held)
    }

    async fn deliver(&self, running: Running, held: Vec<RecordBatch>, schema: SchemaRef) -> Result<Attempt, Error> {
        if !running.has_ended() {
            let stall = self.transaction.stall;
            let rest = pump::start(running, self.server.house().clone(), self.job.cancellation(), stall);
            let batches = futures::stream::iter(held.into_iter().map(Ok)).chain(rest).boxed();
            return Ok(Attempt::Rows(Rows { schema, batches }));
        }
        let context = running.context().clone();
        running.finish().await.map_err(|failure| failure.told(&context))?;
        let batches = futures::stream::iter(held.into_iter().map(Ok)).boxed();
        Ok(Attempt::Rows(Rows { schema, batches }))
    }

    /// Ends `work` when the job, the database or the time for the first row does.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let limit = self.transaction.first_row;
        let late = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.job.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the query was cancelled")),
            () = self.server.house().closing.cancelled() => Err(crate::pool::closed(&self.server.database)),
            outcome = work => Ok(outcome),
            () = late => {
                let waited = limit.unwrap_or_default().as_millis();
                Err(Error::new(ErrorKind::TimedOut, format!("no row came within {waited} ms")))
            }
        }
    }

    fn ending(&self) -> Ending {
        let words = match self.statement.author() {
            _ if self.transaction.writes => return Ending::Later(COMMIT),
            Author::Owner | Author::Handler => ROLLBACK,
            Author::Caller => ROLLBACK_AND_UNLOCK,
        };
        if self.server.options.pooler { Ending::Later(words) } else { Ending::Behind(words) }
    }
}
