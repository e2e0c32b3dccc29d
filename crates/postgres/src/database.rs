//! A PostgreSQL database with three defence layers: its roles, a read-only transaction, and the statement policy that
//! each statement of a caller passes before it reaches this crate.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use tidegate_core::{Error, Principal};
use tidegate_query::{
    Catalog, ColumnEntry, Connections, Database, DatabaseKind, Freshness, Plan, RoleFinding, TableStorage,
    compute_schema_version_tag, identity_fingerprint,
};
use tidegate_runtime::{CacheAges, LoadingCache};
use tidegate_sql::{Author, SqlDialect, Statement, Transaction};
use tokio::sync::OnceCell;

use crate::catalog;
use crate::connect::{ConnectErrorKind, ConnectTarget};
use crate::error::internal_statement_error;
use crate::options::PostgresOptions;
use crate::plan::{PostgresPlan, answer_schema};
use crate::pool::{Lease, Pool};
use crate::server::{PostgresServer, end_lookup};

/// How long closing waits for running statements.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long what version tags contain is used: the columns of a table, and the number of rows that were written to it.
const COLUMN_TAG_AGES: CacheAges = tag_ages(Duration::from_secs(5));
const WRITTEN_ROWS_AGES: CacheAges = tag_ages(Duration::from_secs(1));

const TAGS_MAX: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

const fn tag_ages(age: Duration) -> CacheAges {
    CacheAges { refresh_after: age, expire_after: age, load_timeout: Duration::from_secs(60), keys_max: TAGS_MAX }
}

/// A PostgreSQL database. It connects on demand: if the server cannot be reached, only the calls to it fail. As soon as
/// the server is back, calls succeed again.
#[derive(Clone)]
pub struct PostgresDatabase {
    server: Arc<PostgresServer>,
    column_tags: Arc<TagCache>,
    written_rows: Arc<TagCache>,
}

/// By role and table; without a table, the names of all tables.
type TagCache = LoadingCache<(Option<String>, Option<String>), Option<String>>;

impl PostgresDatabase {
    /// Creates the database `name` at `target`; opens no connection.
    ///
    /// # Errors
    /// `Internal` if the pool cannot be created.
    pub fn open(name: impl Into<String>, target: ConnectTarget, options: PostgresOptions) -> Result<Self, Error> {
        let name: Arc<str> = name.into().into();
        let target = target.with_message_bytes_max(options.message_bytes_max);
        let options = Arc::new(options);
        let pool = Pool::new(name.clone(), target, options.clone())?;
        let server = Arc::new(PostgresServer::new(name, pool, options));
        let [column_tags, written_rows] =
            [COLUMN_TAG_AGES, WRITTEN_ROWS_AGES].map(|ages| Arc::new(LoadingCache::new(ages)));
        Ok(Self { server, column_tags, written_rows })
    }

    /// The privileges beyond reading of the login role and of the roles that calls run as. The caller reports them: the log
    /// has only what is found later.
    ///
    /// # Errors
    /// `Unavailable` if the server cannot be reached.
    pub async fn inspect(&self) -> Result<Vec<RoleFinding>, Error> {
        Ok(self.server.findings_for_owner().await?.to_vec())
    }

    /// The number of connections that calls hold now.
    pub fn connections_in_use(&self) -> usize {
        self.server.pool.connections_in_use()
    }

    pub(crate) fn server(&self) -> &Arc<PostgresServer> {
        &self.server
    }

    /// A connection for a lookup in the catalog, whose statement is about to run.
    async fn begin_lookup(&self, principal: &Principal) -> Result<Lease, Error> {
        self.server.check_login_role().await?;
        self.server.begin_lookup(&self.server.identity_of(principal)?).await
    }

    fn error(&self, error: &tokio_postgres::Error) -> Error {
        internal_statement_error(error, &self.server.database)
    }

    /// Whether `table` is declared, with or without its schema.
    fn takes_rows(&self, table: &str) -> bool {
        let parts = SqlDialect::Postgres.table_parts(table);
        self.server.options.ingest_tables.iter().any(|declared| {
            let declared = SqlDialect::Postgres.table_parts(declared);
            parts.iter().rev().zip(declared.iter().rev()).all(|(part, declared)| part == declared)
        })
    }

    /// The version tag of the columns of `table`, or of the table names, as visible to the role of `principal`. The
    /// server is queried at most every five seconds.
    async fn columns_version_tag(&self, table: Option<&str>, principal: &Principal) -> Result<Option<String>, Error> {
        let key = (self.server.identity_of(principal)?.role.clone(), table.map(str::to_owned));
        let tag = self.column_tags.get(&key, || {
            let (database, table, principal) = (self.clone(), key.1.clone(), principal.clone());
            async move { compute_schema_version_tag(&database, table.as_deref(), &principal).await }
        });
        Ok((*tag.await?).clone())
    }
}

#[async_trait]
impl Database for PostgresDatabase {
    fn name(&self) -> &str {
        &self.server.database
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Postgres
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::Postgres
    }

    async fn freshness(&self, statement: &Statement, _principal: &Principal) -> Freshness {
        Freshness::from_max_age(self.server.options.cached_answer_max_age, statement)
    }

    /// The database identity of `principal`, on which row-level security may depend.
    fn row_policy_fingerprint(&self, principal: &Principal) -> u64 {
        let options = &self.server.options;
        identity_fingerprint(&options.run_as, &options.claims, principal)
    }

    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        let lease = self.begin_lookup(principal).await?;
        let tables = catalog::list_tables(lease.session()?.client(), &self.server.options).await;
        let tables = tables.map_err(|error| self.error(&error))?;
        end_lookup(lease).await;
        Ok(Arc::new(tables))
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let (lease, options) = (self.begin_lookup(principal).await?, &self.server.options);
        let client = lease.session()?.client();
        let columns = catalog::list_columns(client, table, options).await.map_err(|error| self.error(&error))?;
        let catalog = match columns.is_empty() {
            true => Some(catalog::list_tables(client, options).await.map_err(|error| self.error(&error))?),
            false => None,
        };
        end_lookup(lease).await;
        catalog.map_or(Ok(columns), |catalog| Err(catalog::unknown_table_error(table, &catalog)))
    }

    async fn table_storage(&self, table: &str, principal: &Principal) -> Result<TableStorage, Error> {
        let lease = self.begin_lookup(principal).await?;
        let storage = catalog::table_storage(lease.session()?.client(), table, &self.server.options).await;
        let storage = storage.map_err(|error| self.error(&error))?;
        end_lookup(lease).await;
        Ok(storage)
    }

    /// Rows are included of tables that take rows. Those of others may change all the time.
    async fn version_tag(&self, table: Option<&str>, principal: &Principal) -> Result<Option<String>, Error> {
        match table {
            Some(table) if self.takes_rows(table) => self.rows_version_tag(table, principal).await,
            _ => self.columns_version_tag(table, principal).await,
        }
    }

    /// The server counts the rows that were written. Where row-level security applies to the role of `principal`, they
    /// are not included: they would show when others write. The server is queried at most once a second.
    async fn rows_version_tag(&self, table: &str, principal: &Principal) -> Result<Option<String>, Error> {
        let Some(columns) = self.columns_version_tag(Some(table), principal).await? else { return Ok(None) };
        let key = (self.server.identity_of(principal)?.role.clone(), Some(table.to_owned()));
        let written = self.written_rows.get(&key, || {
            let (database, table, principal) = (self.clone(), table.to_owned(), principal.clone());
            async move {
                let lease = database.begin_lookup(&principal).await?;
                let options = &database.server.options;
                let written = catalog::written_rows(lease.session()?.client(), &table, options).await;
                let written = written.map_err(|error| database.error(&error))?;
                end_lookup(lease).await;
                Ok(written)
            }
        });
        let written = (*written.await?).clone();
        Ok(Some(format!("{columns} {}", written.unwrap_or_default())))
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        self.server.admit(statement)?;
        let identity = self.server.identity_of(principal)?;
        let (server, statement) = (self.server.clone(), statement.clone());
        server.check_functions(&statement, &identity).await?;
        let mut lease = server.acquire().await?;
        let cached = server.find_prepared(&mut lease, &statement, &identity).await?;
        let has_begun = cached.is_none();
        let (prepared, estimate) = match cached {
            Some(prepared) => (prepared, None),
            None => {
                lease.begin(statement.transaction(), &identity).await?;
                let prepared = server.prepare(&mut lease, &statement, statement.transaction(), &identity).await?;
                (prepared, server.check_cost(&lease, &statement).await?)
            }
        };
        server.check_runs_alone(&statement, &identity, &prepared);
        let estimate = OnceCell::new_with(estimate);
        Ok(Box::new(PostgresPlan { server, statement, identity, prepared, lease, has_begun, estimate }))
    }

    /// A statement of the owner is described with any role, a statement of a caller with the caller's role.
    async fn describe(&self, statement: &Statement, principal: &Principal) -> Result<SchemaRef, Error> {
        self.server.admit(statement)?;
        let identity = match statement.author() {
            Author::Caller => self.server.identity_of(principal)?,
            Author::Owner | Author::Handler => self.server.owner_identity(),
        };
        let transaction = Transaction::default();
        self.server.check_functions(statement, &identity).await?;
        let mut lease = self.server.begin(&transaction, &identity).await?;
        // A cached prepared statement has old columns, which would be noticed only when it runs.
        lease.session()?.evict_statement(identity.role.as_deref(), statement.text());
        // Behind a pooler, the prepared statement must be closed before its transaction ends.
        let prepared = self.server.prepare(&mut lease, statement, &transaction, &identity).await?;
        let schema = answer_schema(&prepared, statement.transaction());
        drop(prepared);
        end_lookup(lease).await;
        Ok(schema)
    }

    /// Uses a connection of its own: those of the pool may all be in use for long calls.
    async fn check_reachable(&self) -> Result<(), Error> {
        match self.server.pool.target().connect("tidegate/ready").await {
            Ok(connection) => {
                let answered = connection.client().simple_query("SELECT 1").await;
                answered.map(drop).map_err(|error| self.error(&error))
            }
            // The server answers, and calls may have connections.
            Err(error) if *error.kind() == ConnectErrorKind::TooManyConnections => Ok(()),
            Err(error) => Err(error.into_error(&self.server.database)),
        }
    }

    async fn excess_privileges(&self) -> Result<Vec<String>, Error> {
        Ok(self.inspect().await?.iter().map(ToString::to_string).collect())
    }

    fn connections(&self) -> Option<Connections> {
        Some(Connections::InUse(self.connections_in_use()))
    }

    fn no_tables_reason(&self) -> &'static str {
        "none that its role may read; tidegate pg role prints what to grant, and schemas may leave some out"
    }

    async fn close(&self) {
        self.server.pool.close(CLOSE_TIMEOUT).await;
    }
}
