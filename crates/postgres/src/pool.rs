//! The leases of connections, each for one call.
//!
//! A connection returns to the pool only outside of a transaction and with nothing running. A call that is dropped
//! earlier leaves an open transaction, or a running statement: what runs is ended and rolled back in the background, and the
//! connection returns then.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Error;
use tidegate_runtime::{BackgroundTasks, ConnectionPool, Connector, PooledConnection, RecentConnectError};
use tidegate_sql::Transaction;
use tokio::time::timeout;

use crate::connect::{ConnectTarget, OpenConnection};
use crate::error;
use crate::options::PostgresOptions;
use crate::session::{PoolerSession, PostgresSession, ROLLBACK_AND_UNLOCK, SeenTypes, TransactionIdentity};

/// The time limit for the rollback of a dropped call or an abandoned write, after which its connection is discarded.
pub(crate) const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long what a dropped call runs may go on before it is cancelled. Most statements have ended by then, and a cancel
/// request needs a connection, too.
const CANCEL_DELAY: Duration = Duration::from_millis(50);

pub(crate) struct Pool {
    database: Arc<str>,
    connections: ConnectionPool<PostgresConnector>,
}

/// Opens the sessions of a pool.
pub(crate) struct PostgresConnector {
    target: ConnectTarget,
    options: Arc<PostgresOptions>,
    application_name: String,
    database: Arc<str>,
    last_error: RecentConnectError,
    seen_types: Arc<SeenTypes>,
    /// Each session has a clone.
    sessions: Arc<()>,
}

impl Connector for PostgresConnector {
    type Connection = PostgresSession;

    async fn connect(&self) -> Result<PostgresSession, Error> {
        self.open(false).await
    }

    fn is_closed(&self, session: &PostgresSession) -> bool {
        session.connection().is_closed()
    }

    fn open_connections(&self) -> usize {
        Arc::strong_count(&self.sessions) - 1
    }
}

impl PostgresConnector {
    async fn open(&self, is_replacement: bool) -> Result<PostgresSession, Error> {
        if let Some(error) = self.last_error.get() {
            return Err(error);
        }
        let connection = self.target.connect(&self.application_name).await.map_err(|error| {
            tracing::warn!(database = %self.database, "{error}");
            let error = error.into_error(&self.database);
            self.last_error.set(&error);
            error
        })?;
        let session = async {
            let pooler = match self.options.is_behind_pooler {
                true => {
                    Some(PoolerSession::detect(connection.client(), self.seen_types.clone(), is_replacement).await?)
                }
                false => None,
            };
            PostgresSession::open(connection, &self.options, pooler, self.sessions.clone()).await
        };
        session.await.map_err(|error| error::internal_statement_error(&error, &self.database))
    }
}

impl Pool {
    pub(crate) fn new(database: Arc<str>, target: ConnectTarget, options: Arc<PostgresOptions>) -> Result<Self, Error> {
        let (connections_max, acquire_timeout) = (options.connections_max, options.acquire_timeout);
        let connector = PostgresConnector {
            target,
            options,
            application_name: format!("tidegate/{database}"),
            database: database.clone(),
            last_error: RecentConnectError::default(),
            seen_types: Arc::default(),
            sessions: Arc::default(),
        };
        let connections = ConnectionPool::new(database.clone(), connector, connections_max, acquire_timeout)?;
        Ok(Self { database, connections })
    }

    /// A connection for one call; `Unavailable` if none is free in time or the server cannot be reached.
    pub(crate) async fn acquire(&self) -> Result<Lease, Error> {
        Ok(Lease {
            session: Some(self.connections.acquire().await?),
            state: LeaseState::Idle,
            background_tasks: self.connections.background_tasks().clone(),
            connector: self.connections.connector().clone(),
            database: self.database.clone(),
        })
    }

    pub(crate) async fn open_replacement(&self) -> Result<PostgresSession, Error> {
        self.connections.connector().open(true).await
    }

    pub(crate) fn target(&self) -> &ConnectTarget {
        &self.connections.connector().target
    }

    pub(crate) fn connections_in_use(&self) -> usize {
        self.connections.connections_in_use()
    }

    pub(crate) fn seen_types(&self) -> &SeenTypes {
        &self.connections.connector().seen_types
    }

    pub(crate) fn background_tasks(&self) -> &Arc<BackgroundTasks> {
        self.connections.background_tasks()
    }

    /// Waits until the database is being closed. Returns the error of calls that end because of it.
    pub(crate) async fn closed(&self) -> Error {
        self.connections.closed().await
    }

    /// Ends running calls and closes the connections; waits at most for `timeout`.
    pub(crate) async fn close(&self, timeout: Duration) {
        self.connections.close(timeout).await;
    }
}

pub(crate) struct Lease {
    /// `None` only while it is dropped.
    session: Option<PooledConnection<PostgresConnector>>,
    state: LeaseState,
    background_tasks: Arc<BackgroundTasks>,
    connector: Arc<PostgresConnector>,
    database: Arc<str>,
}

/// What comes before the first statement of a call.
#[derive(Clone, Copy)]
enum Start<'a> {
    Transaction(&'a Transaction),
    /// A transaction that reads the catalog.
    Lookup,
    /// No transaction.
    Alone,
}

impl Start<'_> {
    async fn send(
        self,
        session: &PostgresSession,
        identity: &TransactionIdentity,
    ) -> Result<(), tokio_postgres::Error> {
        match self {
            Self::Transaction(transaction) => session.begin(transaction, identity).await,
            Self::Lookup => session.begin_lookup(identity).await,
            Self::Alone => session.set_identity(identity).await,
        }
    }
}

enum LeaseState {
    Idle,
    /// In a transaction, and nothing runs.
    InTransaction,
    /// Something was sent whose answer has not arrived yet.
    Busy,
}

impl Lease {
    /// The session. It is present while the lease lives; the error saves a panic.
    pub(crate) fn session(&self) -> Result<&PostgresSession, Error> {
        self.session.as_deref().ok_or_else(|| Error::internal("a connection was used after it had been given back"))
    }

    pub(crate) fn connection(&self) -> Result<Arc<OpenConnection>, Error> {
        Ok(self.session()?.connection().clone())
    }

    /// Runs `work`, which uses the connection in its open transaction.
    pub(crate) async fn run<T>(&mut self, work: impl Future<Output = T>) -> T {
        self.state = LeaseState::Busy;
        let outcome = work.await;
        self.state = LeaseState::InTransaction;
        outcome
    }

    /// Begins a transaction as `identity`. After an error, the connection is discarded.
    pub(crate) async fn begin(
        &mut self,
        transaction: &Transaction,
        identity: &TransactionIdentity,
    ) -> Result<(), Error> {
        self.start(Start::Transaction(transaction), identity).await?;
        self.state = LeaseState::InTransaction;
        Ok(())
    }

    /// Begins a transaction as `identity` for statements that read the catalog. After an error, the connection is discarded.
    pub(crate) async fn begin_lookup(&mut self, identity: &TransactionIdentity) -> Result<(), Error> {
        self.start(Start::Lookup, identity).await?;
        self.state = LeaseState::InTransaction;
        Ok(())
    }

    /// Prepares the connection, which is in no transaction, for a statement that runs as `identity` without settings of
    /// its own. After an error, the connection is discarded.
    pub(crate) async fn set_identity(&mut self, identity: &TransactionIdentity) -> Result<(), Error> {
        self.start(Start::Alone, identity).await?;
        self.state = LeaseState::Idle;
        Ok(())
    }

    /// Sends what comes before the first statement. If the connection was lost while it was idle, nothing of the call has
    /// run on it: it is replaced, once.
    async fn start(&mut self, start: Start<'_>, identity: &TransactionIdentity) -> Result<(), Error> {
        self.state = LeaseState::Busy;
        let mut started = start.send(self.session()?, identity).await;
        if started.as_ref().is_err_and(error::ends_session) {
            let replacement = Box::pin(self.connector.open(true)).await?;
            self.replace(replacement);
            started = start.send(self.session()?, identity).await;
        }
        started.map_err(|error| self.identity_error(&error, identity))
    }

    fn identity_error(&self, error: &tokio_postgres::Error, identity: &TransactionIdentity) -> Error {
        match identity.role.as_deref() {
            Some(role) => error::role_error(error, &self.database, role),
            None => error::internal_statement_error(error, &self.database),
        }
    }

    /// Replaces the connection, whose transaction has ended.
    pub(crate) fn replace(&mut self, replacement: PostgresSession) {
        if let Some(session) = &mut self.session {
            **session = replacement;
        }
    }

    /// Records that something was sent; until [`Lease::mark_in_transaction`] the state of the connection is unknown.
    pub(crate) fn mark_busy(&mut self) {
        self.state = LeaseState::Busy;
    }

    /// Records that all answers have arrived and the transaction is still open.
    pub(crate) fn mark_in_transaction(&mut self) {
        self.state = LeaseState::InTransaction;
    }

    /// Records that all answers have arrived and the transaction has ended.
    pub(crate) fn mark_idle(&mut self) {
        self.state = LeaseState::Idle;
    }

    /// Ends the transaction with `sql`. After an error, the connection is discarded.
    pub(crate) async fn end(&mut self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.state = LeaseState::Busy;
        if let Some(session) = &self.session {
            session.end(sql).await?;
        }
        self.state = LeaseState::Idle;
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        // Dropping an idle session returns it to the pool.
        if !matches!(self.state, LeaseState::Idle) {
            self.background_tasks.spawn(async move {
                match free(&session).await {
                    true => drop(session),
                    false => session.discard(),
                }
            });
        }
    }
}

/// Ends what a dropped call has left on its connection. Returns false if the connection cannot be used again.
async fn free(session: &PostgresSession) -> bool {
    let roll_back = || session.client().batch_execute(ROLLBACK_AND_UNLOCK);
    let mut ended = pin!(roll_back());
    if let Ok(ended) = timeout(CANCEL_DELAY, &mut ended).await {
        return ended.is_ok();
    }
    if let Err(error) = session.connection().canceller().cancel().await {
        tracing::warn!("a cancellation did not reach the server: {error}");
        return false;
    }
    // A pooler may pass the request on later, when the connection has another statement.
    if session.is_behind_pooler() {
        return false;
    }
    // The server has signalled its process. Whatever the signal finds there, the process takes notice of it before it reads
    // another command, so the second answer comes after the cancellation.
    let _ = timeout(ROLLBACK_TIMEOUT, ended).await;
    matches!(timeout(ROLLBACK_TIMEOUT, roll_back()).await, Ok(Ok(())))
}
