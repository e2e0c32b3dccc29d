//! A connection that is lent to one call, and what becomes of it afterwards.
//!
//! It goes back only when it is known to be as it was: outside of a transaction, with nothing running. A call that is
//! dropped in between leaves a transaction to be rolled back, or something that still runs: then the server is told to
//! cancel it first, and the connection is thrown away, because nobody can know what the cancellation met.

use std::sync::Arc;
use std::time::Duration;

use deadpool::managed::Object;
use tidegate_core::Error;
use tidegate_query::Transaction;

use crate::error;
use crate::pool::{House, Pooled};
use crate::session::{Identity, Session};
use crate::transaction::ROLLBACK;

/// How long the end of a transaction may take before its connection is thrown away.
const END_WITHIN: Duration = Duration::from_secs(5);

/// A connection that is lent to one call.
pub(crate) struct Lease {
    /// None only while it is dropped.
    session: Option<Pooled>,
    state: State,
    house: Arc<House>,
    database: Arc<str>,
}

/// What is known of a lent connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// As it was when it was lent.
    Idle,
    /// In a transaction, and nothing runs.
    InTransaction,
    /// Something was sent whose answer was not seen yet.
    Busy,
}

impl Lease {
    pub(crate) fn new(session: Pooled, house: Arc<House>, database: Arc<str>) -> Self {
        Self { session: Some(session), state: State::Idle, house, database }
    }

    /// The session.
    ///
    /// # Errors
    /// Never while the lease lives; said as an error, so that no call can panic.
    pub(crate) fn session(&self) -> Result<&Session, Error> {
        self.session.as_deref().ok_or_else(|| Error::internal("a connection was used after it had been given back"))
    }

    /// Begins a transaction as `identity`.
    ///
    /// # Errors
    /// What the server says; the connection is then thrown away.
    pub(crate) async fn begin(&mut self, transaction: &Transaction, identity: &Identity) -> Result<(), Error> {
        self.state = State::Busy;
        let session = self.session()?;
        let refused = |error| match identity.role.as_deref() {
            Some(role) => error::of_role(&error, &self.database, role),
            None => error::of_own(&error, &self.database),
        };
        session.begin(transaction, identity).await.map_err(refused)?;
        self.state = State::InTransaction;
        Ok(())
    }

    /// Goes on with `replacement` instead of its connection, whose transaction has ended.
    pub(crate) fn replace(&mut self, replacement: Session) {
        if let Some(session) = &mut self.session {
            **session = replacement;
        }
    }

    /// Says that something was sent; until [`Lease::rests`] the connection's state is in doubt.
    pub(crate) fn sends(&mut self) {
        self.state = State::Busy;
    }

    /// Says that all answers were seen and the transaction is open still.
    pub(crate) fn rests(&mut self) {
        self.state = State::InTransaction;
    }

    /// Says that all answers were seen and the transaction has ended.
    pub(crate) fn has_ended(&mut self) {
        self.state = State::Idle;
    }

    /// Ends the transaction with `words`.
    ///
    /// # Errors
    /// What the server says; the connection is then thrown away.
    pub(crate) async fn end(&mut self, words: &str) -> Result<(), tokio_postgres::Error> {
        self.state = State::Busy;
        if let Some(session) = &self.session {
            session.client().batch_execute(words).await?;
        }
        self.state = State::Idle;
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        match self.state {
            // Dropping gives it back to the pool.
            State::Idle => {}
            State::InTransaction => self.house.spawn(roll_back(session)),
            State::Busy => self.house.spawn(cancel(Object::take(session))),
        }
    }
}

async fn roll_back(session: Pooled) {
    let end = tokio::time::timeout(END_WITHIN, session.client().batch_execute(ROLLBACK)).await;
    if !matches!(end, Ok(Ok(()))) {
        cancel(Object::take(session)).await;
    }
}

/// First the cancellation, then the connection: dropping it alone would wait for every row.
async fn cancel(session: Session) {
    if let Err(error) = session.canceller().cancel().await {
        tracing::warn!("a cancellation did not reach the server: {error}");
    }
    drop(session);
}

impl House {
    /// Runs `work` to its end, on whatever runtime there is; without one the server notices by itself.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.tasks.spawn_on(work, &runtime);
        }
    }
}
