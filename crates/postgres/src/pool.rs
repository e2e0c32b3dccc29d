//! The connections of a database: a bounded number, lent to one call each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool::Runtime;
use deadpool::managed::{Manager, Metrics, Object, PoolError, RecycleError, RecycleResult, TimeoutType};
use tidegate_core::{Error, ErrorKind};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::away::{Away, Failure};
use crate::behind_pooler::{BehindPooler, MetTypes};
use crate::connect::{Startup, Target};
use crate::error;
use crate::lease::Lease;
use crate::options::PostgresOptions;
use crate::session::Session;

/// The connections of one database.
#[derive(Clone)]
pub(crate) struct Pool {
    database: Arc<str>,
    connections: deadpool::managed::Pool<Opener>,
    house: Arc<House>,
}

/// What outlives the calls: the tasks that clean up after them.
pub(crate) struct House {
    pub(crate) tasks: TaskTracker,
    /// Fires when the database is closed.
    pub(crate) closing: CancellationToken,
}

/// Makes connections.
pub(crate) struct Opener {
    target: Arc<Target>,
    options: Arc<PostgresOptions>,
    application_name: String,
    database: Arc<str>,
    away: Away,
    types: Arc<MetTypes>,
}

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The server was not reached or did not let us in.
    #[error(transparent)]
    Away(#[from] Failure),
    /// The server did not take our settings.
    #[error(transparent)]
    Settings(#[from] tokio_postgres::Error),
}

impl Manager for Opener {
    type Type = Session;
    type Error = OpenError;

    async fn create(&self) -> Result<Session, OpenError> {
        self.open(false).await
    }

    async fn recycle(&self, session: &mut Session, _: &Metrics) -> RecycleResult<OpenError> {
        if session.is_closed() {
            return Err(RecycleError::message("the connection has ended"));
        }
        Ok(())
    }
}

impl Opener {
    async fn open(&self, is_replacement: bool) -> Result<Session, OpenError> {
        if let Some(failure) = self.away.recent(Instant::now()) {
            return Err(failure.into());
        }
        let startup = Startup { application_name: &self.application_name, settings: &[] };
        match self.target.connect(&startup).await {
            Ok(connected) => {
                let pooler = match self.options.pooler {
                    true => Some(BehindPooler::find(connected.client(), self.types.clone(), is_replacement).await?),
                    false => None,
                };
                Ok(Session::open(connected, &self.options, pooler).await?)
            }
            Err(error) => {
                let failure = Failure { told: error.for_caller(&self.database), for_owner: error.for_owner() };
                tracing::warn!(database = %self.database, "{failure}");
                self.away.remember(failure.clone(), Instant::now());
                Err(failure.into())
            }
        }
    }
}

impl Pool {
    /// A pool that connects to `target` when it has to.
    ///
    /// # Errors
    /// `Internal` when it cannot be built.
    pub(crate) fn new(database: Arc<str>, target: Target, options: Arc<PostgresOptions>) -> Result<Self, Error> {
        let opener = Opener {
            target: Arc::new(target),
            options: options.clone(),
            application_name: format!("tidegate/{database}"),
            database: database.clone(),
            away: Away::default(),
            types: Arc::default(),
        };
        let connections = deadpool::managed::Pool::builder(opener)
            .max_size(options.connections_max.max(1))
            .wait_timeout(Some(options.wait))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::internal(error.to_string()))?;
        let house = Arc::new(House { tasks: TaskTracker::new(), closing: CancellationToken::new() });
        Ok(Self { database, connections, house })
    }

    /// A connection for one call.
    ///
    /// # Errors
    /// `Unavailable` when all are lent for too long, or the server cannot be reached.
    pub(crate) async fn lend(&self) -> Result<Lease, Error> {
        match self.connections.get().await {
            Ok(session) => Ok(Lease::new(session, self.house.clone(), self.database.clone())),
            Err(PoolError::Timeout(TimeoutType::Wait)) => Err(self.busy()),
            Err(PoolError::Backend(error)) => Err(self.unopened(error)),
            Err(PoolError::Closed) => Err(closed(&self.database)),
            Err(other) => Err(Error::internal(format!("the pool of {}: {other}", self.database))),
        }
    }

    /// A connection in the place of one that is of no use any more.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached.
    pub(crate) async fn replacement(&self) -> Result<Session, Error> {
        self.connections.manager().open(true).await.map_err(|error| self.unopened(error))
    }

    fn unopened(&self, error: OpenError) -> Error {
        match error {
            OpenError::Away(Failure { told, for_owner }) => {
                Error::new(ErrorKind::Unavailable, told).with_detail(for_owner)
            }
            OpenError::Settings(error) => error::of_own(&error, &self.database),
        }
    }

    fn busy(&self) -> Error {
        let connections = self.connections.status().max_size;
        let message = format!("all {connections} connections to the database {} are in use", self.database);
        Error::new(ErrorKind::Unavailable, message).with_hint("Try again when other calls have ended.")
    }

    /// Where connections lead to, for the owner.
    pub(crate) fn target(&self) -> &Target {
        &self.connections.manager().target
    }

    /// Connections that are lent now.
    pub(crate) fn lent(&self) -> usize {
        let status = self.connections.status();
        status.size.saturating_sub(status.available)
    }

    /// Types of users that were met.
    pub(crate) fn types(&self) -> &MetTypes {
        &self.connections.manager().types
    }

    /// What outlives the calls.
    pub(crate) fn house(&self) -> &Arc<House> {
        &self.house
    }

    /// Ends what runs and closes the connections; waits at most `within` for that.
    pub(crate) async fn close(&self, within: Duration) {
        self.house.closing.cancel();
        self.house.tasks.close();
        // What has not ended by then is left to the server, which notices that its client is gone.
        let _ = tokio::time::timeout(within, self.house.tasks.wait()).await;
        self.connections.close();
    }
}

pub(crate) fn closed(database: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the database {database} is being closed"))
}

/// A connection out of the pool.
pub(crate) type Pooled = Object<Opener>;
