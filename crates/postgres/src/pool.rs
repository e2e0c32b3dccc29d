//! The connections of a database: a bounded number, each leased to one call.
//!
//! A connection returns to the pool only outside of a transaction and with nothing running. A call that is dropped
//! earlier leaves an open transaction, which is rolled back, or a running statement. The latter is cancelled, and its
//! connection is discarded: a cancellation could still hit a later statement.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool::Runtime;
use deadpool::managed::{Manager, Metrics, Object, PoolError, RecycleError, RecycleResult, TimeoutType};
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_sql::Transaction;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connect::{ConnectTarget, OpenConnection};
use crate::error;
use crate::options::PostgresOptions;
use crate::pooler::{PoolerSession, SeenTypes};
use crate::session::{PostgresSession, ROLLBACK, TransactionIdentity};

/// The time limit for the rollback of a dropped call or an abandoned write, after which its connection is discarded.
pub(crate) const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connect error is returned to further calls without another attempt. Otherwise a thousand declared tools
/// that start together would each wait for the connect timeout.
const CONNECT_ERROR_MAX_AGE: Duration = Duration::from_secs(1);

pub(crate) struct Pool {
    database: Arc<str>,
    connections: deadpool::managed::Pool<ConnectionManager>,
    background_tasks: Arc<BackgroundTasks>,
}

/// Tasks that may outlive their calls.
pub(crate) struct BackgroundTasks {
    tasks: TaskTracker,
    /// Fires when the database is closed.
    pub(crate) closing: CancellationToken,
}

struct ConnectionManager {
    target: ConnectTarget,
    options: Arc<PostgresOptions>,
    application_name: String,
    database: Arc<str>,
    last_error: Mutex<Option<(Instant, Error)>>,
    seen_types: Arc<SeenTypes>,
}

impl Manager for ConnectionManager {
    type Type = PostgresSession;
    type Error = Error;

    async fn create(&self) -> Result<PostgresSession, Error> {
        // Rare, and large: every call contains the future that waits for a connection.
        Box::pin(self.open(false)).await
    }

    async fn recycle(&self, session: &mut PostgresSession, _: &Metrics) -> RecycleResult<Error> {
        if session.connection().is_closed() {
            return Err(RecycleError::message("the connection has ended"));
        }
        Ok(())
    }
}

impl ConnectionManager {
    async fn open(&self, is_replacement: bool) -> Result<PostgresSession, Error> {
        if let Some(error) = recent_error(&self.last_error, Instant::now()) {
            return Err(error);
        }
        let connection = self.target.connect(&self.application_name).await.map_err(|error| {
            tracing::warn!(database = %self.database, "{error}");
            let error = error.into_error(&self.database);
            *self.last_error.lock() = Some((Instant::now(), error.clone()));
            error
        })?;
        let session = async {
            let pooler = match self.options.is_behind_pooler {
                true => {
                    Some(PoolerSession::detect(connection.client(), self.seen_types.clone(), is_replacement).await?)
                }
                false => None,
            };
            PostgresSession::open(connection, &self.options, pooler).await
        };
        session.await.map_err(|error| error::internal_statement_error(&error, &self.database))
    }
}

/// The last connect error, unless it is too old at the time `now`.
fn recent_error(last_error: &Mutex<Option<(Instant, Error)>>, now: Instant) -> Option<Error> {
    let last_error = last_error.lock();
    let (time, error) = last_error.as_ref()?;
    (now.saturating_duration_since(*time) < CONNECT_ERROR_MAX_AGE).then(|| error.clone())
}

impl Pool {
    pub(crate) fn new(database: Arc<str>, target: ConnectTarget, options: Arc<PostgresOptions>) -> Result<Self, Error> {
        let manager = ConnectionManager {
            target,
            options: options.clone(),
            application_name: format!("tidegate/{database}"),
            database: database.clone(),
            last_error: Mutex::default(),
            seen_types: Arc::default(),
        };
        let connections = deadpool::managed::Pool::builder(manager)
            .max_size(options.connections_max.max(1))
            .wait_timeout(Some(options.acquire_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::internal(error.to_string()))?;
        let background_tasks = BackgroundTasks { tasks: TaskTracker::new(), closing: CancellationToken::new() };
        Ok(Self { database, connections, background_tasks: Arc::new(background_tasks) })
    }

    /// A connection for one call; `Unavailable` if none is free in time or the server cannot be reached.
    pub(crate) async fn acquire(&self) -> Result<Lease, Error> {
        match self.connections.get().await {
            Ok(session) => Ok(Lease {
                session: Some(session),
                state: LeaseState::Idle,
                background_tasks: self.background_tasks.clone(),
                database: self.database.clone(),
            }),
            Err(PoolError::Timeout(TimeoutType::Wait)) => Err(self.busy_error()),
            Err(PoolError::Backend(error)) => Err(error),
            Err(PoolError::Closed) => Err(self.closed_error()),
            Err(other) => Err(Error::internal(format!("the pool of {}: {other}", self.database))),
        }
    }

    pub(crate) async fn open_replacement(&self) -> Result<PostgresSession, Error> {
        self.connections.manager().open(true).await
    }

    fn busy_error(&self) -> Error {
        let connections = self.connections.status().max_size;
        let message = format!("all {connections} connections to the database {} are in use", self.database);
        Error::new(ErrorKind::Unavailable, message).with_hint("Try again when other calls have ended.")
    }

    fn closed_error(&self) -> Error {
        Error::new(ErrorKind::Unavailable, format!("the database {} is being closed", self.database))
    }

    pub(crate) fn target(&self) -> &ConnectTarget {
        &self.connections.manager().target
    }

    pub(crate) fn connections_in_use(&self) -> usize {
        let status = self.connections.status();
        status.size.saturating_sub(status.available)
    }

    pub(crate) fn seen_types(&self) -> &SeenTypes {
        &self.connections.manager().seen_types
    }

    pub(crate) fn background_tasks(&self) -> &Arc<BackgroundTasks> {
        &self.background_tasks
    }

    /// Waits until the database is being closed. Returns the error of calls that end because of it.
    pub(crate) async fn closed(&self) -> Error {
        self.background_tasks.closing.cancelled().await;
        self.closed_error()
    }

    /// Ends running calls and closes the connections; waits at most for `timeout`.
    pub(crate) async fn close(&self, timeout: Duration) {
        self.background_tasks.closing.cancel();
        self.background_tasks.tasks.close();
        // The server notices by itself that the client of the remaining statements is gone.
        let _ = tokio::time::timeout(timeout, self.background_tasks.tasks.wait()).await;
        self.connections.close();
    }
}

impl BackgroundTasks {
    /// Runs `work` on the current runtime; without a runtime, it does not run.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.tasks.spawn_on(work, &runtime);
        }
    }
}

pub(crate) struct Lease {
    /// `None` only while it is dropped.
    session: Option<Object<ConnectionManager>>,
    state: LeaseState,
    background_tasks: Arc<BackgroundTasks>,
    database: Arc<str>,
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
        self.state = LeaseState::Busy;
        let begun = self.session()?.begin(transaction, identity).await;
        begun.map_err(|error| self.identity_error(&error, identity))?;
        self.state = LeaseState::InTransaction;
        Ok(())
    }

    /// Prepares the connection, which is in no transaction, for a statement that runs as `identity` without settings of
    /// its own. After an error, the connection is discarded.
    pub(crate) async fn set_identity(&mut self, identity: &TransactionIdentity) -> Result<(), Error> {
        self.state = LeaseState::Busy;
        let set = self.session()?.set_identity(identity).await;
        set.map_err(|error| self.identity_error(&error, identity))?;
        self.state = LeaseState::Idle;
        Ok(())
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
        match self.state {
            // Dropping the session returns it to the pool.
            LeaseState::Idle => {}
            LeaseState::InTransaction => self.background_tasks.spawn(roll_back(session)),
            LeaseState::Busy => self.background_tasks.spawn(cancel_and_drop(Object::take(session))),
        }
    }
}

async fn roll_back(session: Object<ConnectionManager>) {
    let ended = tokio::time::timeout(ROLLBACK_TIMEOUT, session.client().batch_execute(ROLLBACK)).await;
    if !matches!(ended, Ok(Ok(()))) {
        cancel_and_drop(Object::take(session)).await;
    }
}

/// Cancels first: dropping the connection alone would wait for every row.
async fn cancel_and_drop(session: PostgresSession) {
    if let Err(error) = session.connection().canceller().cancel().await {
        tracing::warn!("a cancellation did not reach the server: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_error_is_reused_for_one_second() {
        let now = Instant::now();
        let recent = |error: Option<Error>, at| {
            recent_error(&Mutex::new(error.map(|error| (now, error))), at).map(|error| error.to_string())
        };
        let refused = || Some(Error::new(ErrorKind::Unavailable, "refused"));
        assert_eq!(recent(None, now), None);
        assert_eq!(recent(refused(), now).as_deref(), Some("refused"));
        assert_eq!(recent(refused(), now + CONNECT_ERROR_MAX_AGE), None);
    }
}
