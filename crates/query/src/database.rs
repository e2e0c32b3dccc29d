//! The interface of an engine: a catalog, plans, and streams of Arrow record batches; how long an answer stays valid;
//! and what the name of an unknown table may mean.
//!
//! The channel of batches from a producing task to a reader is short, so that a slow reader stops the task. The end
//! must be declared: a task that was dropped or cancelled must not look like one that sent its last row.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures::stream::BoxStream;
use tidegate_core::{DatabaseTenants, Error, ErrorKind, Principal, nearest_names};
use tidegate_runtime::Job;
use tidegate_sql::{SqlDialect, Statement, is_deterministic_function};
use tokio::sync::mpsc::{self, Permit};
use tokio_util::sync::CancellationToken;

use crate::format::OMITS_NULLS_KEY;
use crate::knowledge::DatabaseKnowledge;
use crate::network::{MissingNodes, Network};
use crate::row_policy::PolicyProblem;
use crate::stable_hash::StableHasher;

/// A named set of tables that can be queried. Engines and formats exchange Arrow record batches.
#[async_trait]
pub trait Database: Send + Sync + 'static {
    /// The name in arguments.
    fn name(&self) -> &str;

    /// The kind of database.
    fn kind(&self) -> DatabaseKind;

    /// The SQL dialect of the database.
    fn dialect(&self) -> SqlDialect;

    /// The tables that are visible to `principal` now.
    ///
    /// # Errors
    /// `Unavailable` when the database cannot be reached. A single unreadable table is not an error: it is listed with
    /// its status.
    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error>;

    /// The tables that are logs by themselves: log files, or a journal.
    ///
    /// # Errors
    /// As [`Database::catalog`].
    async fn log_tables(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// The columns of one table.
    ///
    /// # Errors
    /// `NotFound` with the nearest names; `Unavailable` with the reason when the table cannot be read.
    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error>;

    /// How one table is stored, as far as that is cheap to determine.
    ///
    /// # Errors
    /// As [`Database::columns`].
    async fn table_storage(&self, _table: &str, _principal: &Principal) -> Result<TableStorage, Error> {
        Ok(TableStorage::default())
    }

    /// Plans `statement` without running it.
    ///
    /// # Errors
    /// `InvalidArguments` when the database refuses the statement: unknown tables (with the
    /// nearest names), unknown columns (with the table's columns), mistyped expressions.
    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error>;

    /// The columns of the answer to `statement`, with less work than a plan where the database can.
    ///
    /// # Errors
    /// As [`Database::plan`].
    async fn describe(&self, statement: &Statement, principal: &Principal) -> Result<SchemaRef, Error> {
        Ok(self.plan(statement, principal).await?.schema())
    }

    /// How long the answer to `statement` stays valid.
    async fn freshness(&self, _statement: &Statement, _principal: &Principal) -> Freshness {
        Freshness::Never
    }

    /// A fingerprint of what an answer to `principal` depends on besides data and statement: the row policies that
    /// apply and the attributes that they use ([`RowPolicies::fingerprint`](crate::RowPolicies::fingerprint)), or the
    /// identity that the database uses. It is the same in every process, and zero where nothing distinguishes this
    /// principal.
    fn row_policy_fingerprint(&self, _principal: &Principal) -> u64 {
        0
    }

    /// The row policies that do not fit the tables.
    ///
    /// # Errors
    /// As [`Database::catalog`].
    async fn check_policies(&self) -> Result<Vec<PolicyProblem>, Error> {
        Ok(Vec::new())
    }

    /// A version tag of `table`, or of all tables, which changes when they change. `None` when the table does not exist.
    ///
    /// Cheap: subscribed clients poll it twice a second. What costs more to detect does not change it.
    ///
    /// The default covers columns and names, not rows.
    ///
    /// # Errors
    /// When the version tag cannot be computed now.
    async fn version_tag(&self, table: Option<&str>, principal: &Principal) -> Result<Option<String>, Error> {
        compute_schema_version_tag(self, table, principal).await
    }

    /// A version tag of `table` that also changes when rows are added to it, for subscriptions to logs. Cheap, as
    /// [`Database::version_tag`].
    ///
    /// # Errors
    /// As [`Database::version_tag`].
    async fn rows_version_tag(&self, table: &str, principal: &Principal) -> Result<Option<String>, Error> {
        self.version_tag(Some(table), principal).await
    }

    /// The nodes of the database, if it is a network.
    fn network(&self) -> Option<&dyn Network> {
        None
    }

    /// The databases whose tables it joins, if it has no tables of its own.
    fn members(&self) -> Vec<Arc<dyn Database>> {
        Vec::new()
    }

    /// Notes for the administrator, such as merged or skipped files: one sentence each.
    ///
    /// # Errors
    /// As [`Database::catalog`].
    async fn notes(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// Notes for the administrator about columns, one sentence each. They quote values, which do not belong into a log.
    ///
    /// # Errors
    /// As [`Database::catalog`].
    async fn column_notes(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// Checks that the database answers now, without waiting for a connection that a call holds. The caller limits the
    /// time.
    ///
    /// # Errors
    /// `Unavailable` with the reason.
    async fn check_reachable(&self) -> Result<(), Error> {
        Ok(())
    }

    /// What the logins of the database could do beyond reading, one sentence each. The caller reports it: the log has only
    /// what is found later.
    ///
    /// # Errors
    /// `Unavailable` if the database cannot be reached.
    async fn excess_privileges(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// The connections to the database, if it has a pool of them.
    fn connections(&self) -> Option<Connections> {
        None
    }

    /// Why a catalog without tables may have none.
    fn no_tables_reason(&self) -> &'static str {
        "none that you may read"
    }

    /// Ends running queries and releases resources, as far as dropping does not.
    async fn close(&self) {}
}

/// What a pool of connections counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// Those that calls hold now.
    InUse(usize),
    /// Those on which a query could start now.
    Free(usize),
}

/// A version tag of the columns of `table`, or of the names and comments of all tables; not of the rows. `None` when
/// the table does not exist.
///
/// # Errors
/// Those of [`Database::columns`] and [`Database::catalog`].
pub async fn compute_schema_version_tag<D: Database + ?Sized>(
    database: &D,
    table: Option<&str>,
    principal: &Principal,
) -> Result<Option<String>, Error> {
    let mut hash = DefaultHasher::new();
    match table {
        Some(table) => match database.columns(table, principal).await {
            Ok(columns) => {
                for column in columns {
                    (column.name, column.type_name, column.nullable, column.comment).hash(&mut hash);
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        },
        None => {
            for table in &database.catalog(principal).await?.tables {
                (&table.name, &table.comment).hash(&mut hash);
                if let TableStatus::Unreadable(reason) = &table.status {
                    reason.hash(&mut hash);
                }
            }
        }
    }
    Ok(Some(format!("{:016x}", hash.finish())))
}

/// A statement that is ready to run.
#[async_trait]
pub trait Plan: Send + Sync {
    /// The columns of the answer, as far as they are known before the run. A table may change until then:
    /// [`QueryRows::schema`] is authoritative.
    fn schema(&self) -> SchemaRef;

    /// The number of rows that the engine expects, if known.
    fn estimated_rows(&self) -> Option<u64> {
        None
    }

    /// The number of bytes that the engine expects to read, if known.
    fn estimated_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether its first row needs all of its input (a sort, an aggregate), so that streaming gains nothing, if known.
    fn is_pipeline_breaking(&self) -> Option<bool> {
        Some(false)
    }

    /// The plan as text for people and models.
    ///
    /// # Errors
    /// When the database must be queried for the plan and fails.
    async fn explain(&self) -> Result<String, Error>;

    /// Runs the plan. The stream ends early, with an error, when `job` is cancelled; dropping it stops the query.
    ///
    /// # Errors
    /// When the query cannot start. Later failures come through the stream.
    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error>;
}

/// An answer as a stream of record batches, pulled by its reader.
pub struct QueryRows {
    /// The columns, as executed.
    pub schema: SchemaRef,
    /// The batches, in order.
    pub batches: BoxStream<'static, Result<RecordBatch, Error>>,
    /// The nodes whose rows are missing, if any. It is known before the first row; a node that fails later fails the
    /// answer.
    pub missing: Option<Arc<MissingNodes>>,
}

impl QueryRows {
    /// An answer that is already in memory.
    pub fn from_batch(batch: RecordBatch) -> Self {
        Self::new(batch.schema(), Box::pin(futures::stream::once(async move { Ok(batch) })))
    }

    /// Records the missing nodes for `job`, whose answer these rows are, or are read for.
    ///
    /// # Errors
    /// As [`Job::record_missing_nodes`].
    pub fn record_missing(&self, job: &Job) -> Result<(), Error> {
        self.missing.as_deref().map_or(Ok(()), |missing| job.record_missing_nodes(missing))
    }

    /// The same rows, of which the format `mcp` leaves out the members that are null. For lists that models read; a
    /// program expects every column.
    #[must_use]
    pub fn without_nulls(self) -> Self {
        let mut metadata = self.schema.metadata().clone();
        metadata.insert(OMITS_NULLS_KEY.to_owned(), String::new());
        Self { schema: Arc::new(self.schema.as_ref().clone().with_metadata(metadata)), ..self }
    }

    /// A whole answer.
    pub fn new(schema: SchemaRef, batches: BoxStream<'static, Result<RecordBatch, Error>>) -> Self {
        Self { schema, batches, missing: None }
    }
}

/// The tables of a database at one moment, ordered by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The tables.
    pub tables: Vec<TableEntry>,
    /// Notes for the administrator, such as merged or skipped files: one sentence each.
    pub notes: Vec<String>,
}

impl Catalog {
    /// A catalog of `tables` without notes.
    pub fn from_tables(tables: Vec<TableEntry>) -> Self {
        Self { tables, notes: Vec::new() }
    }
}

/// One table of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEntry {
    /// The name, unquoted.
    pub name: String,
    /// The number of rows, where the engine knows it without reading the table.
    pub rows: Option<u64>,
    /// The comment from the database.
    pub comment: Option<String>,
    /// The part of the comment that the database itself states, such as `view`. It stays when the table is described
    /// elsewhere.
    pub facts: Option<String>,
    /// Whether it can be read.
    pub status: TableStatus,
}

/// Whether a table can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableStatus {
    /// The table can be read.
    Readable,
    /// The table cannot be read, for this reason.
    Unreadable(String),
}

/// One column of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnEntry {
    /// The name, unquoted.
    pub name: String,
    /// The type, as the SQL dialect of the database names it.
    pub type_name: String,
    /// Whether the column is nullable.
    pub nullable: bool,
    /// The comment from the database.
    pub comment: Option<String>,
    /// The part of the comment that the database itself states, such as keys. It stays when the column is described
    /// elsewhere.
    pub facts: Option<String>,
    /// Whether the caller may see other values than the stored ones, because of a mask; `None` where another server decides
    /// it.
    pub is_masked: Option<bool>,
}

/// How a table is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableStorage {
    /// The size on disk, with indexes. `None` if it is unknown, or would reveal rows that are hidden from the caller.
    pub bytes: Option<u64>,
    /// The columns by whose values rows are found without reading all others. None that is denied or masked for the
    /// caller.
    pub indexed_columns: Vec<String>,
}

/// All databases of a node, by name.
#[derive(Clone, Default)]
pub struct Databases {
    by_name: BTreeMap<String, Arc<dyn Database>>,
    tenancy: DatabaseTenants,
    /// What people wrote about them.
    pub(crate) knowledge: BTreeMap<String, DatabaseKnowledge>,
}

impl Databases {
    /// A set of `databases`; of two with the same name the last one stays.
    pub fn new(databases: impl IntoIterator<Item = Arc<dyn Database>>) -> Self {
        let by_name = databases.into_iter().map(|database| (database.name().to_owned(), database)).collect();
        Self { by_name, ..Self::default() }
    }

    /// Restricts some databases to some tenants.
    #[must_use]
    pub fn with_tenancy(self, tenancy: DatabaseTenants) -> Self {
        Self { tenancy, ..self }
    }

    /// The tenants of the databases.
    pub fn tenancy(&self) -> &DatabaseTenants {
        &self.tenancy
    }

    /// The databases that `principal` may query, ordered by name.
    pub fn visible_to(&self, principal: &Principal) -> impl Iterator<Item = &Arc<dyn Database>> {
        let may_ask =
            move |name: &str| principal.grants.databases.includes(name) && self.tenancy.admits(name, principal);
        self.by_name.values().filter(move |database| may_ask(database.name()))
    }

    /// The database of that name, regardless of the caller: for references in the configuration.
    pub fn get_unrestricted(&self, name: &str) -> Option<&Arc<dyn Database>> {
        self.by_name.get(name)
    }

    /// The combined [`Database::row_policy_fingerprint`] of all databases; zero where no row policy applies to
    /// `principal`.
    pub fn row_policy_fingerprint(&self, principal: &Principal) -> u64 {
        let all = self.by_name.iter();
        StableHasher::combine_named(
            all.map(|(name, database)| (name.as_str(), database.row_policy_fingerprint(principal))),
        )
    }

    /// The names of all databases, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The database of that name, if `principal` may query it; without a name, the only one that it may query.
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

/// A privilege of the login of a database beyond reading and beyond what declared tables need to take rows, or a known bug of
/// the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleFinding {
    /// The privilege or the bug.
    pub problem: String,
    /// How to remove it.
    pub remedy: String,
}

impl fmt::Display for RoleFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

/// The kind of a database: the key of the configuration that opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the keys of the configuration say it")]
pub enum DatabaseKind {
    Federated,
    Files,
    FlightSql,
    Ingest,
    Journal,
    Network,
    Postgres,
    Sqlite,
    System,
    /// A kind that is treated as any other, with its name: one of a crate, or of a program that embeds the server.
    Other(&'static str),
}

impl DatabaseKind {
    /// The name, as `list_databases` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Federated => "federated",
            Self::Files => "files",
            Self::FlightSql => "flight_sql",
            Self::Ingest => "ingest",
            Self::Journal => "journal",
            Self::Network => "network",
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
            Self::System => "system",
            Self::Other(name) => name,
        }
    }
}

/// How long an answer stays valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The answer is never valid for a second call, or this is unknown.
    Never,
    /// Valid as long as the data has the version that this number identifies.
    UntilChanged(u64),
    /// Valid for this duration, even if the data changes, as configured.
    MaxAge(Duration),
}

/// Words that mean the current time when they are cast to a date or a time.
const CURRENT_TIME_WORDS: &[&str] = &["now", "today", "tomorrow", "yesterday"];

impl Freshness {
    /// The freshness in a database of which answers may be `age` old: only for deterministic statements.
    pub fn from_max_age(age: Option<Duration>, statement: &Statement) -> Self {
        match age {
            Some(age) if is_deterministic(statement) => Self::MaxAge(age),
            _ => Self::Never,
        }
    }
}

fn is_deterministic(statement: &Statement) -> bool {
    if statement.transaction().writes {
        return false;
    }
    let parsed = match statement.ast() {
        Some(_) => Some(statement.clone()),
        // Statements of the configuration were not parsed yet.
        None => Statement::parse(statement.text(), statement.dialect()).ok(),
    };
    let Some(parsed) = parsed else { return false };
    parsed.functions().iter().all(|name| is_deterministic_function(name)) && !mentions_current_time(&parsed)
}

/// Whether `statement` contains a word that means the current time when it is cast, as in `'today'::date`.
pub fn mentions_current_time(statement: &Statement) -> bool {
    let text = statement.text().to_lowercase();
    let mut words = text.split(|character: char| !character.is_alphanumeric() && character != '_');
    words.any(|word| CURRENT_TIME_WORDS.contains(&word))
}

/// The capacity of the channel, in batches.
const BATCHES_WAITING_MAX: usize = 2;

/// The sending half of a batch channel. Cheap to clone.
#[derive(Clone)]
pub struct BatchSender {
    batches: mpsc::Sender<Result<RecordBatch, Error>>,
    is_complete: Arc<AtomicBool>,
}

/// Creates a channel whose reader receives an error when `cancellation` fires. `kept` is dropped with the stream.
pub fn batch_channel<K: Send + 'static>(
    cancellation: CancellationToken,
    kept: K,
) -> (BatchSender, BoxStream<'static, Result<RecordBatch, Error>>) {
    let (sender, batches) = mpsc::channel(BATCHES_WAITING_MAX);
    let is_complete = Arc::new(AtomicBool::new(false));
    let reader = BatchReceiver { batches, is_complete: is_complete.clone(), cancellation, ended: false };
    let stream = futures::stream::unfold((reader, kept), |(mut reader, kept)| async move {
        let batch = reader.next().await?;
        Some((batch, (reader, kept)))
    });
    (BatchSender { batches: sender, is_complete }, Box::pin(stream))
}

impl BatchSender {
    /// Waits for capacity; `None` when the reader is dropped.
    pub async fn reserve(&self) -> Option<Permit<'_, Result<RecordBatch, Error>>> {
        self.batches.reserve().await.ok()
    }

    /// Sends `batch` when there is capacity. Returns false when the reader is dropped.
    ///
    /// # Errors
    /// `TimedOut` when the reader takes no batch for `stall_timeout`.
    pub async fn send(&self, batch: RecordBatch, stall_timeout: Duration) -> Result<bool, Error> {
        match tokio::time::timeout(stall_timeout, self.reserve()).await {
            Ok(Some(permit)) => {
                permit.send(Ok(batch));
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(_) => Err(stall_error(stall_timeout)),
        }
    }

    /// Sends an error when there is capacity; ignored when the reader is dropped.
    pub async fn fail(&self, error: Error) {
        let _ = self.batches.send(Err(error)).await;
    }

    /// Declares that the last batch was sent.
    pub fn complete(&self) {
        self.is_complete.store(true, Ordering::Release);
    }

    /// Resolves when the reader is dropped.
    pub async fn closed(&self) {
        self.batches.closed().await;
    }
}

fn stall_error(stall_timeout: Duration) -> Error {
    let seconds = stall_timeout.as_secs_f64();
    let message = format!("the client read no rows for {seconds} s, so the query was cancelled");
    Error::new(ErrorKind::TimedOut, message).with_hint("Read the rows faster, or request fewer rows.")
}

struct BatchReceiver {
    batches: mpsc::Receiver<Result<RecordBatch, Error>>,
    is_complete: Arc<AtomicBool>,
    cancellation: CancellationToken,
    ended: bool,
}

impl BatchReceiver {
    async fn next(&mut self) -> Option<Result<RecordBatch, Error>> {
        if self.ended {
            return None;
        }
        let received = tokio::select! {
            biased;
            () = self.cancellation.cancelled() => Some(Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"))),
            received = self.batches.recv() => received,
        };
        self.ended = !matches!(received, Some(Ok(_)));
        match received {
            // The task ended before it declared the end.
            None if !self.is_complete.load(Ordering::Acquire) => {
                Some(Err(Error::new(ErrorKind::Unavailable, "the server is shutting down")))
            }
            received => received,
        }
    }
}

/// The number of tables that are named by their comments.
const DESCRIBED_MAX: usize = 5;
/// The number of tables that are named if none is similar.
const CHOICES_MAX: usize = 20;
/// Shorter words of a name are not searched in comments.
const WORD_CHARACTERS_MIN: usize = 3;

impl Catalog {
    /// Tables with a name similar to `name`, then tables whose comment has one of its words. If there are none, the first
    /// tables.
    pub fn nearest_tables(&self, name: &str) -> Vec<String> {
        let names = || self.tables.iter().map(|table| table.name.as_str());
        let similar = nearest_names(name, names());
        let searched = split_words(name);
        let is_described = |table: &&TableEntry| {
            let comment = split_words(table.comment.as_deref().unwrap_or_default());
            !similar.contains(&table.name) && comment.iter().any(|word| searched.contains(word))
        };
        let described = self.tables.iter().filter(is_described).take(DESCRIBED_MAX).map(|table| table.name.clone());
        let nearest: Vec<String> = similar.iter().cloned().chain(described).collect();
        if nearest.is_empty() { names().take(CHOICES_MAX).map(str::to_owned).collect() } else { nearest }
    }
}

/// The words of a name or a text, in lower case and without the ending of a plural.
fn split_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let singular = words.map(|word| word.trim_end_matches('s').to_owned());
    singular.filter(|word| word.chars().count() >= WORD_CHARACTERS_MIN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_cache_volatile_functions() {
        let freshness = |sql: &str| {
            let statement = Statement::parse(sql, SqlDialect::Postgres).unwrap();
            Freshness::from_max_age(Some(Duration::from_secs(1)), &statement)
        };
        for sql in [
            "SELECT now()",
            "SELECT CURRENT_DATE",
            "SELECT CURRENT_TIMESTAMP",
            "SELECT random()",
            "SELECT * FROM t WHERE at > 'today'::date",
            "SELECT * FROM t WHERE at > DATE ' TODAY'",
            "SELECT mine(a) FROM t",
            "SELECT count(*) FILTER (WHERE a > random()) FROM t",
        ] {
            assert_eq!(freshness(sql), Freshness::Never, "{sql}");
        }
        assert_eq!(freshness("SELECT a, count(*) FROM t GROUP BY a"), Freshness::MaxAge(Duration::from_secs(1)));
        let owners = Statement::from_owner("SELECT now()", Vec::new(), SqlDialect::Postgres);
        assert_eq!(Freshness::from_max_age(Some(Duration::from_secs(1)), &owners), Freshness::Never);
    }

    #[test]
    fn names_come_before_comments() {
        let table = |(name, comment): (&str, Option<&str>)| TableEntry {
            name: name.to_owned(),
            rows: None,
            comment: comment.map(str::to_owned),
            facts: None,
            status: TableStatus::Readable,
        };
        let tables = [
            ("ar_docs", Some("Invoices and credit notes")),
            ("invoice_lines", None),
            ("stock", Some("Parts in each warehouse")),
        ];
        let catalog = Catalog::from_tables(tables.map(table).into());
        assert_eq!(catalog.nearest_tables("invoice"), ["invoice_lines", "ar_docs"]);
        assert_eq!(catalog.nearest_tables("warehouses").last().map(String::as_str), Some("stock"));
        // A part of a word is another word.
        assert!(!catalog.nearest_tables("art_invoices").contains(&"stock".to_owned()));
    }
}
