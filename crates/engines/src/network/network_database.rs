//! A network database: its tables are those of its nodes. It also has which nodes hold which part of a table: rows,
//! size, and the ranges of declared columns.
//!
//! Sizes and ranges are requested when they are needed, and kept for the time when a node is away. They never decide
//! which nodes a statement needs: a node may have got other rows since then.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, Utc};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::TableReference;
use futures::StreamExt;
use futures::future::{join_all, try_join};
use lru::LruCache;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, Principal, shorten};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, MissingNode, Network, NodeDatabase, PartRange, Plan, StableHasher,
    TableEntry, TablePart, TableStatus, TableStorage, type_name,
};
use tidegate_runtime::Job;
use tidegate_sql::{SqlDialect, Statement};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::options::{NetworkNode, NetworkOptions};
use super::plan::{NetworkPlan, NetworkPlanner, NodeStarter, PartReader};
use super::tables::{KnownTables, NODE_COLUMN, NetworkTables, NodePart, UnitedTable};
use crate::embedded::{Engine, SessionFactory, StatementScope, StatementSession, describe_statement, find_tables};
use crate::federated::MemberQueryContext;

/// Maximum time to wait for running statements of nodes at shutdown.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// A database whose tables are those of its nodes. Tables of the same name are one table, with the name of the node of
/// each row in the column `_node`.
pub struct NetworkDatabase {
    pub(super) name: Arc<str>,
    pub(super) nodes: Arc<[NetworkNode]>,
    databases: Vec<Arc<dyn NodeDatabase>>,
    pub(super) options: NetworkOptions,
    statistics: KnownStatistics,
    engine: Engine,
    sessions: Arc<SessionFactory>,
    tasks: TaskTracker,
}

impl NetworkDatabase {
    /// Creates a database called `name` over `nodes`, which have different names.
    ///
    /// # Errors
    /// `Internal` when the session cannot be created.
    pub fn new(
        name: impl Into<String>,
        options: NetworkOptions,
        nodes: Vec<NetworkNode>,
        engine: &Engine,
    ) -> Result<Self, Error> {
        let name: Arc<str> = name.into().into();
        let sessions = SessionFactory::new(&name, engine).map_err(|error| Error::internal(error.to_string()))?;
        let databases = nodes.iter().map(|node| node.database.clone()).collect();
        let (engine, sessions, tasks) = (engine.clone(), Arc::new(sessions), TaskTracker::new());
        let statistics = KnownStatistics::default();
        Ok(Self { name, nodes: nodes.into(), databases, options, statistics, engine, sessions, tasks })
    }

    async fn known_tables(&self, principal: &Principal) -> Result<Arc<KnownTables>, Error> {
        KnownTables::load(&self.nodes, &self.options, principal, false).await.map(Arc::new)
    }

    /// For a table that no list has: a node may have got it since.
    async fn newer_tables(&self, principal: &Principal) -> Result<Arc<KnownTables>, Error> {
        KnownTables::load(&self.nodes, &self.options, principal, true).await.map(Arc::new)
    }

    /// As [`NetworkDatabase::known_tables`], or of newer lists if they lack `table`.
    pub(super) async fn known_tables_with(
        &self,
        table: &str,
        principal: &Principal,
    ) -> Result<Arc<KnownTables>, Error> {
        let known = self.known_tables(principal).await?;
        if known.lacks(table, &self.name) { self.newer_tables(principal).await } else { Ok(known) }
    }

    async fn load_tables(
        &self,
        statement: &Statement,
        principal: &Principal,
        context: MemberQueryContext,
    ) -> Result<NetworkTables, Error> {
        let known = self.known_tables(principal).await?;
        known.check_complete(self.options.partial, &self.name)?;
        let tables = NetworkTables::new(&self.name, known, statement, context, principal)?;
        let is_unknown = |reference: &TableReference| {
            tables.columns(reference).is_err_and(|error| error.kind() == ErrorKind::NotFound)
        };
        if !self.references(statement, &tables)?.iter().any(is_unknown) {
            return Ok(tables);
        }
        let known = self.newer_tables(principal).await?;
        known.check_complete(self.options.partial, &self.name)?;
        NetworkTables::new(&self.name, known, statement, tables.context, principal)
    }

    /// The tables that `statement` names.
    fn references(&self, statement: &Statement, tables: &NetworkTables) -> Result<Vec<TableReference>, Error> {
        let lacks = |reference: &TableReference| tables.has_no_table(reference);
        find_tables(statement, self.sessions.base(), lacks, &self.name)
    }

    /// The names of the tables of `statement`.
    fn table_names(&self, statement: &Statement, tables: &NetworkTables) -> Result<BTreeSet<String>, Error> {
        let references = self.references(statement, tables)?;
        Ok(references.iter().map(|reference| tables.table_name(reference)).collect())
    }

    /// The rows of the tables called `names` by node, as last known.
    fn rows_by_node(&self, names: &BTreeSet<String>, tables: &NetworkTables) -> BTreeMap<String, Option<u64>> {
        let mut rows: BTreeMap<String, Option<u64>> =
            self.databases.iter().map(|node| (node.name().to_owned(), Some(0))).collect();
        for name in names {
            let Ok(table) = tables.known.table(name, &self.name) else { continue };
            for part in &table.parts {
                let known = part.table.rows.filter(|_| part.holds.is_none());
                let node = rows.entry(part.node.name().to_owned()).or_default();
                *node = node.zip(known).map(|(sum, rows)| sum + rows);
            }
        }
        let unreadable = names.iter().flat_map(|name| tables.known.unreadable_on(name, &self.name));
        for node in tables.known.unknown.iter().chain(unreadable) {
            rows.insert(node.name.clone(), None);
        }
        rows
    }

    fn create_session(&self, tables: &NetworkTables, principal: &Principal) -> StatementSession {
        self.sessions.create_session_without_files(principal, Arc::new(tables.clone()))
    }

    pub(super) fn query_context(&self, principal: &Principal) -> MemberQueryContext {
        let context = MemberQueryContext::new(principal, &self.engine, &self.tasks);
        MemberQueryContext { first_rows_within: Some(self.options.timeout), ..context }
    }

    /// Plans a statement over `tables`; `failed` are nodes that did not list theirs.
    async fn plan_over(
        &self,
        statement: &Statement,
        tables: NetworkTables,
        mut failed: Vec<MissingNode>,
        principal: &Principal,
    ) -> Result<Box<dyn Plan>, Error> {
        let context = tables.context.clone();
        let cancellation = context.cancellation.clone();
        let names = self.table_names(statement, &tables)?;
        let rows = self.rows_by_node(&names, &tables);
        failed.extend(names.iter().flat_map(|name| tables.known.unreadable_on(name, &self.name)).cloned());
        // Dropping this future before the plan is complete cancels the functions that run during planning.
        let cancel_on_drop = cancellation.token().clone().drop_guard();
        let worker_pool = self.engine.worker_pool(principal)?;
        let (nodes, sessions, engine) = (self.nodes.clone(), self.sessions.clone(), self.engine.clone());
        let planner = NetworkPlanner { tables, nodes, context, sessions, engine, worker_pool: worker_pool.clone() };
        let (statement, of_query, planning) = (statement.clone(), cancellation.clone(), planner.clone());
        let planning = async move {
            let logical = planning.clone().optimize_statement(statement).await?;
            Ok((logical.clone(), planning.build(logical, of_query).await?))
        };
        let (logical, plan) = worker_pool.run(planning).await?;
        cancel_on_drop.disarm();
        let starter = NodeStarter { network: self.name.clone(), partial: self.options.partial, failed, rows };
        let part_reader = PartReader::new(planner, logical);
        Ok(Box::new(NetworkPlan { plan, cancellation, starter, part_reader }))
    }
}

tidegate_core::impl_debug!(NetworkDatabase { name, nodes });

#[async_trait]
impl Database for NetworkDatabase {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Network
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        let known = self.known_tables(principal).await?;
        if known.known.is_empty() {
            known.check_complete(self.options.partial, &self.name)?;
        }
        let entry = |(name, table): (&String, &UnitedTable)| TableEntry {
            name: name.clone(),
            rows: table.rows(),
            comment: table.parts.iter().find_map(|part| part.table.comment.clone()),
            facts: None,
            status: TableStatus::Readable,
        };
        let mut catalog = Catalog::from_tables(known.tables.iter().map(entry).collect());
        let unreadable = known.unreadable.values().flatten();
        let failed = known.unknown.iter().chain(unreadable);
        catalog.notes =
            failed.map(|node| format!("Rows of the node {} are missing: {}", node.name, node.reason)).collect();
        Ok(Arc::new(catalog))
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let known = self.known_tables_with(table, principal).await?;
        let united = known.table(table, &self.name)?;
        let columns = united.schema.fields().iter().map(|field| ColumnEntry {
            name: field.name().clone(),
            type_name: type_name(field.data_type()),
            nullable: field.is_nullable(),
            comment: (field.name() == NODE_COLUMN).then(|| "The node that holds the row.".to_owned()),
            facts: None,
            // The nodes decide it.
            is_masked: None,
        });
        Ok(columns.collect())
    }

    /// The sum of the nodes, if each knows its own, and all its rows are part of the network. A column is indexed if it is on
    /// all nodes.
    async fn table_storage(&self, table: &str, principal: &Principal) -> Result<TableStorage, Error> {
        let known = self.known_tables_with(table, principal).await?;
        let united = known.table(table, &self.name)?;
        let of_part = |part: &NodePart| {
            let (node, table) = (part.node.clone(), part.table.name.clone());
            async move { node.table_storage(&table, principal).await }
        };
        let storages = join_all(united.parts.iter().map(of_part)).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        let is_known = known.unknown.is_empty() && known.unreadable_on(table, &self.name).is_empty();
        let is_whole = is_known && united.parts.iter().all(|part| part.holds.is_none());
        let bytes = storages.iter().map(|storage| storage.bytes).sum::<Option<u64>>().filter(|_| is_whole);
        let mut indexed_columns = storages.first().map(|first| first.indexed_columns.clone()).unwrap_or_default();
        indexed_columns.retain(|column| storages.iter().all(|storage| storage.indexed_columns.contains(column)));
        Ok(TableStorage { bytes, indexed_columns })
    }

    /// Combines all nodes. Zero if no node distinguishes principals.
    fn row_policy_fingerprint(&self, principal: &Principal) -> u64 {
        let all = self.databases.iter();
        StableHasher::combine_named(all.map(|node| (node.name(), node.row_policy_fingerprint(principal))))
    }

    fn no_tables_reason(&self) -> &'static str {
        "no node shows one to you; see its nodes below"
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let tables = self.load_tables(statement, principal, self.query_context(principal)).await?;
        let failed = tables.known.unknown.clone();
        self.plan_over(statement, tables, failed, principal).await
    }

    async fn describe(&self, statement: &Statement, principal: &Principal) -> Result<SchemaRef, Error> {
        let tables = self.load_tables(statement, principal, self.query_context(principal)).await?;
        let session = self.create_session(&tables, principal);
        let statement = statement.clone();
        let describing = async move { describe_statement(&statement, &session, &tables).await };
        self.engine.worker_pool(principal)?.run(describing).await
    }

    async fn close(&self) {
        self.tasks.close();
        // Each node is closed separately, which ends the remaining statements.
        let _ = tokio::time::timeout(CLOSE_WITHIN, self.tasks.wait()).await;
        join_all(self.databases.iter().map(|node| node.close())).await;
    }
}

/// Parts whose statistics are kept; the one that was not used for the longest time is forgotten.
const PARTS_MAX: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// Characters of a value.
const VALUE_CHARS_MAX: usize = 100;

/// The statistics of parts of tables, as last known.
struct KnownStatistics(Mutex<LruCache<PartKey, PartStatistics>>);

impl Default for KnownStatistics {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(PARTS_MAX)))
    }
}

/// A part of a table, as some callers see it.
#[derive(PartialEq, Eq, Hash)]
struct PartKey {
    node: String,
    table: String,
    callers: u64,
}

#[derive(Debug, Clone)]
struct PartStatistics {
    bytes: Option<u64>,
    ranges: Vec<PartRange>,
    known_since: SystemTime,
}

#[async_trait]
impl Network for NetworkDatabase {
    fn nodes(&self) -> &[Arc<dyn NodeDatabase>] {
        &self.databases
    }

    async fn locate(&self, table: &str, job: &Arc<Job>) -> Result<Vec<TablePart>, Error> {
        let known = self.known_tables_with(table, job.principal()).await?;
        let united = known.table(table, &self.name)?;
        let locating = self.nodes.iter().map(|node| self.locate_on(node, table, united, &known, job));
        let parts = join_all(locating).await.into_iter().collect::<Result<Vec<_>, Error>>()?;
        Ok(parts.into_iter().flatten().collect())
    }
}

impl NetworkDatabase {
    /// The part of `node`, if it has one.
    async fn locate_on(
        &self,
        node: &NetworkNode,
        table: &str,
        united: &UnitedTable,
        known: &Arc<KnownTables>,
        job: &Arc<Job>,
    ) -> Result<Option<TablePart>, Error> {
        let name = node.database.name();
        let known_since = known.known.get(name).map(|tables| tables.known_since);
        let without_columns = |rows: Option<u64>, note: String| TablePart {
            node: name.to_owned(),
            rows,
            bytes: None,
            ranges: Vec::new(),
            known_since,
            holds: None,
            notes: vec![note],
        };
        if let Some(missing) = known.unknown.iter().find(|missing| missing.name == name) {
            return Ok(Some(without_columns(None, format!("it does not answer: {}", missing.reason))));
        }
        if let Some(missing) = known.unreadable_on(table, &self.name).iter().find(|missing| missing.name == name) {
            return Ok(Some(without_columns(missing.rows, missing.reason.clone())));
        }
        let Some(part) = united.parts.iter().find(|part| part.node.name() == name) else { return Ok(None) };
        let (statistics, note) = self.statistics(node, part, known, job).await?;
        let notes = united.notes.iter().filter(|(of, _)| of == name).map(|(_, note)| note.clone());
        Ok(Some(TablePart {
            node: name.to_owned(),
            rows: part.table.rows,
            bytes: statistics.as_ref().and_then(|statistics| statistics.bytes),
            ranges: statistics.map(|statistics| statistics.ranges).unwrap_or_default(),
            known_since,
            holds: part.holds.as_ref().map(ToString::to_string),
            notes: notes.chain(part.holds_problems()).chain(note).collect(),
        }))
    }

    /// The statistics of a part, and a note if they are old or unknown.
    async fn statistics(
        &self,
        node: &NetworkNode,
        part: &NodePart,
        known: &Arc<KnownTables>,
        job: &Arc<Job>,
    ) -> Result<(Option<PartStatistics>, Option<String>), Error> {
        let principal = job.principal();
        let key = || PartKey {
            node: node.database.name().to_owned(),
            table: part.table.name.clone(),
            callers: node.database.row_policy_fingerprint(principal),
        };
        let known_since = SystemTime::now();
        let sizes = node.database.table_storage(&part.table.name, principal);
        let reading = timeout(self.options.timeout, try_join(sizes, self.read_ranges(part, known, job))).await;
        let reason = match reading {
            Ok(Ok((storage, ranges))) => {
                let statistics = PartStatistics { bytes: storage.bytes, ranges, known_since };
                self.statistics.0.lock().put(key(), statistics.clone());
                return Ok((Some(statistics), None));
            }
            Ok(Err(error)) if error.kind() == ErrorKind::Cancelled => return Err(error),
            Ok(Err(error)) => error.message().to_owned(),
            Err(_) => format!("it did not answer within {} ms", self.options.timeout.as_millis()),
        };
        let last = self.statistics.0.lock().get(&key()).cloned();
        let age = match &last {
            Some(last) => {
                let time = DateTime::<Utc>::from(last.known_since).to_rfc3339_opts(SecondsFormat::Secs, true);
                format!("are those of {time}")
            }
            None => "are not known".to_owned(),
        };
        Ok((last, Some(format!("size and ranges {age}: {reason}"))))
    }

    /// The ranges of the declared columns in the rows of a part.
    async fn read_ranges(
        &self,
        part: &NodePart,
        known: &Arc<KnownTables>,
        job: &Arc<Job>,
    ) -> Result<Vec<PartRange>, Error> {
        let declared = self.options.ranges.iter().filter(|column| part.column(column).is_some());
        let columns: Vec<&str> = declared.map(String::as_str).collect();
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let principal = job.principal();
        let statement = Statement::parse(&ranges_query(&columns, part), SqlDialect::DataFusion)?;
        let context = self.query_context(principal);
        let tables = NetworkTables::new(&self.name, known.clone(), &statement, context, principal)?;
        // Other nodes, which may be away, are not needed.
        let plan = self.plan_over(&statement, tables, Vec::new(), principal).await?;
        let mut rows = plan.run(job).await?.batches;
        let mut ranges = Vec::new();
        while let Some(batch) = rows.next().await {
            ranges.extend(ranges_of(&columns, &batch?)?);
        }
        Ok(ranges)
    }
}

/// The smallest and the largest value of each of `columns`, in one row.
fn ranges_query(columns: &[&str], part: &NodePart) -> String {
    let quoted = |name: &str| SqlDialect::DataFusion.quote_identifier(name);
    let ranges: Vec<String> = columns.iter().map(|name| format!("min({0}), max({0})", quoted(name))).collect();
    let node = part.node.name().replace('\'', "''");
    format!("SELECT {} FROM {} WHERE {NODE_COLUMN} = '{node}'", ranges.join(", "), quoted(&part.table.name))
}

/// The ranges in an answer to [`ranges_query`]. A column without values has none.
fn ranges_of(columns: &[&str], batch: &RecordBatch) -> Result<Vec<PartRange>, Error> {
    let failed = |error| Error::internal(format!("the range of a column: {error}"));
    let options = FormatOptions::default();
    let mut ranges = Vec::new();
    for (column, range) in columns.iter().zip(batch.columns().chunks_exact(2)) {
        if batch.num_rows() == 0 || range.iter().any(|values| values.is_null(0)) {
            continue;
        }
        let text = |values| {
            ArrayFormatter::try_new(values, &options)
                .map(|values| shorten(values.value(0).to_string(), VALUE_CHARS_MAX))
        };
        let (smallest, largest) = (text(&range[0]).map_err(failed)?, text(&range[1]).map_err(failed)?);
        ranges.push(PartRange { column: (*column).to_owned(), smallest, largest });
    }
    Ok(ranges)
}
