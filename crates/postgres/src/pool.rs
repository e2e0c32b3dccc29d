//! The connections of a database: a bounded number, lent to one call each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool::Runtime;
use deadpool::managed::{Manager, Metrics, Object, PoolError, RecycleError, RecycleResult, TimeoutType};
use tidegate_core::{Error, ErrorKind};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connect::ConnectTarget;
use crate::error;
use crate::lease::Lease;
use crate::options::PostgresOptions;
use crate::pooler::{PoolerSession, SeenTypes};
use crate::session::PostgresSession;
use crate::unreachable::LastConnectFailure;

/// The connections of one database.
#[derive(Clone)]
pub(crate) struct Pool {
    database: Arc<str>,
    connections: deadpool::managed::Pool<ConnectionManager>,
    background_tasks: Arc<BackgroundTasks>,
}

/// What outlives the calls: the tasks that clean up after them.
pub(crate) struct BackgroundTasks {
    pub(crate) tasks: TaskTracker,
    /// Fires when the database is closed.
    pub(crate) closing: CancellationToken,
}

/// Makes connections.
pub(crate) struct ConnectionManager {
    target: Arc<ConnectTarget>,
    options: Arc<PostgresOptions>,
    application_name: String,
    database: Arc<str>,
    last_failure: LastConnectFailure,
    seen_types: Arc<SeenTypes>,
}

impl Manager for ConnectionManager {
    type Type = PostgresSession;
    type Error = Error;

    async fn create(&self) -> Result<PostgresSession, Error> {
        self.open(false).await
    }

    async fn recycle(&self, session: &mut PostgresSession, _: &Metrics) -> RecycleResult<Error> {
        if session.is_closed() {
            return Err(RecycleError::message("the connection has ended"));
        }
        Ok(())
    }
}

impl ConnectionManager {
    async fn open(&self, is_replacement: bool) -> Result<PostgresSession, Error> {
        if let Some(failure) = self.last_failure.recent(Instant::now()) {
            return Err(failure);
        }
        // Connecting is rare and has a large future, which every call would otherwise contain.
        let connected = Box::pin(self.target.connect(&self.application_name)).await.map_err(|error| {
            tracing::warn!(database = %self.database, "{error}");
            let failure = error.into_error(&self.database);
            self.last_failure.remember(failure.clone(), Instant::now());
            failure
        })?;
        let opened = async {
            let pooler = match self.options.is_behind_pooler {
                true => Some(PoolerSession::detect(connected.client(), self.seen_types.clone(), is_replacement).await?),
                false => None,
            };
            PostgresSession::open(connected, &self.options, pooler).await
        };
        opened.await.map_err(|error| error::internal_statement_error(&error, &self.database))
    }
}

impl Pool {
    /// A pool that connects to `target` when it has to.
    ///
    /// # Errors
    /// `Internal` when it cannot be built.
    pub(crate) fn new(database: Arc<str>, target: ConnectTarget, options: Arc<PostgresOptions>) -> Result<Self, Error> {
        let opener = ConnectionManager {
            target: Arc::new(target),
            options: options.clone(),
            application_name: format!("tidegate/{database}"),
            database: database.clone(),
            last_failure: LastConnectFailure::default(),
            seen_types: Arc::default(),
        };
        let connections = deadpool::managed::Pool::builder(opener)
            .max_size(options.connections_max.max(1))
            .wait_timeout(Some(options.acquire_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::internal(error.to_string()))?;
        let tasks_value = Arc::new(BackgroundTasks { tasks: TaskTracker::new(), closing: CancellationToken::new() });
        Ok(Self { database, connections, background_tasks: tasks_value })
    }

    /// A connection for one call.
    ///
    /// # Errors
    /// `Unavailable` when all are lent for too long, or the server cannot be reached.
    pub(crate) async fn acquire(&self) -> Result<Lease, Error> {
        match self.connections.get().await {
            Ok(session) => Ok(Lease::new(session, self.background_tasks.clone(), self.database.clone())),
            Err(PoolError::Timeout(TimeoutType::Wait)) => Err(self.busy_error()),
            Err(PoolError::Backend(error)) => Err(error),
            Err(PoolError::Closed) => Err(closed_error(&self.database)),
            Err(other) => Err(Error::internal(format!("the pool of {}: {other}", self.database))),
        }
    }

    /// A connection in the place of one that is of no use any more.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached.
    pub(crate) async fn open_replacement(&self) -> Result<PostgresSession, Error> {
        self.connections.manager().open(true).await
    }

    fn busy_error(&self) -> Error {
        let connections = self.connections.status().max_size;
        let message = format!("all {connections} connections to the database {} are in use", self.database);
        Error::new(ErrorKind::Unavailable, message).with_hint("Try again when other calls have ended.")
    }

    /// Where connections lead to, for the owner.
    pub(crate) fn target(&self) -> &ConnectTarget {
        &self.connections.manager().target
    }

    /// Connections that are lent now.
    pub(crate) fn connections_in_use(&self) -> usize {
        let status = self.connections.status();
        status.size.saturating_sub(status.available)
    }

    /// Types of users that were met.
    pub(crate) fn seen_types(&self) -> &SeenTypes {
        &self.connections.manager().seen_types
    }

    /// What outlives the calls.
    pub(crate) fn background_tasks(&self) -> &Arc<BackgroundTasks> {
        &self.background_tasks
    }

    /// Ends what runs and closes the connections; waits at most `within` for that.
    pub(crate) async fn close(&self, within: Duration) {
        self.background_tasks.closing.cancel();
        self.background_tasks.tasks.close();
        // What has not ended by then is left to the server, which notices that its client is gone.
        let _ = tokio::time::timeout(within, self.background_tasks.tasks.wait()).await;
        self.connections.close();
    }
}

pub(crate) fn closed_error(database: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the database {database} is being closed"))
}

/// A connection out of the pool.
pub(crate) type PooledSession = Object<ConnectionManager>;
