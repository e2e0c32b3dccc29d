//! The shared state of the calls of one database: its connections, its options, and how a statement is prepared.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{LoginCheck, RoleFinding};
use tidegate_runtime::{CacheAges, LoadingCache};
use tidegate_sql::{Author, Isolation, SqlDialect, Statement, Transaction};
use tokio_postgres::error::SqlState;

use crate::catalog;
use crate::error;
use crate::explain::PlanEstimate;
use crate::function_restrictions::FunctionRestrictions;
use crate::options::{PostgresOptions, TenantIsolation};
use crate::pool::{Lease, Pool};
use crate::prepared::{self, PrepareError, PreparedStatement};
use crate::role;
use crate::session::{ROLLBACK, TransactionIdentity};

pub(crate) struct PostgresServer {
    pub(crate) database: Arc<str>,
    pub(crate) pool: Pool,
    pub(crate) options: Arc<PostgresOptions>,
    login: LoginCheck,
    /// By role.
    restrictions: LoadingCache<Option<String>, FunctionRestrictions>,
}

/// What is known of functions and roles is read again while it is used. A change takes effect within `expire_after`.
const CATALOG_AGES: CacheAges = CacheAges {
    refresh_after: Duration::from_secs(30),
    expire_after: Duration::from_secs(300),
    load_timeout: Duration::from_secs(60),
    keys_max: NonZeroUsize::new(64).unwrap(),
};

impl PostgresServer {
    pub(crate) fn new(database: Arc<str>, pool: Pool, options: Arc<PostgresOptions>) -> Self {
        let login = LoginCheck::new(database.clone(), "login role", options.strict, CATALOG_AGES);
        Self { database, pool, options, login, restrictions: LoadingCache::new(CATALOG_AGES) }
    }

    /// The database identity of `principal`; `Forbidden` if it has no role there.
    pub(crate) fn identity_of(&self, principal: &Principal) -> Result<TransactionIdentity, Error> {
        let role = self.options.run_as.role_of(principal)?.map(str::to_owned);
        Ok(TransactionIdentity { role, claims: self.options.claims.values(principal) })
    }

    /// An identity with any suitable role and without claims, for statements of the owner.
    pub(crate) fn owner_identity(&self) -> TransactionIdentity {
        let role = self.options.run_as.any_role().map(str::to_owned);
        TransactionIdentity { role, claims: vec![String::new(); self.options.claims.names().count()] }
    }

    /// Rejects statements of callers where they could change the settings that isolate tenants.
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

    /// Refuses a caller's statement that may call a function of the database with side effects or with other rights. Needs a
    /// connection of its own if nothing is known of the functions yet, so the caller may hold none.
    pub(crate) async fn check_functions(
        self: &Arc<Self>,
        statement: &Statement,
        identity: &TransactionIdentity,
    ) -> Result<(), Error> {
        if statement.author() != Author::Caller {
            return Ok(());
        }
        let role = &identity.role;
        self.restrictions.get(role, || self.clone().load_restrictions(role.clone())).await?.check(statement)
    }

    /// Records in `prepared` whether `statement` of the owner needs no transaction around it: a caller could run it too,
    /// so it calls no function with side effects. Without knowledge of the functions, it keeps its transaction.
    pub(crate) fn check_runs_alone(
        self: &Arc<Self>,
        statement: &Statement,
        identity: &TransactionIdentity,
        prepared: &PreparedStatement,
    ) {
        let Transaction { isolation, writes, deferrable, .. } = **statement.transaction();
        let is_default = !writes && !deferrable && isolation == Isolation::ReadCommitted;
        // Functions that callers may use although they have side effects would need the transaction.
        let has_exceptions = !self.options.allowed_functions.is_empty();
        if prepared.runs_alone.get().is_some() || statement.author() != Author::Owner || !is_default || has_exceptions {
            return;
        }
        let role = &identity.role;
        let Some(restrictions) = self.restrictions.peek(role, || self.clone().load_restrictions(role.clone())) else {
            return;
        };
        let as_caller = Statement::parse(statement.text(), SqlDialect::Postgres);
        let runs_alone = as_caller.is_ok_and(|as_caller| restrictions.check(&as_caller).is_ok());
        let _ = prepared.runs_alone.set(runs_alone);
    }

    async fn load_restrictions(self: Arc<Self>, role: Option<String>) -> Result<FunctionRestrictions, Error> {
        let identity = TransactionIdentity { role, ..self.owner_identity() };
        let lease = self.begin_lookup(&identity).await?;
        let loaded = FunctionRestrictions::load(lease.session()?.client(), &self.options.allowed_functions).await;
        let loaded = loaded.map_err(|error| self.error(&error))?;
        end_lookup(lease).await;
        Ok(loaded)
    }

    /// A connection, if the login role is suitable.
    pub(crate) async fn acquire(self: &Arc<Self>) -> Result<Lease, Error> {
        self.check_login_role().await?;
        self.pool.acquire().await
    }

    /// With `strict`, a login role with further privileges is an error. Otherwise the log has them, and no call waits for that.
    pub(crate) async fn check_login_role(self: &Arc<Self>) -> Result<(), Error> {
        for finding in self.login.check(|| self.clone().load_findings()).await? {
            tracing::warn!(database = %self.database, "{finding}");
        }
        Ok(())
    }

    pub(crate) async fn begin(
        self: &Arc<Self>,
        transaction: &Transaction,
        identity: &TransactionIdentity,
    ) -> Result<Lease, Error> {
        let mut lease = self.acquire().await?;
        lease.begin(transaction, identity).await?;
        Ok(lease)
    }

    /// The prepared form of a read-only `statement` of the owner, if its transaction may begin in the same message: the
    /// connection has prepared it, and the server itself notices changed columns. The session then runs as `identity`.
    pub(crate) async fn find_prepared(
        &self,
        lease: &mut Lease,
        statement: &Statement,
        identity: &TransactionIdentity,
    ) -> Result<Option<Arc<PreparedStatement>>, Error> {
        let is_plain = statement.author() == Author::Owner && !statement.transaction().writes;
        if !is_plain || self.options.is_behind_pooler {
            return Ok(None);
        }
        let cached = lease.session()?.cached_statement(identity.role.as_deref(), statement.text());
        let cached = cached.filter(|prepared| prepared.is_checked_by_server());
        if cached.is_some() {
            lease.set_identity(identity).await?;
        }
        Ok(cached)
    }

    /// The privileges beyond reading of the login role and of the roles that calls run as, for the owner.
    pub(crate) async fn findings_for_owner(self: &Arc<Self>) -> Result<Arc<Vec<RoleFinding>>, Error> {
        self.login.findings_for_owner(|| self.clone().load_findings()).await
    }

    async fn load_findings(self: Arc<Self>) -> Result<Vec<RoleFinding>, Error> {
        let login = TransactionIdentity { role: None, ..self.owner_identity() };
        let lease = self.begin_lookup(&login).await?;
        let found = role::inspect(lease.session()?, &self.options).await.map_err(|error| self.error(&error))?;
        end_lookup(lease).await;
        Ok(found)
    }

    /// A connection for statements that read the catalog, the first of which is about to run.
    pub(crate) async fn begin_lookup(&self, identity: &TransactionIdentity) -> Result<Lease, Error> {
        let mut lease = self.pool.acquire().await?;
        lease.begin_lookup(identity).await?;
        lease.mark_busy();
        Ok(lease)
    }

    fn error(&self, error: &tokio_postgres::Error) -> Error {
        error::internal_statement_error(error, &self.database)
    }

    /// The prepared form of `statement`, in the transaction of `lease`, which began as `transaction`.
    pub(crate) async fn prepare(
        &self,
        lease: &mut Lease,
        statement: &Statement,
        transaction: &Transaction,
        identity: &TransactionIdentity,
    ) -> Result<Arc<PreparedStatement>, Error> {
        let cached = lease.session()?.cached_statement(identity.role.as_deref(), statement.text());
        if let Some(prepared) = cached {
            let connection = lease.connection()?;
            match lease.run(prepared.is_current(connection.client(), statement.text())).await {
                Ok(true) => return Ok(prepared),
                Ok(false) => lease.session()?.evict_statement(identity.role.as_deref(), statement.text()),
                Err(error) => return Err(self.error_with_suggestions(&error, lease, statement, identity).await),
            }
        }
        let prepared = self.prepare_anew(lease, statement, transaction, identity).await?;
        // Only now: behind a pooler, the connection may have been replaced.
        let connection = lease.connection()?;
        let are_current = lease.run(prepared.composites.are_current(connection.client())).await;
        if are_current.map_err(|error| self.error(&error))? {
            return Ok(prepared);
        }
        drop(prepared);
        if self.options.is_behind_pooler {
            self.replace(lease).await?;
            lease.begin(transaction, identity).await?;
        } else {
            connection.client().clear_type_cache();
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
            // The driver uses a name that no longer exists, or the pooler has kept an outdated statement.
            self.replace(lease).await?;
            lease.begin(transaction, identity).await?;
            prepared = prepare_on_lease(lease, statement).await?;
        }
        match prepared {
            Ok(prepared) => {
                let prepared = Arc::new(prepared);
                if self.options.is_behind_pooler {
                    self.pool.seen_types().remember(&prepared.types);
                } else {
                    lease.session()?.cache_statement(identity.role.as_deref(), statement.text(), prepared.clone());
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

    /// Forgets the prepared form of a statement that no longer matches its tables.
    pub(crate) async fn forget_prepared(
        &self,
        lease: &mut Lease,
        statement: &Statement,
        identity: &TransactionIdentity,
    ) -> Result<(), Error> {
        if self.options.is_behind_pooler {
            // The pooler has kept it too, for all clients that prepare the same text.
            return self.replace(lease).await;
        }
        lease.session()?.evict_statement(identity.role.as_deref(), statement.text());
        Ok(())
    }

    /// Ends the transaction of `lease`, and gives it a new connection to the pooler.
    async fn replace(&self, lease: &mut Lease) -> Result<(), Error> {
        // The old transaction ends first: the new connection needs one to the server too, and the pooler has only a few.
        lease.end(ROLLBACK).await.map_err(|error| self.error(&error))?;
        lease.replace(self.pool.open_replacement().await?);
        Ok(())
    }

    /// Rejects a caller's statement whose estimated cost exceeds the limit; returns the estimate if it was requested.
    pub(crate) async fn check_cost(&self, lease: &Lease, statement: &Statement) -> Result<Option<PlanEstimate>, Error> {
        match self.options.max_cost {
            Some(max) if statement.author() == Author::Caller => {
                let estimate = PlanEstimate::request(lease, statement, &self.database).await?;
                estimate.check_cost(max)?;
                Ok(Some(estimate))
            }
            _ => Ok(None),
        }
    }

    /// The error of a statement, with names that exist if a table or a column does not.
    async fn error_with_suggestions(
        &self,
        refusal: &tokio_postgres::Error,
        lease: &mut Lease,
        statement: &Statement,
        identity: &TransactionIdentity,
    ) -> Error {
        if statement.author() == Author::Handler {
            return error::handler_rows_error(refusal, &self.database);
        }
        let error = error::statement_error(refusal, &self.database, statement.text());
        let is_about_name = matches!(refusal.code(), Some(&(SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_COLUMN)));
        if !is_about_name || refusal.is_closed() {
            return error;
        }
        // The transaction has failed; the names are looked up in another one.
        let choices = async {
            lease.end(ROLLBACK).await.ok()?;
            lease.begin(&Transaction::default(), identity).await.ok()?;
            let connection = lease.connection().ok()?;
            lease.mark_busy();
            let choices = catalog::suggest_names(connection.client(), refusal, statement, &self.options).await?;
            lease.mark_in_transaction();
            Some(choices)
        };
        error.with_choices(choices.await.unwrap_or_default())
    }
}

/// Ends the transaction of a successful lookup. If this fails, the lease discards the connection.
pub(crate) async fn end_lookup(mut lease: Lease) {
    let _ = lease.end(ROLLBACK).await;
}

async fn prepare_on_lease(
    lease: &mut Lease,
    statement: &Statement,
) -> Result<Result<PreparedStatement, PrepareError>, Error> {
    let connection = lease.connection()?;
    Ok(lease.run(prepared::prepare(connection.client(), statement.text(), statement.transaction().writes)).await)
}
