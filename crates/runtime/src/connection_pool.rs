//! The connections to the server of a database: a bounded number, each used by one call at a time.
//!
//! Connections are opened in tasks of their own, for whichever call needs one next. To open one takes round trips, and to check
//! its TLS and its password takes processor time of both sides. If it belonged to the call that needs it, a storm of clients
//! that leave would make the server open connections that nobody uses, and the next call would begin again.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool::Runtime;
use deadpool::managed::{Manager, Metrics, Object, PoolError, RecycleError, RecycleResult, TimeoutType};
use parking_lot::Mutex;
use tidegate_core::{Backoff, Error, ErrorKind};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Opens the connections of a pool.
pub trait Connector: Send + Sync + 'static {
    /// An open connection.
    type Connection: Send + 'static;

    /// Opens a connection.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Error>> + Send;

    /// Whether `connection` has ended.
    fn is_closed(&self, connection: &Self::Connection) -> bool;

    /// The number of connections that exist, also those that calls use.
    fn open_connections(&self) -> usize;
}

/// The pool of the connections to one database.
pub struct ConnectionPool<C: Connector> {
    database: Arc<str>,
    connections: deadpool::managed::Pool<ConnectionManager<C>>,
    background_tasks: Arc<BackgroundTasks>,
}

/// A connection of a pool. Dropping it returns it, so it must be idle then.
pub struct PooledConnection<C: Connector> {
    connection: Object<ConnectionManager<C>>,
    opener: Arc<Opener<C>>,
}

/// Tasks that may outlive their calls.
pub struct BackgroundTasks {
    tasks: TaskTracker,
    closing: CancellationToken,
}

struct ConnectionManager<C: Connector>(Arc<Opener<C>>);

impl<C: Connector> Manager for ConnectionManager<C> {
    type Type = C::Connection;
    type Error = Error;

    async fn create(&self) -> Result<C::Connection, Error> {
        // Rare, and large: every call contains the future that waits for a connection.
        Box::pin(self.0.next_connection()).await
    }

    async fn recycle(&self, connection: &mut C::Connection, _: &Metrics) -> RecycleResult<Error> {
        if self.0.connector.is_closed(connection) {
            return Err(RecycleError::message("the connection has ended"));
        }
        Ok(())
    }
}

impl<C: Connector> ConnectionPool<C> {
    /// A pool of at most `connections_max` connections. A call waits for one at most for `acquire_timeout`.
    ///
    /// # Errors
    /// `Internal` if the pool cannot be created.
    pub fn new(
        database: Arc<str>,
        connector: C,
        connections_max: usize,
        acquire_timeout: Duration,
    ) -> Result<Self, Error> {
        let background_tasks = BackgroundTasks { tasks: TaskTracker::new(), closing: CancellationToken::new() };
        let connections_max = connections_max.max(1);
        let opener = Opener {
            connector: Arc::new(connector),
            database: database.clone(),
            connections_max,
            state: Mutex::new(OpenerState::default()),
            closing: background_tasks.closing.clone(),
        };
        let connections = deadpool::managed::Pool::builder(ConnectionManager(Arc::new(opener)))
            .max_size(connections_max)
            .wait_timeout(Some(acquire_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::internal(error.to_string()))?;
        Ok(Self { database, connections, background_tasks: Arc::new(background_tasks) })
    }

    /// A connection for one call.
    ///
    /// # Errors
    /// `Unavailable` if none is free in time, or the error of the connector.
    pub async fn acquire(&self) -> Result<PooledConnection<C>, Error> {
        match self.connections.get().await {
            Ok(connection) => Ok(PooledConnection { connection, opener: self.opener().clone() }),
            Err(PoolError::Timeout(TimeoutType::Wait)) => Err(self.busy_error()),
            Err(PoolError::Backend(error)) => Err(error),
            Err(PoolError::Closed) => Err(closed_error(&self.database)),
            Err(other) => Err(Error::internal(format!("the pool of {}: {other}", self.database))),
        }
    }

    fn busy_error(&self) -> Error {
        let connections = self.connections.status().max_size;
        let message = format!("all {connections} connections to the database {} are in use", self.database);
        Error::new(ErrorKind::Unavailable, message).with_hint("Try again when other calls have ended.")
    }

    fn opener(&self) -> &Arc<Opener<C>> {
        &self.connections.manager().0
    }

    /// What opens the connections.
    pub fn connector(&self) -> &Arc<C> {
        &self.opener().connector
    }

    /// The number of connections that calls hold now.
    pub fn connections_in_use(&self) -> usize {
        let status = self.connections.status();
        status.size.saturating_sub(status.available)
    }

    /// The tasks that go on when their calls leave.
    pub fn background_tasks(&self) -> &Arc<BackgroundTasks> {
        &self.background_tasks
    }

    /// Waits until the database is being closed. Returns the error of calls that end because of it.
    pub async fn closed(&self) -> Error {
        self.background_tasks.closing.cancelled().await;
        closed_error(&self.database)
    }

    /// Ends running calls and closes the connections; waits at most for `timeout`.
    pub async fn close(&self, timeout: Duration) {
        self.background_tasks.closing.cancel();
        self.background_tasks.tasks.close();
        // The server notices by itself that the client of the remaining statements is gone.
        let _ = tokio::time::timeout(timeout, self.background_tasks.tasks.wait()).await;
        self.connections.close();
        self.opener().state.lock().spare.clear();
    }
}

impl<C: Connector> PooledConnection<C> {
    /// Closes the connection, which cannot be used again. Another one is opened in its place, before a call needs it.
    pub fn discard(self) {
        let Self { connection, opener } = self;
        drop(Object::take(connection));
        opener.refill();
    }
}

impl<C: Connector> Deref for PooledConnection<C> {
    type Target = C::Connection;

    fn deref(&self) -> &C::Connection {
        &self.connection
    }
}

impl<C: Connector> DerefMut for PooledConnection<C> {
    fn deref_mut(&mut self) -> &mut C::Connection {
        &mut self.connection
    }
}

impl BackgroundTasks {
    /// Runs `work` on the current runtime; without a runtime, it does not run.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.tasks.spawn_on(work, &runtime);
        }
    }

    /// Fires when the database is closed.
    pub fn closing(&self) -> &CancellationToken {
        &self.closing
    }
}

fn closed_error(database: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the database {database} is being closed"))
}

/// The delays between the attempts to replace a lost connection before a call needs it.
const REFILL_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// The number of these attempts. Later ones are made by calls.
const REFILL_ATTEMPTS: u32 = 8;

struct Opener<C: Connector> {
    connector: Arc<C>,
    database: Arc<str>,
    connections_max: usize,
    state: Mutex<OpenerState<C::Connection>>,
    closing: CancellationToken,
}

struct OpenerState<T> {
    /// The number of connections that are being opened.
    opening: usize,
    /// Calls that wait for one, the first first.
    waiting: VecDeque<oneshot::Sender<Result<T, Error>>>,
    /// Open connections whose calls left. No more than calls waited at once, and so than the pool may have.
    spare: Vec<T>,
    is_refilling: bool,
}

impl<T> Default for OpenerState<T> {
    fn default() -> Self {
        Self { opening: 0, waiting: VecDeque::new(), spare: Vec::new(), is_refilling: false }
    }
}

impl<C: Connector> Opener<C> {
    /// An open connection that no call has: a spare one, or the next that is opened.
    async fn next_connection(self: &Arc<Self>) -> Result<C::Connection, Error> {
        let opened = {
            let mut state = self.state.lock();
            state.spare.retain(|connection| !self.connector.is_closed(connection));
            if let Some(connection) = state.spare.pop() {
                return Ok(connection);
            }
            state.waiting.retain(|waiting| !waiting.is_closed());
            let (sender, opened) = oneshot::channel();
            state.waiting.push_back(sender);
            if state.opening < state.waiting.len() {
                state.opening += 1;
                tokio::spawn(self.clone().open_next());
            }
            opened
        };
        opened.await.unwrap_or_else(|_| Err(Error::internal("a connection was not opened")))
    }

    /// Opens a connection for the first call that waits. Returns whether it is open.
    async fn open_next(self: Arc<Self>) -> bool {
        let mut outcome = tokio::select! {
            outcome = self.connector.connect() => outcome,
            () = self.closing.cancelled() => Err(closed_error(&self.database)),
        };
        let mut state = self.state.lock();
        state.opening -= 1;
        let is_open = outcome.is_ok();
        while let Some(waiting) = state.waiting.pop_front() {
            outcome = match waiting.send(outcome) {
                Ok(()) => return is_open,
                Err(unsent) => unsent,
            };
        }
        if let Ok(connection) = outcome
            && self.connector.open_connections() <= self.connections_max
        {
            state.spare.push(connection);
        }
        is_open
    }

    /// Records that a connection is being opened that no call waits for, unless there are enough.
    fn begin_refill(&self) -> bool {
        let mut state = self.state.lock();
        let is_needed = state.opening == 0 && state.spare.is_empty();
        let is_possible = self.connector.open_connections() < self.connections_max;
        state.opening += usize::from(is_needed && is_possible);
        is_needed && is_possible
    }

    /// Opens a connection before a call needs it, after one was lost. Tries several times, in the background.
    fn refill(self: &Arc<Self>) {
        if std::mem::replace(&mut self.state.lock().is_refilling, true) {
            return;
        }
        let opener = self.clone();
        tokio::spawn(async move {
            let mut backoff = Backoff::new(REFILL_DELAYS.0, REFILL_DELAYS.1);
            for _ in 0..REFILL_ATTEMPTS {
                if !opener.begin_refill() || opener.clone().open_next().await {
                    break;
                }
                tokio::select! {
                    () = tokio::time::sleep(backoff.next_delay()) => {}
                    () = opener.closing.cancelled() => break,
                }
            }
            opener.state.lock().is_refilling = false;
        });
    }
}

/// How long a connect error is returned to further calls without another attempt. Otherwise a thousand declared tools
/// that start together would each wait for the connect timeout.
const CONNECT_ERROR_MAX_AGE: Duration = Duration::from_secs(1);

/// The last error of a connector, for the attempts of the next second.
#[derive(Debug, Default)]
pub struct RecentConnectError(Mutex<Option<(Instant, Error)>>);

impl RecentConnectError {
    /// The error, unless it is too old.
    pub fn get(&self) -> Option<Error> {
        self.get_at(Instant::now())
    }

    /// Records the error of an attempt that failed now.
    pub fn set(&self, error: &Error) {
        *self.0.lock() = Some((Instant::now(), error.clone()));
    }

    fn get_at(&self, now: Instant) -> Option<Error> {
        let last = self.0.lock();
        let (time, error) = last.as_ref()?;
        (now.saturating_duration_since(*time) < CONNECT_ERROR_MAX_AGE).then(|| error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_error_is_reused_for_one_second() {
        let now = Instant::now();
        assert!(RecentConnectError::default().get_at(now).is_none());
        let recent = RecentConnectError(Mutex::new(Some((now, Error::new(ErrorKind::Unavailable, "refused")))));
        let text = |at| recent.get_at(at).map(|error| error.to_string());
        assert_eq!(text(now).as_deref(), Some("refused"));
        assert_eq!(text(now + CONNECT_ERROR_MAX_AGE), None);
    }
}
