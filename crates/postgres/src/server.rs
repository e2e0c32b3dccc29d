//! What the calls of one database share: its connections, its options, how a statement is made ready.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{Author, Statement, Transaction};
use tokio::sync::OnceCell;
use tokio_postgres::error::SqlState;

use crate::catalog;
use crate::error;
use crate::explain::Explained;
use crate::handlers::{Exchanges, failure};
use crate::inspect::{self, Finding};
use crate::lease::Lease;
use crate::options::{PostgresOptions, Tenancy};
use crate::pool::{House, Pool};
use crate::prepared::{self, Prepared, Refused};
use crate::session::Identity;
use crate::transaction::ROLLBACK;

/// What the calls of one database share.
pub(crate) struct Server {
    pub(crate) database: Arc<str>,
    pub(crate) pool: Pool,
    pub(crate) options: Arc<PostgresOptions>,
    /// What the login role could do beyond reading; known from the first connection on.
    findings: OnceCell<Vec<Finding>>,
    /// Calls of handlers, written down.
    pub(crate) exchanges: Exchanges,
}

impl Server {
    pub(crate) fn new(database: Arc<str>, pool: Pool, options: Arc<PostgresOptions>) -> Self {
        Self { database, pool, options, findings: OnceCell::new(), exchanges: Exchanges::default() }
    }

    /// What outlives the calls.
    pub(crate) fn house(&self) -> &Arc<House> {
        self.pool.house()
    }

    /// Whom the database takes `principal` for.
    ///
    /// # Errors
    /// `Forbidden` when it has no role there.
    pub(crate) fn identity_of(&self, principal: &Principal) -> Result<Identity, Error> {
        let role = self.options.run_as.role_of(principal)?.map(str::to_owned);
        Ok(Identity { role, claims: self.options.claims.values(principal) })
    }

    /// Somebody to prepare the owner's statements as.
    pub(crate) fn owner(&self) -> Identity {
        let role = self.options.run_as.any_role().map(str::to_owned);
        Identity { role, claims: vec![String::new(); self.options.claims.names().count()] }
    }

    /// Whether handlers inside the database may write.
    pub(crate) fn handlers_write(&self) -> bool {
        self.options.handlers.as_ref().is_some_and(|handlers| handlers.writes)
    }

    /// The login role itself, for which nobody asks.
    fn login(&self) -> Identity {
        Identity { role: None, ..self.owner() }
    }

    /// Refuses what a caller may not ask here.
    pub(crate) fn admit(&self, statement: &Statement) -> Result<(), Error> {
        if statement.author() == Author::Caller && self.options.tenancy == Tenancy::Settings {
            let message = format!(
                "the database {} takes no SQL of callers: only settings keep its tenants apart, and SQL could change one",
                self.database
            );
            return Err(Error::new(ErrorKind::Forbidden, message).with_hint("Use the tools that its owner declared."));
        }
        Ok(())
    }

    /// A connection whose role was looked at.
    pub(crate) async fn lend(&self) -> Result<Lease, Error> {
        let mut lease = self.pool.lend().await?;
        self.check_walls(&mut lease).await?;
        Ok(lease)
    }

    /// A connection on which `transaction` has begun as `identity`.
    pub(crate) async fn begin(&self, transaction: &Transaction, identity: &Identity) -> Result<Lease, Error> {
        let mut lease = self.lend().await?;
        lease.begin(transaction, identity).await?;
        Ok(lease)
    }

    /// The prepared form of an owner's `statement` that only reads, where its transaction may begin in the same breath:
    /// the connection has prepared it already, nobody has to be said, and the server itself notices other columns.
    pub(crate) fn ready(
        &self,
        lease: &Lease,
        statement: &Statement,
        identity: &Identity,
    ) -> Result<Option<Arc<Prepared>>, Error> {
        let is_plain = statement.author() == Author::Owner && !statement.transaction().writes;
        let session = lease.session()?;
        if !is_plain || !session.is_anonymous() || self.options.pooler {
            return Ok(None);
        }
        let known = session.known(identity.role.as_deref(), statement.text());
        Ok(known.filter(|prepared| prepared.is_checked_by_server()))
    }

    /// What the login role could do beyond reading.
    pub(crate) async fn findings(&self) -> Result<&[Finding], Error> {
        match self.findings.get() {
            Some(findings) => Ok(findings),
            None => self.inspect(&mut self.pool.lend().await?).await,
        }
    }

    async fn inspect(&self, lease: &mut Lease) -> Result<&[Finding], Error> {
        let roles = self.options.run_as.roles();
        let findings = self.findings.get_or_try_init(|| async {
            lease.begin(&Transaction::default(), &self.login()).await?;
            lease.sends();
            let findings = inspect::inspect(lease, &roles, &self.database).await?;
            lease.end(ROLLBACK).await.map_err(|error| error::of_own(&error, &self.database))?;
            for finding in &findings {
                tracing::warn!(database = %self.database, "{finding}");
            }
            Ok(findings)
        });
        findings.await.map(Vec::as_slice)
    }

    /// The first wall: on the first connection the role is looked at; where the owner is strict, it must be clean.
    async fn check_walls(&self, lease: &mut Lease) -> Result<(), Error> {
        let findings = match self.findings.get() {
            Some(findings) => findings.as_slice(),
            None => self.inspect(lease).await?,
        };
        if self.options.strict && !findings.is_empty() {
            let message = format!("the database {} is closed: its login role may do more than read", self.database);
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
        identity: &Identity,
    ) -> Result<Arc<Prepared>, Error> {
        let known = lease.session()?.known(identity.role.as_deref(), statement.text());
        if let Some(known) = known {
            let connected = lease.session()?.connected().clone();
            lease.sends();
            let is_current = known.is_current(connected.client(), statement.text()).await;
            lease.rests();
            match is_current {
                Ok(true) => return Ok(known),
                Ok(false) => lease.session()?.forget(identity.role.as_deref(), statement.text()),
                Err(error) => return Err(self.with_nearest(&error, lease, statement, identity).await),
            }
        }
        let prepared = self.prepare_anew(lease, statement, transaction, identity).await?;
        // Only now: behind a pooler, another session may have taken the place of the one that came.
        let connected = lease.session()?.connected().clone();
        lease.sends();
        let are_current = prepared.composites.are_current(connected.client()).await;
        lease.rests();
        if are_current.map_err(|error| error::of_own(&error, &self.database))? {
            return Ok(prepared);
        }
        drop(prepared);
        if self.options.pooler {
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
        identity: &Identity,
    ) -> Result<Arc<Prepared>, Error> {
        let mut prepared = prepare_in(lease, statement).await?;
        if let Err(Refused::Server(error)) = &prepared
            && self.options.pooler
            && (error::is_misnamed(error) || error::has_changed(error))
        {
            // The driver relies on a name that is gone, or the pooler has kept what the server would prepare anew.
            self.replace(lease).await?;
            lease.begin(transaction, identity).await?;
            prepared = prepare_in(lease, statement).await?;
        }
        match prepared {
            Ok(prepared) => {
                let prepared = Arc::new(prepared);
                match self.options.pooler {
                    true => self.pool.types().remember(&prepared.types),
                    false => {
                        lease.session()?.keep(identity.role.as_deref(), statement.text(), prepared.clone());
                    }
                }
                Ok(prepared)
            }
            Err(Refused::Server(error)) => Err(self.with_nearest(&error, lease, statement, identity).await),
            Err(Refused::Column { name, type_name }) => {
                let message = format!(
                    "the column {name:?} is of type {type_name}, which cannot be read from a statement that writes"
                );
                Err(Error::new(ErrorKind::InvalidArguments, message).with_hint(format!("Return {name}::text.")))
            }
        }
    }

    /// Makes `lease` forget what was prepared of a statement, which no longer fits its tables.
    pub(crate) async fn forget(
        &self,
        lease: &mut Lease,
        statement: &Statement,
        identity: &Identity,
    ) -> Result<(), Error> {
        if self.options.pooler {
            // The pooler has kept it too, for whoever prepares the same words.
            return self.replace(lease).await;
        }
        lease.session()?.forget(identity.role.as_deref(), statement.text());
        Ok(())
    }

    /// Ends the transaction of `lease`, and gives it a new connection to the pooler.
    async fn replace(&self, lease: &mut Lease) -> Result<(), Error> {
        // First, because the new one needs a connection to the server too, and the pooler has but a few.
        lease.end(ROLLBACK).await.map_err(|error| error::of_own(&error, &self.database))?;
        lease.replace(self.pool.replacement().await?);
        Ok(())
    }

    /// Refuses a caller's statement that is expected to cost too much; gives what the planner said.
    pub(crate) async fn guard(&self, lease: &Lease, statement: &Statement) -> Result<Option<Arc<Explained>>, Error> {
        match self.options.max_cost {
            Some(max) if statement.author() == Author::Caller => {
                let explained = Explained::ask(lease, statement, &self.database).await?;
                explained.check(max)?;
                Ok(Some(Arc::new(explained)))
            }
            _ => Ok(None),
        }
    }

    /// The refusal of a statement, with the names that are nearest to one that does not exist.
    async fn with_nearest(
        &self,
        refusal: &tokio_postgres::Error,
        lease: &mut Lease,
        statement: &Statement,
        identity: &Identity,
    ) -> Error {
        if statement.author() == Author::Handler {
            return failure::of_rows(refusal, &self.database);
        }
        let told = error::of_statement(refusal, &self.database, statement.text());
        if refusal.code() != Some(&SqlState::UNDEFINED_TABLE) || refusal.is_closed() {
            return told;
        }
        // The transaction has failed; the names are looked up in another one.
        let looked_up = async {
            lease.end(ROLLBACK).await.ok()?;
            lease.begin(&Transaction::default(), identity).await.ok()?;
            lease.sends();
            let catalog = catalog::tables(lease, &self.options, &self.database).await.ok()?;
            lease.rests();
            Some(catalog)
        };
        match looked_up.await {
            Some(catalog) => catalog::with_choices(told, refusal, &catalog),
            None => told,
        }
    }
}

async fn prepare_in(lease: &mut Lease, statement: &Statement) -> Result<Result<Prepared, Refused>, Error> {
    let connected = lease.session()?.connected().clone();
    lease.sends();
    let prepared = prepared::prepare(connected.client(), statement.text(), statement.transaction().writes).await;
    lease.rests();
    Ok(prepared)
}
