//! A network database: its tables are those of its nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::TableReference;
use futures::future::join_all;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, MissingNode, Network, NodeDatabase, Plan, StableHasher, TableEntry,
    TableStatus, TableStorage, type_name,
};
use tidegate_sql::{SqlDialect, Statement};
use tokio_util::task::TaskTracker;

use super::locate::KnownStatistics;
use super::nodes::KnownTables;
use super::options::{NetworkNode, NetworkOptions};
use super::part_reader::PartReader;
use super::plan::{NetworkPlan, NodeStarter};
use super::planner::NetworkPlanner;
use super::tables::NetworkTables;
use super::united_table::{NODE_COLUMN, NodePart, UnitedTable};
use crate::embedded::{Engine, SessionFactory, StatementScope, StatementSession, describe_statement, find_tables};
use crate::federated::MemberQueryContext;

/// Maximum time to wait for running statements of nodes at shutdown.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// A database whose tables are those of its nodes. Tables of the same name are one table, with the name of the node of
/// each row in the column `_node`.
pub struct NetworkDatabase {
    pub(super) name: Arc<str>,
    pub(super) nodes: Arc<[NetworkNode]>,
    pub(super) databases: Vec<Arc<dyn NodeDatabase>>,
    pub(super) options: NetworkOptions,
    pub(super) statistics: KnownStatistics,
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

    pub(super) async fn known_tables(&self, principal: &Principal) -> Result<Arc<KnownTables>, Error> {
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
    pub(super) async fn plan_over(
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
