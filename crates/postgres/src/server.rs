//! What the calls of one database share: its connections, its options, how a statement is made ready.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_sql::{Author, Statement, Transaction};
use tokio::sync::OnceCell;
use tokio_postgres::error::SqlState;

use crate::catalog;
use crate::error;
use crate::explain::PlanEstimate;
use crate::handler_error;
use crate::lease::Lease;
use crate::options::{PostgresOptions, TenantIsolation};
use crate::pool::{BackgroundTasks, Pool, closed_error};
use crate::prepared::{self, PrepareError, PreparedStatement};
use crate::role_inspection::{self, RoleFinding};
use crate::session::TransactionIdentity;
use crate::transaction::ROLLBACK;

/// What the calls of one database share.
pub(crate) struct PostgresServer {
    pub(crate) database: Arc<str>,
    pub(crate) pool: Pool,
    pub(crate) options: Arc<PostgresOptions>,
    /// What the login role could do beyond reading; known from the first connection on.
    findings: OnceCell<Vec<RoleFinding>>,
}

impl PostgresServer {
    pub(crate) fn new(database: Arc<str>, pool: Pool, options: Arc<PostgresOptions>) -> Self {
        Self { database, pool, options, findings: OnceCell::new() }
    }

    /// What outlives the calls.
    pub(crate) fn background_tasks(&self) -> &Arc<BackgroundTasks> {
        self.pool.background_tasks()
    }

    /// Waits until the database is being closed. Returns the error of calls that end because of it.
    pub(crate) async fn closed(&self) -> Error {
        self.background_tasks().closing.cancelled().await;
        closed_error(&self.database)
    }

    /// Whom the database takes `principal` for.
    ///
    /// # Errors
    /// `Forbidden` when it has no role there.
    pub(crate) fn identity_of(&self, principal: &Principal) -> Result<TransactionIdentity, Error> {
        let role = self.options.run_as.role_of(principal)?.map(str::to_owned);
        Ok(TransactionIdentity { role, claims: self.options.claims.values(principal) })
    }

    /// Somebody to prepare the owner's statements as.
    pub(crate) fn owner_identity(&self) -> TransactionIdentity {
        let role = self.options.run_as.any_role().map(str::to_owned);
        TransactionIdentity { role, claims: vec![String::new(); self.options.claims.names().count()] }
    }

    /// The login role itself, for which nobody asks.
    fn login_identity(&self) -> TransactionIdentity {
        TransactionIdentity { role: None, ..self.owner_identity() }
    }

    /// Refuses what a caller may not ask here.
    pub(crate) fn admit(&self, statement: &Statement) -> Result<(), Error> {
        if statement.author() == Author::Caller && self.options.tenancy == TenantIsolation::Settings {
            let message = format!(
                "the database {} takes no SQL of callers: only settings keep its tenants apart, and SQL could change one",
                self.database
            );
            return Err(Error::new(ErrorKind::Forbidden, message).with_hint("Use the tools that its owner declared."));
        }
        Ok(())
    }

    /// A connection whose role was looked at.
    pub(crate) async fn acquire(&self) -> Result<Lease, Error> {
        let mut lease = self.pool.acquire().await?;
        self.check_role_findings(&mut lease).await?;
        Ok(lease)
    }

    /// A connection on which `transaction` has begun as `identity`.
    pub(crate) async fn begin(
        &self,
        transaction: &Transaction,
        identity: &TransactionIdentity,
    ) -> Result<Lease, Error> {
        let mut lease = self.acquire().await?;
        lease.begin(transaction, identity).await?;
        Ok(lease)
    }

    /// The prepared form of an owner's `statement` that only reads, where its transaction may begin in the same breath:
    /// the connection has prepared it already, nobody has to be said, and the server itself notices other columns.
    pub(crate) fn find_prepared(
        &self,
        lease: &Lease,
        statement: &Statement,
        identity: &TransactionIdentity,
    ) -> Result<Option<Arc<PreparedStatement>>, Error> {
        let is_plain = statement.author() == Author::Owner && !statement.transaction().writes;
        let session = lease.session()?;
        if !is_plain || !session.has_no_settings() || self.options.is_behind_pooler {
            return Ok(None);
        }
        let known = session.cached_statement(identity.role.as_deref(), statement.text());
        Ok(known.filter(|prepared| prepared.is_checked_by_server()))
    }

    /// What the login role could do beyond reading.
    pub(crate) async fn findings(&self) -> Result<&[RoleFinding], Error> {
        match self.findings.get() {
            Some(findings) => Ok(findings),
            None => self.inspect(&mut self.pool.acquire().await?).await,
        }
    }

    async fn inspect(&self, lease: &mut Lease) -> Result<&[RoleFinding], Error> {
        let roles = self.options.run_as.roles();
        let findings = self.findings.get_or_try_init(|| async {
            lease.begin(&Transaction::default(), &self.login_identity()).await?;
            lease.mark_busy();
            let findings = role_inspection::inspect(lease, &roles, &self.database).await?;
            lease.end(ROLLBACK).await.map_err(|error| error::internal_statement_error(&error, &self.database))?;
            for finding in &findings {
                tracing::warn!(database = %self.database, "{finding}");
            }
            Ok(findings)
        });
        findings.await.map(Vec::as_slice)
    }

    /// The first layer of defence: the first connection inspects the role. With `strict`, a role that can write is refused.
    async fn check_role_findings(&self, lease: &mut Lease) -> Result<(), Error> {
        let findings = match self.findings.get() {
            Some(findings) => findings.as_slice(),
            None => self.inspect(lease).await?,
        };
        if self.options.strict && !findings.is_empty() {
            let message = format!("the database {} is closed: its login role can do more than read", self.database);
            return Err(Error::new(ErrorKind::Unavailable, message)
                .with_hint("The owner of the node finds the reasons in its log and with tidegate doctor."));
        }
        Ok(())
    }

    /// The prepared form of `statement`, in the transaction of `lease`, which began as `transaction`.
    pub(crate) async fn prepare(
        &self,
        lease: &mut Lease,
        statement: &Statement,
        transaction: &Transaction,
        identity: &TransactionIdentity,
    ) -> Result<Arc<PreparedStatement>, Error> {
        let known = lease.session()?.cached_statement(identity.role.as_deref(), statement.text());
        if let Some(known) = known {
            let connected = lease.session()?.connection().clone();
            lease.mark_busy();
            let is_current = known.is_current(connected.client(), statement.text()).await;
            lease.mark_in_transaction();
            match is_current {
                Ok(true) => return Ok(known),
                Ok(false) => lease.session()?.evict_statement(identity.role.as_deref(), statement.text()),
                Err(error) => return Err(self.error_with_suggestions(&error, lease, statement, identity).await),
            }
        }
        let prepared = self.prepare_anew(lease, statement, transaction, identity).await?;
        // Only now: behind a pooler, another session may have taken the place of the one that came.
        let connected = lease.session()?.connection().clone();
        lease.mark_busy();
        let are_current = prepared.composites.are_current(connected.client()).await;
        lease.mark_in_transaction();
        if are_current.map_err(|error| error::internal_statement_error(&error, &self.database))? {
            return Ok(prepared);
        }
        drop(prepared);
        if self.options.is_behind_pooler {
            self.replace(lease).await?;
            lease.begin(transaction, identity).await?;
        } else {
            connected.client().clear_type_cache();
        }
        self.prepare_anew(lease, statement, transaction, identity).await
    }

    async fn prepare_anew(
        &self,
        lease: &mut Lease,
        statement: &Statement,
        transaction: &Transaction,
        identity: &TransactionIdentity,
    ) -> Result<Arc<PreparedStatement>, Error> {
        let mut prepared = prepare_on_lease(lease, statement).await?;
        if let Err(PrepareError::Server(error)) = &prepared
            && self.options.is_behind_pooler
            && (error::is_statement_name_unknown(error) || error::is_result_type_changed(error))
        {
            // The driver relies on a name that is gone, or the pooler has kept what the server would prepare anew.
            self.replace(lease).await?;
            lease.begin(transaction, identity).await?;
            prepared = prepare_on_lease(lease, statement).await?;
        }
        match prepared {
            Ok(prepared) => {
                let prepared = Arc::new(prepared);
                match self.options.is_behind_pooler {
                    true => self.pool.seen_types().remember(&prepared.types),
                    false => {
                        lease.session()?.cache_statement(identity.role.as_deref(), statement.text(), prepared.clone());
                    }
                }
                Ok(prepared)
            }
            Err(PrepareError::Server(error)) => {
                Err(self.error_with_suggestions(&error, lease, statement, identity).await)
            }
            Err(PrepareError::Column { name, type_name }) => {
                let message = format!(
                    "the column {name:?} is of type {type_name}, which cannot be read from a statement that writes"
                );
                Err(Error::new(ErrorKind::InvalidArguments, message).with_hint(format!("Return {name}::text.")))
            }
        }
    }

    /// Makes `lease` forget what was prepared of a statement, which no longer fits its tables.
    pub(crate) async fn forget_prepared(
        &self,
        lease: &mut Lease,
        statement: &Statement,
        identity: &TransactionIdentity,
    ) -> Result<(), Error> {
        if self.options.is_behind_pooler {
            // The pooler has kept it too, for whoever prepares the same words.
            return self.replace(lease).await;
        }
        lease.session()?.evict_statement(identity.role.as_deref(), statement.text());
        Ok(())
    }

    /// Ends the transaction of `lease`, and gives it a new connection to the pooler.
    async fn replace(&self, lease: &mut Lease) -> Result<(), Error> {
        // First, because the new one needs a connection to the server too, and the pooler has but a few.
        lease.end(ROLLBACK).await.map_err(|error| error::internal_statement_error(&error, &self.database))?;
        lease.replace(self.pool.open_replacement().await?);
        Ok(())
    }

    /// Refuses a caller's statement that is expected to cost too much; gives what the planner said.
    pub(crate) async fn check_cost(
        &self,
        lease: &Lease,
        statement: &Statement,
    ) -> Result<Option<Arc<PlanEstimate>>, Error> {
        match self.options.max_cost {
            Some(max) if statement.author() == Author::Caller => {
                let explained = PlanEstimate::request(lease, statement, &self.database).await?;
                explained.check_cost(max)?;
                Ok(Some(Arc::new(explained)))
            }
            _ => Ok(None),
        }
    }

    /// The refusal of a statement, with the names that are nearest to one that does not exist.
    async fn error_with_suggestions(
        &self,
        refusal: &tokio_postgres::Error,
        lease: &mut Lease,
        statement: &Statement,
        identity: &TransactionIdentity,
    ) -> Error {
        if statement.author() == Author::Handler {
            return handler_error::rows_error(refusal, &self.database);
        }
        let message = error::statement_error(refusal, &self.database, statement.text());
        if refusal.code() != Some(&SqlState::UNDEFINED_TABLE) || refusal.is_closed() {
            return message;
        }
        // The transaction has failed; the names are looked up in another one.
        let looked_up = async {
            lease.end(ROLLBACK).await.ok()?;
            lease.begin(&Transaction::default(), identity).await.ok()?;
            lease.mark_busy();
            let catalog = catalog::list_tables(lease, &self.options, &self.database).await.ok()?;
            lease.mark_in_transaction();
            Some(catalog)
        };
        match looked_up.await {
            Some(catalog) => catalog::with_nearest_tables(message, refusal, &catalog),
            None => message,
        }
    }
}

async fn prepare_on_lease(
    lease: &mut Lease,
    statement: &Statement,
) -> Result<Result<PreparedStatement, PrepareError>, Error> {
    let connected = lease.session()?.connection().clone();
    lease.mark_busy();
    let prepared = prepared::prepare(connected.client(), statement.text(), statement.transaction().writes).await;
    lease.mark_in_transaction();
    Ok(prepared)
}
