//! A PostgreSQL database, asked through three walls: its roles, a transaction that only reads, and the policy that each
//! statement of a caller has passed before it comes here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_core::{Error, Handler, Principal};
use tidegate_query::{
    Author, Catalog, ColumnEntry, Database, Freshness, Plan, SqlDialect, StampCache, Statement, Transaction,
    compute_schema_stamp,
};

use crate::catalog;
use crate::connect::ConnectTarget;
use crate::handlers::{DatabaseHandler, HandlerCatalog, HandlerEntry, HandlerRecord, HandlerRows, HandlerWatcher};
use crate::identity::{RunAs, identity_stamp};
use crate::lease::Lease;
use crate::options::PostgresOptions;
use crate::plan::PostgresPlan;
use crate::pool::Pool;
use crate::role_inspection::RoleFinding;
use crate::server::PostgresServer;
use crate::transaction::ROLLBACK;

/// How long closing waits for what still runs.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long what the server said of its tables is good enough for those who listen, in seconds.
const STAMP_MAX_AGE_SECONDS: u64 = 5;

/// A PostgreSQL database. It connects when it is asked, so that one that cannot be reached hurts nothing but the calls
/// to it, and is there again as soon as it can be reached.
pub struct PostgresDatabase {
    server: Arc<PostgresServer>,
    run_as: Arc<RunAs>,
    stamps: StampCache,
    opened: Instant,
}

impl PostgresDatabase {
    /// The database called `name` at `target`. Nothing is connected yet.
    ///
    /// # Errors
    /// `Internal` when the pool cannot be made.
    pub fn open(name: impl Into<String>, target: ConnectTarget, options: PostgresOptions) -> Result<Self, Error> {
        let name: Arc<str> = name.into().into();
        let options = Arc::new(options);
        let pool = Pool::new(name.clone(), target, options.clone())?;
        let run_as = Arc::new(options.run_as.clone());
        let server = Arc::new(PostgresServer::new(name, pool, options));
        Ok(Self { server, run_as, stamps: StampCache::default(), opened: Instant::now() })
    }

    /// What the login role, and those that calls run as, could do beyond reading.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached.
    pub async fn inspect(&self) -> Result<Vec<RoleFinding>, Error> {
        self.server.findings().await.map(<[RoleFinding]>::to_vec)
    }

    /// Where it is, for the owner: never the password.
    pub fn describe_target(&self) -> String {
        self.server.pool.target().describe()
    }

    /// Connections that calls hold now.
    pub fn connections_in_use(&self) -> usize {
        self.server.pool.connections_in_use()
    }

    /// The handlers inside the database, as the roles see them that calls run as; nothing where the options ask for
    /// none.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `NotFound` when there is no schema of handlers, `Forbidden`
    /// when its owner has let in none of the roles.
    pub async fn list_handlers(&self) -> Result<HandlerCatalog, Error> {
        match &self.server.options.handlers {
            Some(options) => self.server.list_handlers(options).await,
            None => Ok(HandlerCatalog::default()),
        }
    }

    /// Follows the handlers from those that are `known`; none where the options ask for no handlers.
    pub fn watch_handlers(&self, known: Option<HandlerCatalog>) -> Option<HandlerWatcher> {
        let options = self.server.options.handlers.clone()?;
        Some(HandlerWatcher::new(self.server.clone(), options, known))
    }

    /// The entry of the registry that `record` of `catalog` is behind. Rows are given by whatever `rows` makes of them.
    ///
    /// # Errors
    /// Why it cannot be served though its database took it.
    pub fn handler_entry(
        &self,
        catalog: &HandlerCatalog,
        record: &Arc<HandlerRecord>,
        rows: impl FnOnce(HandlerRows) -> Arc<dyn Handler>,
    ) -> Result<HandlerEntry, String> {
        let Some(options) = &self.server.options.handlers else { return Err("handlers are not asked for".to_owned()) };
        let (server, schema) = (self.server.clone(), &options.schema);
        let output_schema = record.output_schema()?;
        let handler: Arc<dyn Handler> = match record.returns_rows {
            true => rows(HandlerRows::new(server, record.clone(), schema, catalog)),
            false => Arc::new(DatabaseHandler::new(server, record.clone(), schema, catalog, output_schema.clone())),
        };
        record.to_entry(handler, output_schema, &self.run_as)
    }

    async fn begin_read_only(&self, principal: &Principal) -> Result<Lease, Error> {
        let identity = self.server.identity_of(principal)?;
        self.server.begin(&Transaction::default(), &identity).await
    }
}

/// Ends what `lease` began to look something up, whatever came of it.
async fn roll_back_lookup<T>(mut lease: Lease, outcome: Result<T, Error>) -> Result<T, Error> {
    if outcome.is_ok() {
        // A connection whose end fails is thrown away by its lease, and the answer is there.
        let _ = lease.end(ROLLBACK).await;
    }
    outcome
}

#[async_trait]
impl Database for PostgresDatabase {
    fn name(&self) -> &str {
        &self.server.database
    }

    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::Postgres
    }

    async fn freshness(&self, statement: &Statement, _principal: &Principal) -> Freshness {
        Freshness::from_max_age(self.server.options.cached_answer_max_age, statement)
    }

    /// Of whom the database takes `principal` for, which its row-level security may ask.
    fn row_policy_stamp(&self, principal: &Principal) -> u64 {
        let options = &self.server.options;
        identity_stamp(&options.run_as, &options.claims, principal)
    }

    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        let mut lease = self.begin_read_only(principal).await?;
        lease.mark_busy();
        let outcome = catalog::list_tables(&lease, &self.server.options, &self.server.database).await;
        roll_back_lookup(lease, outcome).await
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let mut lease = self.begin_read_only(principal).await?;
        lease.mark_busy();
        let outcome = catalog::list_columns(&lease, table, &self.server.options, &self.server.database).await;
        if outcome.is_err() {
            lease.mark_in_transaction();
        }
        roll_back_lookup(lease, outcome).await
    }

    /// Of the columns, or of the names of the tables, as the role of `principal` sees them; rows change all the time,
    /// and nobody is told of that. The server is asked every five seconds at most.
    async fn stamp(&self, table: Option<&str>, principal: &Principal) -> Result<Option<String>, Error> {
        let key = format!("{:?} {table:?}", self.server.identity_of(principal)?.role);
        let moment = self.opened.elapsed().as_secs() / STAMP_MAX_AGE_SECONDS;
        self.stamps.get(key, moment, compute_schema_stamp(self, table, principal)).await
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        self.server.admit(statement)?;
        let identity = self.server.identity_of(principal)?;
        let (server, statement) = (self.server.clone(), statement.clone());
        let mut lease = server.acquire().await?;
        if let Some(prepared) = server.find_prepared(&lease, &statement, &identity)? {
            let (explained, has_begun) = (Mutex::default(), false);
            return Ok(Box::new(PostgresPlan {
                server,
                statement,
                identity,
                prepared,
                lease,
                has_begun,
                estimate: explained,
            }));
        }
        lease.begin(statement.transaction(), &identity).await?;
        let prepared = server.prepare(&mut lease, &statement, statement.transaction(), &identity).await?;
        let (explained, has_begun) = (Mutex::new(server.check_cost(&lease, &statement).await?), true);
        Ok(Box::new(PostgresPlan { server, statement, identity, prepared, lease, has_begun, estimate: explained }))
    }

    /// What the owner declares is described as any of its roles; what a caller asks, as the caller's.
    async fn describe(&self, statement: &Statement, principal: &Principal) -> Result<SchemaRef, Error> {
        self.server.admit(statement)?;
        let identity = match statement.author() {
            Author::Caller => self.server.identity_of(principal)?,
            Author::Owner | Author::Handler => self.server.owner_identity(),
        };
        let transaction = Transaction::default();
        let mut lease = self.server.begin(&transaction, &identity).await?;
        // One that was prepared earlier has the columns of then, which nothing notices before it runs.
        lease.session()?.evict_statement(identity.role.as_deref(), statement.text());
        let prepared = self.server.prepare(&mut lease, statement, &transaction, &identity).await;
        roll_back_lookup(lease, prepared.map(|prepared| prepared.schema.clone())).await
    }

    async fn close(&self) {
        self.server.pool.close(CLOSE_TIMEOUT).await;
    }
}
