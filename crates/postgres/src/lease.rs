//! A connection that is lent to one call, and what becomes of it afterwards.
//!
//! It goes back only when it is known to be as it was: outside of a transaction, with nothing running. A call that is
//! dropped in between leaves a transaction to be rolled back, or something that still runs: then the server is told to
//! cancel it first, and the connection is thrown away, because nobody can know what the cancellation met.

use std::sync::Arc;
use std::time::Duration;

use deadpool::managed::Object;
use tidegate_core::Error;
use tidegate_sql::Transaction;

use crate::error;
use crate::pool::{BackgroundTasks, PooledSession};
use crate::session::{PostgresSession, TransactionIdentity};
use crate::transaction::ROLLBACK;

/// How long the end of a transaction may take before its connection is thrown away.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that is lent to one call.
pub(crate) struct Lease {
    /// None only while it is dropped.
    session: Option<PooledSession>,
    state: LeaseState,
    background_tasks: Arc<BackgroundTasks>,
    database: Arc<str>,
}

/// What is known of a lent connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseState {
    /// As it was when it was lent.
    Idle,
    /// In a transaction, and nothing runs.
    InTransaction,
    /// Something was sent whose answer was not seen yet.
    Busy,
}

impl Lease {
    pub(crate) fn new(session: PooledSession, background_tasks: Arc<BackgroundTasks>, database: Arc<str>) -> Self {
        Self { session: Some(session), state: LeaseState::Idle, background_tasks, database }
    }

    /// The session.
    ///
    /// # Errors
    /// Never while the lease lives; said as an error, so that no call can panic.
    pub(crate) fn session(&self) -> Result<&PostgresSession, Error> {
        self.session.as_deref().ok_or_else(|| Error::internal("a connection was used after it had been given back"))
    }

    /// Begins a transaction as `identity`.
    ///
    /// # Errors
    /// What the server says; the connection is then thrown away.
    pub(crate) async fn begin(
        &mut self,
        transaction: &Transaction,
        identity: &TransactionIdentity,
    ) -> Result<(), Error> {
        self.state = LeaseState::Busy;
        let session = self.session()?;
        let refused = |error| match identity.role.as_deref() {
            Some(role) => error::role_error(&error, &self.database, role),
            None => error::internal_statement_error(&error, &self.database),
        };
        session.begin(transaction, identity).await.map_err(refused)?;
        self.state = LeaseState::InTransaction;
        Ok(())
    }

    /// Continues with `replacement` instead of its connection, whose transaction has ended.
    pub(crate) fn replace(&mut self, replacement: PostgresSession) {
        if let Some(session) = &mut self.session {
            **session = replacement;
        }
    }

    /// Says that something was sent; until [`Lease::mark_in_transaction`] the connection's state is in doubt.
    pub(crate) fn mark_busy(&mut self) {
        self.state = LeaseState::Busy;
    }

    /// Says that all answers were seen and the transaction is open still.
    pub(crate) fn mark_in_transaction(&mut self) {
        self.state = LeaseState::InTransaction;
    }

    /// Says that all answers were seen and the transaction has ended.
    pub(crate) fn mark_idle(&mut self) {
        self.state = LeaseState::Idle;
    }

    /// Ends the transaction with `words`.
    ///
    /// # Errors
    /// What the server says; the connection is then thrown away.
    pub(crate) async fn end(&mut self, words: &str) -> Result<(), tokio_postgres::Error> {
        self.state = LeaseState::Busy;
        if let Some(session) = &self.session {
            session.client().batch_execute(words).await?;
        }
        self.state = LeaseState::Idle;
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        match self.state {
            // Dropping gives it back to the pool.
            LeaseState::Idle => {}
            LeaseState::InTransaction => self.background_tasks.spawn(roll_back(session)),
            LeaseState::Busy => self.background_tasks.spawn(cancel_and_drop(Object::take(session))),
        }
    }
}

async fn roll_back(session: PooledSession) {
    let end = tokio::time::timeout(ROLLBACK_TIMEOUT, session.client().batch_execute(ROLLBACK)).await;
    if !matches!(end, Ok(Ok(()))) {
        cancel_and_drop(Object::take(session)).await;
    }
}

/// First the cancellation, then the connection: dropping it alone would wait for every row.
async fn cancel_and_drop(session: PostgresSession) {
    if let Err(error) = session.canceller().cancel().await {
        tracing::warn!("a cancellation did not reach the server: {error}");
    }
    drop(session);
}

impl BackgroundTasks {
    /// Runs `work` to its end, on whatever runtime there is; without one the server notices by itself.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.tasks.spawn_on(work, &runtime);
        }
    }
}
