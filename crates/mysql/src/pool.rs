//! The leases of connections, each for one call.
//!
//! A connection returns to the pool only outside of a transaction and with nothing running. What a dropped call leaves is
//! ended in the background, and the connection returns then. The driver loses a connection whose command was dropped before
//! its answer: such a connection is ended on the server, too, where the command would go on.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Error as MySqlError, Statement as PreparedStatement};
use tidegate_core::Error;
use tidegate_runtime::{BackgroundTasks, ConnectionPool, PooledConnection};
use tokio::time::timeout;

use crate::connect::{KillTarget, MySqlConnector};
use crate::connection_string::MySqlTarget;
use crate::options::MySqlOptions;
use crate::session::{MySqlSession, SessionAccess, SessionIdentity};

/// The time limit for the end of what a dropped call has left, after which its connection is discarded.
pub(crate) const END_TIMEOUT: Duration = Duration::from_secs(5);
/// How long what a dropped call runs may go on before it is ended. Most statements have ended by then.
pub(crate) const CANCEL_DELAY: Duration = Duration::from_millis(50);

pub(crate) struct Pool {
    connections: ConnectionPool<MySqlConnector>,
}

impl Pool {
    pub(crate) fn new(
        database: Arc<str>,
        target: &MySqlTarget,
        options: Arc<MySqlOptions>,
        access: SessionAccess,
    ) -> Result<Self, Error> {
        let (connections_max, acquire_timeout) = (options.connections_max, options.acquire_timeout);
        let connector = MySqlConnector::new(database.clone(), target, options, access);
        Ok(Self { connections: ConnectionPool::new(database, connector, connections_max, acquire_timeout)? })
    }

    /// A connection for one call of `identity`; `Unavailable` if none is free in time or the server cannot be reached.
    pub(crate) async fn acquire(&self, identity: SessionIdentity) -> Result<Lease, Error> {
        let mut lease = Lease {
            session: Some(self.connections.acquire().await?),
            state: LeaseState::Idle,
            identity,
            background_tasks: self.connections.background_tasks().clone(),
            connector: self.connections.connector().clone(),
        };
        lease.set_identity().await?;
        Ok(lease)
    }

    pub(crate) fn connector(&self) -> &Arc<MySqlConnector> {
        self.connections.connector()
    }

    pub(crate) fn connections_in_use(&self) -> usize {
        self.connections.connections_in_use()
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
        self.connector().close().await;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseState {
    Idle,
    /// In a transaction, or something was sent.
    Busy,
}

pub(crate) struct Lease {
    /// `None` only while it is dropped.
    session: Option<PooledConnection<MySqlConnector>>,
    state: LeaseState,
    identity: SessionIdentity,
    background_tasks: Arc<BackgroundTasks>,
    connector: Arc<MySqlConnector>,
}

impl Lease {
    /// The session. It is present while the lease lives; the error saves a panic.
    pub(crate) fn session(&mut self) -> Result<&mut MySqlSession, Error> {
        self.session.as_deref_mut().ok_or_else(|| Error::internal("a connection was used after it had been given back"))
    }

    pub(crate) fn connector(&self) -> &Arc<MySqlConnector> {
        &self.connector
    }

    /// The role that the call runs as; `None` is the account's own.
    pub(crate) fn role(&self) -> Option<&str> {
        self.identity.role.as_deref()
    }

    /// Makes the session one of the call's identity. A connection that was lost while it was idle is replaced, once.
    async fn set_identity(&mut self) -> Result<(), Error> {
        self.mark_busy();
        match self.send_identity().await? {
            Ok(()) => self.mark_idle(),
            Err(error) if error.is_fatal() => self.replace().await?,
            Err(error) => {
                self.mark_idle();
                return Err(self.connector.identity_error(&error, self.role()));
            }
        }
        Ok(())
    }

    async fn send_identity(&mut self) -> Result<Result<(), MySqlError>, Error> {
        let (identity, options) = (self.identity.clone(), self.connector.options().clone());
        Ok(self.session()?.set_identity(&identity, &options.claims).await)
    }

    /// The id of the connection on the server.
    pub(crate) fn connection_id(&self) -> u32 {
        self.session.as_ref().map_or(0, |session| session.connection.id())
    }

    /// Records that the connection may have something to end.
    pub(crate) fn mark_busy(&mut self) {
        self.state = LeaseState::Busy;
    }

    /// Records that all answers have arrived and no transaction is open.
    pub(crate) fn mark_idle(&mut self) {
        self.state = LeaseState::Idle;
    }

    /// Prepares `text`, outside of a transaction. A connection that was lost while it was idle is replaced, once.
    pub(crate) async fn prepare(&mut self, text: &str) -> Result<Result<PreparedStatement, MySqlError>, Error> {
        self.mark_busy();
        let mut prepared = self.session()?.connection.prep(text).await;
        if prepared.as_ref().is_err_and(MySqlError::is_fatal) {
            self.replace().await?;
            prepared = self.session()?.connection.prep(text).await;
        }
        if !prepared.as_ref().is_err_and(MySqlError::is_fatal) {
            self.mark_idle();
        }
        Ok(prepared)
    }

    /// Replaces the connection if it was lost while it was idle.
    pub(crate) async fn check(&mut self) -> Result<(), Error> {
        self.mark_busy();
        match self.session()?.connection.ping().await {
            Ok(()) => self.mark_idle(),
            Err(_) => self.replace().await?,
        }
        Ok(())
    }

    /// Gives the lease another connection, in place of one that was lost.
    pub(crate) async fn replace(&mut self) -> Result<(), Error> {
        let replacement = Box::pin(self.connector.open()).await?;
        if let Some(session) = &mut self.session {
            **session = replacement;
        }
        self.mark_busy();
        let sent = self.send_identity().await?;
        sent.map_err(|error| self.connector.identity_error(&error, self.role()))?;
        self.mark_idle();
        Ok(())
    }

    /// Ends what is left on the connection. If that fails, the connection is discarded.
    pub(crate) async fn end(&mut self) {
        if let Some(session) = &mut self.session
            && end_session(session).await
        {
            self.state = LeaseState::Idle;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(mut session) = self.session.take() else { return };
        // Dropping an idle session returns it to the pool.
        if self.state == LeaseState::Idle && !session.connection.is_disconnected() {
            return;
        }
        let connector = self.connector.clone();
        self.background_tasks.spawn(async move {
            match free(&mut session, &connector).await {
                true => drop(session),
                false => session.discard(),
            }
        });
    }
}

/// Ends what a dropped call has left on its connection. Returns false if the connection cannot be used again.
async fn free(session: &mut MySqlSession, connector: &MySqlConnector) -> bool {
    let id = session.connection.id();
    if session.connection.is_disconnected() {
        connector.kill(KillTarget::Connection, id).await;
        return false;
    }
    {
        let mut ended = pin!(session.end());
        match timeout(CANCEL_DELAY, &mut ended).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) if error.is_fatal() => return false,
            // The error of the statement whose rows were not read.
            Ok(Err(_)) => {}
            Err(_) => {
                if !connector.kill(KillTarget::Query, id).await || timeout(END_TIMEOUT, ended).await.is_err() {
                    return false;
                }
            }
        }
    }
    end_session(session).await
}

/// Ends what runs on a connection. The first attempt may have the error of a statement that was ended before.
async fn end_session(session: &mut MySqlSession) -> bool {
    for _ in 0..2 {
        match timeout(END_TIMEOUT, session.end()).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) if !error.is_fatal() => {}
            _ => return false,
        }
    }
    false
}
