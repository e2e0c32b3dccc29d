//! The connections of a database: a bounded number, each leased to one call.
//!
//! A connection returns to the pool only outside of a transaction and with nothing running. A call that is dropped
//! earlier leaves an open transaction, or a running statement: what runs is ended and rolled back in the background, and the
//! connection returns then.
//!
//! Connections are opened in tasks of their own, for whichever call needs one next. To open one takes round trips, and to check
//! its TLS and its password takes processor time of both sides. If it belonged to the call that needs it, a storm of clients
//! that leave would make the server open connections that nobody uses, and the next call would begin again.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool::Runtime;
use deadpool::managed::{Manager, Metrics, Object, PoolError, RecycleError, RecycleResult, TimeoutType};
use parking_lot::Mutex;
use tidegate_core::{Backoff, Error, ErrorKind};
use tidegate_sql::Transaction;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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
    connections: deadpool::managed::Pool<ConnectionManager>,
    background_tasks: Arc<BackgroundTasks>,
}

/// Tasks that may outlive their calls.
pub(crate) struct BackgroundTasks {
    tasks: TaskTracker,
    /// Fires when the database is closed.
    pub(crate) closing: CancellationToken,
}

struct ConnectionManager(Arc<Opener>);

impl Manager for ConnectionManager {
    type Type = PostgresSession;
    type Error = Error;

    async fn create(&self) -> Result<PostgresSession, Error> {
        // Rare, and large: every call contains the future that waits for a connection.
        Box::pin(self.0.next_session()).await
    }

    async fn recycle(&self, session: &mut PostgresSession, _: &Metrics) -> RecycleResult<Error> {
        if session.connection().is_closed() {
            return Err(RecycleError::message("the connection has ended"));
        }
        Ok(())
    }
}

impl Pool {
    pub(crate) fn new(database: Arc<str>, target: ConnectTarget, options: Arc<PostgresOptions>) -> Result<Self, Error> {
        let background_tasks = BackgroundTasks { tasks: TaskTracker::new(), closing: CancellationToken::new() };
        let (connections_max, acquire_timeout) = (options.connections_max.max(1), options.acquire_timeout);
        let opener = Opener::new(database.clone(), target, options, background_tasks.closing.clone());
        let connections = deadpool::managed::Pool::builder(ConnectionManager(Arc::new(opener)))
            .max_size(connections_max)
            .wait_timeout(Some(acquire_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::internal(error.to_string()))?;
        Ok(Self { database, connections, background_tasks: Arc::new(background_tasks) })
    }

    /// A connection for one call; `Unavailable` if none is free in time or the server cannot be reached.
    pub(crate) async fn acquire(&self) -> Result<Lease, Error> {
        match self.connections.get().await {
            Ok(session) => Ok(Lease {
                session: Some(session),
                state: LeaseState::Idle,
                background_tasks: self.background_tasks.clone(),
                opener: self.opener().clone(),
                database: self.database.clone(),
            }),
            Err(PoolError::Timeout(TimeoutType::Wait)) => Err(self.busy_error()),
            Err(PoolError::Backend(error)) => Err(error),
            Err(PoolError::Closed) => Err(error::closed_error(&self.database)),
            Err(other) => Err(Error::internal(format!("the pool of {}: {other}", self.database))),
        }
    }

    pub(crate) async fn open_replacement(&self) -> Result<PostgresSession, Error> {
        self.opener().open(true).await
    }

    fn opener(&self) -> &Arc<Opener> {
        &self.connections.manager().0
    }

    fn busy_error(&self) -> Error {
        let connections = self.connections.status().max_size;
        let message = format!("all {connections} connections to the database {} are in use", self.database);
        Error::new(ErrorKind::Unavailable, message).with_hint("Try again when other calls have ended.")
    }

    pub(crate) fn target(&self) -> &ConnectTarget {
        &self.opener().target
    }

    pub(crate) fn connections_in_use(&self) -> usize {
        let status = self.connections.status();
        status.size.saturating_sub(status.available)
    }

    pub(crate) fn seen_types(&self) -> &SeenTypes {
        &self.opener().seen_types
    }

    pub(crate) fn background_tasks(&self) -> &Arc<BackgroundTasks> {
        &self.background_tasks
    }

    /// Waits until the database is being closed. Returns the error of calls that end because of it.
    pub(crate) async fn closed(&self) -> Error {
        self.background_tasks.closing.cancelled().await;
        error::closed_error(&self.database)
    }

    /// Ends running calls and closes the connections; waits at most for `timeout`.
    pub(crate) async fn close(&self, timeout: Duration) {
        self.background_tasks.closing.cancel();
        self.background_tasks.tasks.close();
        // The server notices by itself that the client of the remaining statements is gone.
        let _ = tokio::time::timeout(timeout, self.background_tasks.tasks.wait()).await;
        self.connections.close();
        self.opener().close();
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
    opener: Arc<Opener>,
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
            let replacement = Box::pin(self.opener.open(true)).await?;
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
            let opener = self.opener.clone();
            self.background_tasks.spawn(async move {
                match free(&session).await {
                    true => drop(session),
                    false => {
                        drop(Object::take(session));
                        opener.refill();
                    }
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

/// How long a connect error is returned to further calls without another attempt. Otherwise a thousand declared tools
/// that start together would each wait for the connect timeout.
const CONNECT_ERROR_MAX_AGE: Duration = Duration::from_secs(1);
/// The delays between the attempts to replace a lost connection before a call needs it.
const REFILL_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// The number of these attempts. Later ones are made by calls.
const REFILL_ATTEMPTS: u32 = 8;

struct Opener {
    pub(crate) target: ConnectTarget,
    options: Arc<PostgresOptions>,
    application_name: String,
    database: Arc<str>,
    last_error: Mutex<Option<(Instant, Error)>>,
    pub(crate) seen_types: Arc<SeenTypes>,
    state: Mutex<OpenerState>,
    /// Each session has a clone.
    sessions: Arc<()>,
    closing: CancellationToken,
}

#[derive(Default)]
struct OpenerState {
    /// The number of connections that are being opened.
    opening: usize,
    /// Calls that wait for one, the first first.
    waiting: VecDeque<oneshot::Sender<Result<PostgresSession, Error>>>,
    /// Open connections whose calls left. No more than calls waited at once, and so than the pool may have.
    spare: Vec<PostgresSession>,
    is_refilling: bool,
}

impl Opener {
    pub(crate) fn new(
        database: Arc<str>,
        target: ConnectTarget,
        options: Arc<PostgresOptions>,
        closing: CancellationToken,
    ) -> Self {
        Self {
            target,
            options,
            application_name: format!("tidegate/{database}"),
            database,
            last_error: Mutex::default(),
            seen_types: Arc::default(),
            state: Mutex::default(),
            sessions: Arc::default(),
            closing,
        }
    }

    /// An open connection that no call has: a spare one, or the next that is opened.
    async fn next_session(self: &Arc<Self>) -> Result<PostgresSession, Error> {
        let opened = {
            let mut state = self.state.lock();
            state.spare.retain(|session| !session.connection().is_closed());
            if let Some(session) = state.spare.pop() {
                return Ok(session);
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
            outcome = self.open(false) => outcome,
            () = self.closing.cancelled() => Err(error::closed_error(&self.database)),
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
        if let Ok(session) = outcome
            && self.open_sessions() <= self.options.connections_max.max(1)
        {
            state.spare.push(session);
        }
        is_open
    }

    fn open_sessions(&self) -> usize {
        Arc::strong_count(&self.sessions) - 1
    }

    /// Records that a connection is being opened that no call waits for, unless there are enough.
    fn begin_refill(&self) -> bool {
        let mut state = self.state.lock();
        let is_needed = state.opening == 0 && state.spare.is_empty();
        let is_possible = self.open_sessions() < self.options.connections_max.max(1);
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

    /// Closes the connections that no call has.
    pub(crate) fn close(&self) {
        self.state.lock().spare.clear();
    }

    pub(crate) async fn open(&self, is_replacement: bool) -> Result<PostgresSession, Error> {
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
            PostgresSession::open(connection, &self.options, pooler, self.sessions.clone()).await
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

#[cfg(test)]
mod tests {
    use tidegate_core::ErrorKind;

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
