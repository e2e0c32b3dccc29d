//! What an engine offers: a catalog, plans, and streams of Arrow record batches.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures::stream::BoxStream;
use tidegate_core::{DatabaseTenants, Error, ErrorKind, Job, Principal, nearest_names};

use crate::freshness::Freshness;
use crate::stable_hash::StableHasher;
use crate::stamp::compute_schema_stamp;
use crate::statement::{SqlDialect, Statement};

/// A named set of tables that can be asked. Arrow is the one currency between engines and formats.
#[async_trait]
pub trait Database: Send + Sync + 'static {
    /// The name that callers give.
    fn name(&self) -> &str;

    /// The sort of engine, as `list_databases` shows it (`folder`, `postgres`, …).
    fn kind(&self) -> &'static str;

    /// The SQL that its tables are asked in.
    fn dialect(&self) -> SqlDialect;

    /// The tables that `principal` may see, as they are now.
    ///
    /// # Errors
    /// `Unavailable` when the database cannot be reached. A single table that cannot be read is
    /// no error: it is listed with its status.
    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error>;

    /// The columns of one table.
    ///
    /// # Errors
    /// `NotFound` with the nearest names; `Unavailable` with the reason when the table cannot be read.
    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error>;

    /// Plans `statement` without running it.
    ///
    /// # Errors
    /// `InvalidArguments` when the database refuses the statement: unknown tables (with the
    /// nearest names), unknown columns (with the table's columns), mistyped expressions.
    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error>;

    /// The columns that the answer to `statement` has now, with less work than a plan where the database can.
    ///
    /// # Errors
    /// As [`Database::plan`].
    async fn describe(&self, statement: &Statement, principal: &Principal) -> Result<SchemaRef, Error> {
        Ok(self.plan(statement, principal).await?.schema())
    }

    /// How long the answer to `statement` stays right.
    async fn freshness(&self, _statement: &Statement, _principal: &Principal) -> Freshness {
        Freshness::Never
    }

    /// What an answer to `principal` depends on beside data and statement: the row policies that bind it, and what it
    /// brings to them ([`RowPolicies::stamp`](crate::RowPolicies::stamp)); or whom the database takes it for. The same in
    /// every process; zero where nothing is configured that tells principals apart, or none of it binds this one.
    fn row_policy_stamp(&self, _principal: &Principal) -> u64 {
        0
    }

    /// A stamp of `table`, or of all tables: equal as long as nothing has changed, as far as that can be told cheaply,
    /// since it is asked for twice a second while somebody listens. None when there is no such table.
    ///
    /// Without more it tells of columns and names, and not of rows.
    ///
    /// # Errors
    /// When it cannot be told now.
    async fn stamp(&self, table: Option<&str>, principal: &Principal) -> Result<Option<String>, Error> {
        compute_schema_stamp(self, table, principal).await
    }

    /// What its owner should know of it as a whole, such as files that were merged or skipped: a sentence each.
    ///
    /// # Errors
    /// As [`Database::catalog`].
    async fn notes(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// Ends what still runs and lets go of what is open, as far as that is not left to dropping.
    async fn close(&self) {}
}

/// A statement that is ready to run.
#[async_trait]
pub trait Plan: Send + Sync {
    /// The columns of its answer as far as they are known before it runs. A table may change until then: what describes
    /// the rows is [`QueryRows::schema`].
    fn schema(&self) -> SchemaRef;

    /// The rows that the engine expects, if it can tell.
    fn estimated_rows(&self) -> Option<u64>;

    /// The bytes that the engine expects to read, if it can tell.
    fn estimated_bytes(&self) -> Option<u64>;

    /// Whether its first row needs all of its input (a sort, an aggregate), so that streaming gains nothing.
    fn is_blocking(&self) -> bool;

    /// The plan as text for people and models.
    ///
    /// # Errors
    /// When the database has to be asked for it and fails.
    async fn explain(&self) -> Result<String, Error>;

    /// Runs it. The stream ends early, with an error, when `job` is cancelled; dropping it stops
    /// the query.
    ///
    /// # Errors
    /// Whatever keeps the query from starting. Later failures come through the stream.
    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error>;
}

/// An answer as a stream of record batches, pulled by its reader.
pub struct QueryRows {
    /// The columns, as the execution has them.
    pub schema: SchemaRef,
    /// The batches, in order.
    pub batches: BoxStream<'static, Result<RecordBatch, Error>>,
}

impl QueryRows {
    /// An answer that is in memory already.
    pub fn from_batch(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: Box::pin(futures::stream::once(async move { Ok(batch) })) }
    }
}

/// The tables of a database at one moment, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The tables.
    pub tables: Vec<TableEntry>,
    /// What the owner should know about them as a whole, such as files that were merged or skipped: a sentence each.
    pub notes: Vec<String>,
}

impl Catalog {
    /// A catalog of `tables` about which there is nothing else to say.
    pub fn from_tables(tables: Vec<TableEntry>) -> Self {
        Self { tables, notes: Vec::new() }
    }
}

/// One table of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEntry {
    /// Its name, unquoted.
    pub name: String,
    /// Its rows, where the engine knows them without reading the table.
    pub rows: Option<u64>,
    /// What its owner says about it.
    pub comment: Option<String>,
    /// Whether it can be read.
    pub status: TableStatus,
}

/// Whether a table can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableStatus {
    /// It can.
    Readable,
    /// It cannot, for this reason.
    Unreadable(String),
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnEntry {
    /// Its name, unquoted.
    pub name: String,
    /// Its type, as the database's SQL names it.
    pub type_name: String,
    /// Whether it may be null.
    pub nullable: bool,
    /// What its owner says about it.
    pub comment: Option<String>,
}

/// All databases of a node, by name.
#[derive(Clone, Default)]
pub struct Databases {
    by_name: BTreeMap<String, Arc<dyn Database>>,
    tenancy: DatabaseTenants,
}

impl Databases {
    /// The set of `rank_databases`; of two with the same name the last stays.
    pub fn new(databases: impl IntoIterator<Item = Arc<dyn Database>>) -> Self {
        let by_name = databases.into_iter().map(|database| (database.name().to_owned(), database)).collect();
        Self { by_name, tenancy: DatabaseTenants::default() }
    }

    /// The same, of which some are there for some tenants alone.
    #[must_use]
    pub fn with_tenancy(self, tenancy: DatabaseTenants) -> Self {
        Self { tenancy, ..self }
    }

    /// Whose they are.
    pub fn tenancy(&self) -> &DatabaseTenants {
        &self.tenancy
    }

    /// Those that `principal` may ask, in the order of their names.
    pub fn visible_to(&self, principal: &Principal) -> impl Iterator<Item = &Arc<dyn Database>> {
        let may_ask =
            move |name: &str| principal.grants.databases.includes(name) && self.tenancy.admits(name, principal);
        self.by_name.values().filter(move |database| may_ask(database.name()))
    }

    /// The one of that name, whoever asks: for what the configuration itself points at.
    pub fn configured(&self, name: &str) -> Option<&Arc<dyn Database>> {
        self.by_name.get(name)
    }

    /// What an answer to `principal` depends on beside the data, whichever of them is asked: zero where no row policy binds it
    /// ([`Database::row_policy_stamp`]).
    pub fn row_policy_stamp(&self, principal: &Principal) -> u64 {
        let all = self.by_name.iter();
        StableHasher::combine_named(all.map(|(name, database)| (name.as_str(), database.row_policy_stamp(principal))))
    }

    /// The names of all, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The one of that name, if `principal` may ask it; without a name, the only one it may ask.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, the same whether it is hidden or absent; `InvalidArguments` when a name is
    /// needed.
    pub fn get(&self, name: Option<&str>, principal: &Principal) -> Result<&Arc<dyn Database>, Error> {
        let names = || self.visible_to(principal).map(|database| database.name().to_owned());
        match name {
            Some(name) => self.visible_to(principal).find(|database| database.name() == name).ok_or_else(|| {
                let near = nearest_names(name, self.visible_to(principal).map(|database| database.name()));
                let choices = if near.is_empty() { names().take(20).collect() } else { near };
                Error::new(ErrorKind::NotFound, format!("there is no database {name:?}")).with_choices(choices)
            }),
            None => {
                let mut all = self.visible_to(principal);
                match (all.next(), all.next()) {
                    (Some(only), None) => Ok(only),
                    (None, _) => Err(Error::new(ErrorKind::NotFound, "there are no databases to query")),
                    _ => Err(Error::new(
                        ErrorKind::InvalidArguments,
                        "name the database to query in the argument \"database\"",
                    )
                    .with_choices(names().take(20))),
                }
            }
        }
    }
}
