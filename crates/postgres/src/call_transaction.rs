//! Transactions for code of the node that runs SQL itself, such as handlers in the database.

use std::sync::Arc;

use tidegate_core::{Error, Principal};
use tidegate_sql::{Statement, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::PostgresDatabase;
use crate::connect::OpenConnection;
use crate::pool::Lease;
use crate::prepared::PreparedStatement;
use crate::server::PostgresServer;
use crate::session::{COMMIT, ROLLBACK, TransactionIdentity};

/// A transaction on a pooled connection, which runs as the role of a call. Dropping it before its end cancels a running
/// statement and rolls back.
pub struct CallTransaction {
    server: Arc<PostgresServer>,
    lease: Lease,
    connection: Arc<OpenConnection>,
    transaction: Transaction,
    identity: TransactionIdentity,
}

/// A prepared statement of a [`CallTransaction`].
pub struct PreparedCall(Arc<PreparedStatement>);

impl PostgresDatabase {
    /// Begins `transaction` as `identity`.
    ///
    /// # Errors
    /// `Unavailable` if no connection is free in time or the server cannot be reached.
    pub async fn begin(
        &self,
        transaction: &Transaction,
        identity: &TransactionIdentity,
    ) -> Result<CallTransaction, Error> {
        let server = self.server().clone();
        let lease = server.begin(transaction, identity).await?;
        let connection = lease.connection()?;
        Ok(CallTransaction { server, lease, connection, transaction: transaction.clone(), identity: identity.clone() })
    }

    /// The role and the claims of `principal` in the database.
    ///
    /// # Errors
    /// `Forbidden` if the principal has no role there.
    pub fn identity_of(&self, principal: &Principal) -> Result<TransactionIdentity, Error> {
        self.server().identity_of(principal)
    }

    /// The role of `principal` in the database; `None` is the login role.
    ///
    /// # Errors
    /// `Forbidden` if the principal has no role there.
    pub fn role_of(&self, principal: &Principal) -> Result<Option<&str>, Error> {
        self.server().options.run_as.role_of(principal)
    }

    /// The identity of the node itself with the role `role` and without claims.
    pub fn identity_for_role(&self, role: Option<String>) -> TransactionIdentity {
        TransactionIdentity { role, ..self.server().owner_identity() }
    }

    /// Every role that a call may run as; `None` is the login role.
    pub fn roles(&self) -> Vec<Option<String>> {
        match self.server().options.run_as.roles() {
            roles if roles.is_empty() => vec![None],
            roles => roles.into_iter().map(|role| Some(role.to_owned())).collect(),
        }
    }

    /// Opens a connection of its own, outside of the pool.
    ///
    /// # Errors
    /// `Unavailable` if the server cannot be reached.
    pub async fn connect(&self, application_name: &str) -> Result<OpenConnection, Error> {
        let connection = self.server().pool.target().connect(application_name).await;
        connection.map_err(|error| error.into_error(&self.server().database))
    }

    /// Whether a pooler in transaction mode is configured, so that nothing stays in a session.
    pub fn is_behind_pooler(&self) -> bool {
        self.server().options.is_behind_pooler
    }

    /// Runs `work` in the background; closing the database waits a limited time for it.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.server().pool.background_tasks().spawn(work);
    }

    /// Waits until the database is being closed. Returns the error of calls that end because of it.
    pub async fn closed(&self) -> Error {
        self.server().pool.closed().await
    }
}

impl CallTransaction {
    /// Runs `sql` with `parameters` of the type text. An error ends the use of the connection.
    ///
    /// # Errors
    /// The error of the server or the driver.
    pub async fn query(&mut self, sql: &str, parameters: &[&str]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let parameters: Vec<_> = parameters.iter().map(|text| (text as &(dyn ToSql + Sync), Type::TEXT)).collect();
        self.lease.mark_busy();
        let rows = self.connection.client().query_typed(sql, &parameters).await?;
        self.lease.mark_in_transaction();
        Ok(rows)
    }

    /// Prepares `statement`, or takes the prepared statement that the connection already has.
    ///
    /// # Errors
    /// The error for the caller, if the server refuses the statement.
    pub async fn prepare(&mut self, statement: &Statement) -> Result<PreparedCall, Error> {
        let prepared = self.server.prepare(&mut self.lease, statement, &self.transaction, &self.identity).await?;
        // Behind a pooler, the connection may have been replaced.
        self.connection = self.lease.connection()?;
        Ok(PreparedCall(prepared))
    }

    /// Runs `call` with `parameters`.
    ///
    /// # Errors
    /// The error of the server or the driver; the transaction can only be rolled back then.
    pub async fn run(
        &mut self,
        call: &PreparedCall,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        self.lease.mark_busy();
        self.connection.client().query(&call.0.statement, parameters).await
    }

    /// Runs `call` with `parameters` and rolls back, without waiting in between.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn run_and_roll_back(
        &mut self,
        call: &PreparedCall,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        self.lease.mark_busy();
        let client = self.connection.client();
        let run = client.query(&call.0.statement, parameters);
        let (rows, ended) = futures::join!(run, client.batch_execute(ROLLBACK));
        if ended.is_ok() {
            self.lease.mark_idle();
        }
        rows
    }

    /// Commits.
    ///
    /// # Errors
    /// The error of the server or the driver.
    pub async fn commit(&mut self) -> Result<(), tokio_postgres::Error> {
        self.lease.end(COMMIT).await
    }

    /// Rolls back. If that fails, the connection is discarded.
    pub async fn roll_back(&mut self) {
        // The lease discards a connection whose transaction did not end.
        let _ = self.lease.end(ROLLBACK).await;
    }
}
