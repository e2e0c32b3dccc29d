//! A database of SQLite files.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{
    Catalog, ColumnEntry, Connections, Database, DatabaseKind, Freshness, Plan, PolicyColumn, PolicyProblem,
    PolicyTable, TableStorage, compute_schema_version_tag,
};
use tidegate_runtime::{CacheAges, LoadingCache};
use tidegate_sql::{SqlDialect, Statement};

use crate::catalog;
use crate::plan::{SqliteStatement, plan_statement};
use crate::policy_views::{PolicyCaller, find_source_columns, policy_names};
use crate::pool::Pool;
use crate::session::ReadTransaction;
use crate::tables::{DatabaseFiles, SqliteOptions, load_indexed_columns, policy_columns};

/// A database over the tables of one or more SQLite files.
///
/// With a single file, tables have their own names. With several files, the name of a table is `stem.table`, where
/// `stem` is the name of its file without the ending. A file that is replaced is opened again at the next query.
#[derive(Clone)]
pub struct SqliteDatabase {
    name: Arc<str>,
    pool: Arc<Pool>,
    schema_tags: Arc<SchemaTagCache>,
}

/// By row policies, table and version of the files.
type SchemaTagCache = LoadingCache<(u64, Option<String>, u64), Option<String>>;

/// The columns of one version of the files do not change.
const SCHEMA_TAG_AGES: CacheAges = CacheAges {
    refresh_after: Duration::MAX,
    expire_after: Duration::MAX,
    load_timeout: Duration::from_secs(60),
    keys_max: NonZeroUsize::new(1_000).unwrap(),
};

impl SqliteDatabase {
    /// Creates a database named `name` over `files`.
    ///
    /// Reads nothing from the files, but checks that they exist.
    ///
    /// # Errors
    /// `InvalidArguments` if there is no file, if there are more than ten, if one does not exist, or if two have the
    /// same stem.
    pub fn open(name: impl Into<String>, files: Vec<PathBuf>, options: SqliteOptions) -> Result<Self, Error> {
        let name: Arc<str> = name.into().into();
        let files = DatabaseFiles::new(&name, files)?;
        Ok(Self {
            pool: Arc::new(Pool::new(name.clone(), files, options)),
            name,
            schema_tags: Arc::new(LoadingCache::new(SCHEMA_TAG_AGES)),
        })
    }

    fn policy_caller(&self, principal: &Principal) -> Option<Arc<PolicyCaller>> {
        PolicyCaller::for_principal(&self.pool.options.row_policies, principal)
    }

    /// The number of connections on which a query could start now.
    pub fn free_connections(&self) -> usize {
        self.pool.available()
    }
}

#[async_trait]
impl Database for SqliteDatabase {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Sqlite
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::Sqlite
    }

    async fn freshness(&self, statement: &Statement, _principal: &Principal) -> Freshness {
        Freshness::from_max_age(self.pool.options.cached_answer_max_age, statement)
    }

    fn row_policy_fingerprint(&self, principal: &Principal) -> u64 {
        self.pool.options.row_policies.fingerprint(principal)
    }

    async fn check_policies(&self) -> Result<Vec<PolicyProblem>, Error> {
        let policies = self.pool.options.row_policies.clone();
        let work = move |reading: &ReadTransaction<'_>| {
            let mut loaded = Vec::new();
            for table in catalog::list_tables(reading)? {
                // The columns of a view that cannot be read are unknown.
                let columns = catalog::read_columns(reading, &table).ok();
                let sources = reading.run_internal(|connection| {
                    Ok(find_source_columns(connection, &table, columns.as_deref().unwrap_or_default()))
                })?;
                loaded.push((policy_names(reading.files, &table), columns, sources));
            }
            let borrowed: Vec<([&str; 3], Option<Vec<PolicyColumn<'_>>>)> = loaded
                .iter()
                .map(|(names, columns, sources)| {
                    let columns = columns.as_deref().map(|columns| policy_columns(columns, sources));
                    (names.each_ref().map(String::as_str), columns)
                })
                .collect();
            let tables: Vec<PolicyTable<'_>> =
                borrowed.iter().map(|(names, columns)| PolicyTable { names, columns: columns.as_deref() }).collect();
            Ok(policies.find_problems(&tables))
        };
        self.pool.read(None, work).await
    }

    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        let work = |reading: &ReadTransaction<'_>| catalog::read_catalog(reading).map(Arc::new);
        self.pool.read(self.policy_caller(principal), work).await
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let (table, database) = (table.to_owned(), self.name.clone());
        let work = move |reading: &ReadTransaction<'_>| {
            let table = catalog::find_table(reading, &table, &database)?;
            catalog::visible_columns(reading, &table)
        };
        self.pool.read(self.policy_caller(principal), work).await
    }

    /// SQLite finds the size of one table only by reading all of its pages. Masked columns are not indexed.
    async fn table_storage(&self, table: &str, principal: &Principal) -> Result<TableStorage, Error> {
        let (table, database) = (table.to_owned(), self.name.clone());
        let work = move |reading: &ReadTransaction<'_>| {
            let table = catalog::find_table(reading, &table, &database)?;
            let mut indexed_columns = reading.run_internal(|connection| load_indexed_columns(connection, &table))?;
            indexed_columns.retain(|column| reading.mask(&table, column).is_none());
            Ok(TableStorage { bytes: None, indexed_columns })
        };
        self.pool.read(self.policy_caller(principal), work).await
    }

    /// The version tag of the files, and of the columns or tables. It changes with rows too, also with those of other
    /// tables. While the files are unchanged, only the files are checked.
    async fn version_tag(&self, table: Option<&str>, principal: &Principal) -> Result<Option<String>, Error> {
        let files = self.pool.files.clone();
        let version =
            tokio::task::spawn_blocking(move || files.version()).await.map_err(std::io::Error::from).flatten();
        let version = version.map_err(|error| {
            let message = format!("the files of {} cannot be read", self.name);
            Error::new(ErrorKind::Unavailable, message).with_detail(error.to_string())
        })?;
        let policies = self.row_policy_fingerprint(principal);
        let key = (policies, table.map(str::to_owned), version);
        let shape = self.schema_tags.get(&key, || {
            let (database, table, principal) = (self.clone(), key.1.clone(), principal.clone());
            async move { compute_schema_version_tag(&database, table.as_deref(), &principal).await }
        });
        let shape = (*shape.await?).clone();
        // With row policies, the version tag must not reveal when hidden rows are written.
        Ok(shape.map(|shape| if policies == 0 { format!("{version:016x} {shape}") } else { shape }))
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let (statement, caller) = (SqliteStatement::from(statement), self.policy_caller(principal));
        Ok(Box::new(plan_statement(self.pool.clone(), caller, statement).await?))
    }

    fn connections(&self) -> Option<Connections> {
        Some(Connections::Free(self.free_connections()))
    }

    fn no_tables_reason(&self) -> &'static str {
        "none was made in its files"
    }
}
