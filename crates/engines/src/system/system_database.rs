//! A database of live tables. They are also functions: with descriptions, and readings with parameters, which SQL does
//! not have.
//!
//! A statement names them as `table`, `public.table`, `database.table` and `database.public.table`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_pgsql::{VisibleObjects, VisibleTable};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, Plan, PolicyProblem, RowPolicies, StableHasher, TableEntry,
    TableStatus, TableStorage, type_name,
};
use tidegate_sql::{SqlDialect, Statement};
use tidegate_system::{SystemTableDescription, SystemValue};
use tokio::runtime::Handle;

use super::journal::JournalTable;
use super::live_table::{LiveTable, LiveTableProvider, ReadingStatement, column_comment, table_schema};
use crate::embedded::{
    CATALOG, Engine, PolicyTableColumns, PrincipalPolicies, QueryCancellation, RowPolicyTable, SessionFactory,
    StatementScope, StatementSession, SystemCatalogs, build_plan, check_table_policies, describe_statement,
    optimize_statement, to_core_error, with_cancellation,
};

/// Part of a fingerprint: a table does not exist for the caller.
const HIDDEN: u64 = 1;
/// Part of a fingerprint: the caller reads what is masked for others.
const GRANTED: u64 = 2;

/// A live table, and what it demands of callers.
#[derive(Clone)]
pub struct OfferedTable {
    /// The table.
    pub table: Arc<dyn LiveTable>,
    /// The access names that a caller must hold, all of them. For callers without them, the table does not exist.
    pub access_names: Vec<String>,
}

/// A table with what is computed from its description.
struct StoredTable {
    offered: OfferedTable,
    schema: SchemaRef,
    /// For each column, the positions of the others whose values can be read from it.
    revealed: Vec<Vec<usize>>,
}

impl StoredTable {
    fn policy_columns(&self) -> PolicyTableColumns<'_> {
        PolicyTableColumns { schema: &self.schema, revealed: &self.revealed }
    }
}

/// A database whose rows are produced when they are read. Answers are never cached.
#[derive(Clone)]
pub struct SystemDatabase {
    name: Arc<str>,
    pub(super) engine: Engine,
    sessions: Arc<SessionFactory>,
    tables: Arc<BTreeMap<String, StoredTable>>,
    sensitive_access: Option<String>,
    policies: RowPolicies,
    kind: DatabaseKind,
    /// The parameters of the one table that a function reads.
    pub(super) parameters: Arc<BTreeMap<String, SystemValue>>,
}

impl SystemDatabase {
    /// Creates a database called `name` with `tables`. Sensitive columns are masked for callers without the access name
    /// `sensitive_access`; without one, for all callers.
    ///
    /// # Errors
    /// `Internal` when the session cannot be created.
    pub fn new(
        name: impl Into<String>,
        tables: Vec<OfferedTable>,
        sensitive_access: Option<String>,
        engine: &Engine,
    ) -> Result<Self, Error> {
        let name: Arc<str> = name.into().into();
        let sessions = SessionFactory::new(&name, engine).map_err(|error| Error::internal(error.to_string()))?;
        let stored = |offered: OfferedTable| {
            let description = offered.table.description();
            let (name, schema) = (description.name.clone().into_owned(), table_schema(description));
            let revealed = offered.table.revealed_columns();
            (name, StoredTable { offered, schema, revealed })
        };
        Ok(Self {
            tables: Arc::new(tables.into_iter().map(stored).collect()),
            sessions: Arc::new(sessions),
            engine: engine.clone(),
            policies: RowPolicies::default(),
            kind: DatabaseKind::System,
            parameters: Arc::default(),
            sensitive_access,
            name,
        })
    }

    /// Applies `policies` to the tables.
    #[must_use]
    pub fn with_row_policies(self, policies: RowPolicies) -> Self {
        Self { policies, ..self }
    }

    /// Creates a database called `name` with the entries of a journal. Command lines and environments are masked as in
    /// [`SystemDatabase::new`].
    ///
    /// # Errors
    /// As [`SystemDatabase::new`].
    pub fn of_journal(
        name: impl Into<String>,
        table: JournalTable,
        sensitive_access: Option<String>,
        engine: &Engine,
    ) -> Result<Self, Error> {
        let offered = OfferedTable { table: Arc::new(table), access_names: Vec::new() };
        Ok(Self { kind: DatabaseKind::Journal, ..Self::new(name, vec![offered], sensitive_access, engine)? })
    }

    /// Whether sensitive columns have their values for `principal`.
    pub fn grants_sensitive(&self, principal: &Principal) -> bool {
        self.sensitive_access.as_ref().is_some_and(|name| principal.grants.access.includes(name))
    }

    /// The tables that `principal` may read, by name.
    fn visible_tables(&self, principal: &Principal) -> impl Iterator<Item = (&str, &StoredTable)> + Clone {
        let holds = |name: &String| principal.grants.access.includes(name);
        let visible = self.tables.iter().filter(move |(_, StoredTable { offered, .. })| {
            offered.access_names.iter().all(holds) && offered.table.is_visible_to(principal)
        });
        visible.map(|(name, table)| (name.as_str(), table))
    }

    /// The table called `name`, which may have the name of the database before it.
    fn visible_table(&self, name: &str, principal: &Principal) -> Result<(&str, &StoredTable), Error> {
        let bare = name.strip_prefix(&format!("{}.", self.name)).unwrap_or(name);
        let mut tables = self.visible_tables(principal);
        let names = tables.clone().map(|(name, _)| name);
        tables.find(|(name, _)| *name == bare).ok_or_else(|| no_such_table(bare, &self.name, names))
    }

    fn principal_policies(&self, principal: &Principal) -> PrincipalPolicies {
        PrincipalPolicies { policies: self.policies.clone(), principal: Arc::new(principal.clone()) }
    }

    pub(super) fn is_restricted(&self, name: &str, principal: &Principal) -> bool {
        !self.policies.is_empty() && self.policies.applies(&[name], principal)
    }

    fn create_provider(
        &self,
        name: &str,
        table: &StoredTable,
        policies: &PrincipalPolicies,
        statement: &ReadingStatement,
    ) -> Result<Arc<dyn TableProvider>, Error> {
        let view = policies.view_of_columns(&[name], table.policy_columns())?;
        let provider = Arc::new(LiveTableProvider {
            table: table.offered.table.clone(),
            schema: table.schema.clone(),
            grants_sensitive: self.grants_sensitive(&policies.principal),
            statement: statement.clone(),
        });
        let Some(view) = view else { return Ok(provider) };
        let key = self.policies.key().clone();
        Ok(Arc::new(RowPolicyTable::new(name.to_owned(), provider, view, key)))
    }

    fn load_tables(&self, sql: &Statement, statement: &ReadingStatement) -> Result<LiveTables, Error> {
        let policies = PrincipalPolicies { policies: self.policies.clone(), principal: statement.principal.clone() };
        let visible = self.visible_tables(&statement.principal);
        let provider = |(name, table)| (str::to_owned(name), self.create_provider(name, table, &policies, statement));
        let tables: BTreeMap<String, _> = visible.map(provider).collect();
        let catalogs = match SystemCatalogs::find_needs(sql) {
            Some(needs) => {
                let objects = self.visible_objects(&tables, &statement.principal);
                SystemCatalogs::new(&needs, objects).map_err(|error| to_core_error(&error, &self.name))?
            }
            None => SystemCatalogs::default(),
        };
        Ok(LiveTables { database: self.name.clone(), tables: Arc::new(tables), catalogs })
    }

    /// The tables for the system catalogs of PostgreSQL.
    fn visible_objects(
        &self,
        providers: &BTreeMap<String, Result<Arc<dyn TableProvider>, Error>>,
        principal: &Principal,
    ) -> VisibleObjects {
        let table = |(name, _): (&str, &StoredTable)| {
            let columns = match providers.get(name) {
                Some(Ok(provider)) => provider.schema().fields().to_vec(),
                _ => Vec::new(),
            };
            VisibleTable { schema: tidegate_pgsql::PUBLIC_SCHEMA.to_owned(), name: name.to_owned(), columns }
        };
        let tables = self.visible_tables(principal).map(table).collect();
        VisibleObjects::new(&*self.name, &principal.subject, tables)
    }

    fn reading_statement(&self, principal: &Principal) -> ReadingStatement {
        ReadingStatement {
            engine: self.engine.clone(),
            principal: Arc::new(principal.clone()),
            cancellation: QueryCancellation::new(self.engine.shutdown_token()),
            runtime: Handle::current(),
            parameters: self.parameters.clone(),
        }
    }

    fn create_session(&self, tables: &LiveTables, principal: &Principal) -> StatementSession {
        self.sessions.create_session_without_files(principal, Arc::new(tables.clone()))
    }
}

#[async_trait]
impl Database for SystemDatabase {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> DatabaseKind {
        self.kind
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    async fn check_policies(&self) -> Result<Vec<PolicyProblem>, Error> {
        let tables: Vec<(&str, PolicyTableColumns<'_>)> =
            self.tables.iter().map(|(name, table)| (name.as_str(), table.policy_columns())).collect();
        Ok(check_table_policies(&self.policies, &tables))
    }

    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        let entry = |(name, table): (&str, &StoredTable)| TableEntry {
            name: name.to_owned(),
            rows: None,
            comment: Some(table.offered.table.description().description.clone().into_owned()),
            facts: None,
            status: TableStatus::Readable,
        };
        Ok(Arc::new(Catalog::from_tables(self.visible_tables(principal).map(entry).collect())))
    }

    async fn notes(&self) -> Result<Vec<String>, Error> {
        Ok(self.tables.values().flat_map(|table| table.offered.table.notes()).collect())
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let (name, table) = self.visible_table(table, principal)?;
        let view = self.principal_policies(principal).view_of_columns(&[name], table.policy_columns())?;
        let description = table.offered.table.description();
        let positions = match &view {
            Some(view) => view.positions.clone(),
            None => (0..description.columns.len()).collect(),
        };
        let fields = view.as_ref().map_or_else(|| table.schema.fields().clone(), |view| view.schema.fields().clone());
        let is_granted = self.grants_sensitive(principal);
        let columns = positions.into_iter().zip(&fields).filter_map(|(position, field)| {
            let column = description.columns.get(position)?;
            let is_hidden = column.is_sensitive && !is_granted;
            Some(ColumnEntry {
                name: field.name().clone(),
                type_name: type_name(field.data_type()),
                nullable: true,
                comment: Some(column_comment(column, is_hidden)),
                facts: None,
                is_masked: Some(is_hidden || view.as_ref().is_some_and(|view| !view.is_unmasked(field.name()))),
            })
        });
        Ok(columns.collect())
    }

    /// With row policies, the size is unknown, because it depends on hidden rows. Masked columns are not indexed.
    async fn table_storage(&self, table: &str, principal: &Principal) -> Result<TableStorage, Error> {
        let (name, table) = self.visible_table(table, principal)?;
        let view = self.principal_policies(principal).view_of_columns(&[name], table.policy_columns())?;
        let table = table.offered.table.clone();
        let storage = move || match view {
            None => TableStorage { bytes: table.stored_bytes(), indexed_columns: table.indexed_columns() },
            Some(view) => {
                let indexed = table.indexed_columns().into_iter().filter(|column| view.is_unmasked(column));
                TableStorage { bytes: None, indexed_columns: indexed.collect() }
            }
        };
        let storage = tokio::task::spawn_blocking(storage).await;
        storage.map_err(|error| Error::internal(format!("the storage of a table: {error}")))
    }

    fn no_tables_reason(&self) -> &'static str {
        "each one demands an access name that you do not have, or tables is empty"
    }

    async fn log_tables(&self) -> Result<Vec<String>, Error> {
        Ok(if self.kind == DatabaseKind::Journal { self.tables.keys().cloned().collect() } else { Vec::new() })
    }

    /// With row policies, the tag does not show when hidden rows are added.
    async fn rows_version_tag(&self, table: &str, principal: &Principal) -> Result<Option<String>, Error> {
        let Some(columns) = self.version_tag(Some(table), principal).await? else { return Ok(None) };
        if self.policies.fingerprint(principal) != 0 {
            return Ok(Some(columns));
        }
        let table = self.visible_table(table, principal)?.1.offered.table.clone();
        let version = tokio::task::spawn_blocking(move || table.rows_version()).await;
        let version = version.map_err(|error| Error::internal(format!("the version of a table: {error}")))?;
        Ok(Some(version.map_or(columns.clone(), |version| format!("{columns} {version:016x}"))))
    }

    /// Covers row policies, hidden tables and masks.
    fn row_policy_fingerprint(&self, principal: &Principal) -> u64 {
        let visible: Vec<&str> = self.visible_tables(principal).map(|(name, _)| name).collect();
        let hidden = self.tables.keys().filter(|name| !visible.contains(&name.as_str()));
        let hidden = hidden.map(|name| (name.as_str(), HIDDEN));
        let granted = self.grants_sensitive(principal).then_some(("sensitive columns", GRANTED));
        let policies = [("row policies", self.policies.fingerprint(principal))];
        StableHasher::combine_named(policies.into_iter().chain(granted).chain(hidden))
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let reading = self.reading_statement(principal);
        let tables = self.load_tables(statement, &reading)?;
        let session = with_cancellation(self.create_session(&tables, principal), &reading.cancellation);
        // Dropping this future before the plan is complete cancels the functions that run during planning.
        let cancel_on_drop = reading.cancellation.token().clone().drop_guard();
        let worker_pool = self.engine.worker_pool(principal)?;
        let (statement, of_plan) = (statement.clone(), worker_pool.clone());
        let planning = async move {
            let logical = optimize_statement(&statement, &session, &tables).await?;
            build_plan(logical, session, &tables, of_plan, reading.cancellation).await
        };
        let plan = worker_pool.run(planning).await?;
        cancel_on_drop.disarm();
        Ok(Box::new(plan))
    }

    async fn describe(&self, statement: &Statement, principal: &Principal) -> Result<SchemaRef, Error> {
        let tables = self.load_tables(statement, &self.reading_statement(principal))?;
        let session = self.create_session(&tables, principal);
        let statement = statement.clone();
        let describing = async move { describe_statement(&statement, &session, &tables).await };
        self.engine.worker_pool(principal)?.run(describing).await
    }
}

/// The schema in which clients of PostgreSQL expect tables.
const PUBLIC: &str = "public";

/// A table, or the reason why it cannot be read.
type LoadedTable = Result<Arc<dyn TableProvider>, Error>;

/// The tables that the caller of a statement may read.
#[derive(Debug, Clone)]
struct LiveTables {
    database: Arc<str>,
    tables: Arc<BTreeMap<String, LoadedTable>>,
    catalogs: SystemCatalogs,
}

impl LiveTables {
    /// The table that these parts of a name mean.
    fn find(
        &self,
        catalog: Option<&str>,
        schema: Option<&str>,
        table: &str,
    ) -> Option<&Result<Arc<dyn TableProvider>, Error>> {
        let is_own_catalog = catalog.is_none_or(|name| name == CATALOG || *name == *self.database);
        let is_own_schema = schema.is_none_or(|name| name == PUBLIC || *name == *self.database);
        let table = match schema {
            // A quoted name as a whole: "system.processes".
            None => table.strip_prefix(&format!("{}.", self.database)).unwrap_or(table),
            Some(_) => table,
        };
        if is_own_catalog && is_own_schema { self.tables.get(table) } else { None }
    }

    fn find_reference(&self, reference: &TableReference) -> Option<&Result<Arc<dyn TableProvider>, Error>> {
        self.find(reference.catalog(), reference.schema(), reference.table())
    }
}

/// The error for a table that does not exist or is hidden from the caller. `names` are those that the caller may read.
pub(super) fn no_such_table<'a>(name: &str, database: &str, names: impl Iterator<Item = &'a str> + Clone) -> Error {
    let near = nearest_names(name, names.clone());
    let choices = if near.is_empty() { names.map(str::to_owned).collect() } else { near };
    Error::new(ErrorKind::NotFound, format!("there is no table {name:?} in database {database:?}"))
        .with_choices(choices)
}

impl StatementScope for LiveTables {
    fn database(&self) -> &Arc<str> {
        &self.database
    }

    fn catalogs(&self) -> &SystemCatalogs {
        &self.catalogs
    }

    fn has_no_table(&self, reference: &TableReference) -> bool {
        reference.schema().is_none() && self.find_reference(reference).is_none()
    }

    fn columns(&self, reference: &TableReference) -> Result<SchemaRef, Error> {
        match self.find_reference(reference) {
            Some(Ok(table)) => Ok(table.schema()),
            Some(Err(error)) => Err(error.clone()),
            None => {
                let schema = reference.schema().filter(|schema| **schema != *self.database);
                let relation = self.catalogs.relation(schema, reference.table());
                let names = self.tables.keys().map(String::as_str);
                let missing = || no_such_table(reference.table(), &self.database, names);
                relation.map(|relation| relation.schema()).ok_or_else(missing)
            }
        }
    }

    fn provider(&self, catalog: &str, schema: &str, table: &str) -> Option<Arc<dyn TableProvider>> {
        // DataFusion completes names by the schema of the database.
        let named = if *schema == *self.database { None } else { Some(schema) };
        match self.find(Some(catalog), named, table) {
            Some(table) => table.as_ref().ok().cloned(),
            None => self.catalogs.relation(named, table),
        }
    }
}

impl SystemDatabase {
    /// The descriptions of the tables that `principal` may use as functions, by name.
    pub fn functions(&self, principal: &Principal) -> Vec<&SystemTableDescription> {
        self.visible_tables(principal).map(|(_, table)| table.offered.table.description()).collect()
    }

    /// This database with `parameters`, which are those of the table `name`.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, the same whether the function is hidden or absent; `Forbidden` if a row policy
    /// restricts the table.
    pub fn with_parameters(
        &self,
        name: &str,
        parameters: BTreeMap<String, SystemValue>,
        principal: &Principal,
    ) -> Result<Self, Error> {
        let (name, _) = self.visible_table(name, principal)?;
        if self.is_restricted(name, principal) {
            let message = format!("a row policy restricts {name:?} for you, so that it is no function");
            let hint = format!("Read it with the tool sql: SELECT * FROM {}.{name}.", self.name());
            return Err(Error::new(ErrorKind::Forbidden, message).with_hint(hint));
        }
        let mut database = self.clone();
        database.parameters = Arc::new(parameters);
        Ok(database)
    }
}
