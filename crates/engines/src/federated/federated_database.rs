//! A federated database: its tables are those of other databases, and so are its system catalogs, with one schema per
//! member. A database of stored results also has those of its caller.
//!
//! A statement names a table as `member.table`, or `member.schema.table` if the member has schemas or folders.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use futures::future::{join_all, try_join_all};
use futures::{FutureExt, StreamExt, stream};
use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_pgsql::{VisibleObjects, VisibleTable, catalog_name};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, Plan, RESULTS_DATABASE, RESULTS_KIND, ResultTable, StableHasher,
    TableEntry, TableStorage, missing_result_table,
};
use tidegate_sql::{SqlDialect, Statement};
use tokio_util::task::TaskTracker;

use super::member::{Member, MemberExec, MemberQueryContext, MemberTable, load_schema};
use super::push::push_down;
use super::result_tables::LoadedResult;
use crate::embedded::{
    CATALOG, Engine, SessionFactory, StatementScope, StatementSession, SystemCatalogs, advise_catalog, build_plan,
    describe_statement, find_tables, optimize_statement, to_core_error, with_cancellation,
};

/// Maximum time to wait for running member queries at shutdown.
pub(super) const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// Maximum number of tables in a statement. Each may need its own connection.
const TABLES_MAX: usize = 32;

/// A database whose tables are those of its members, named `member.table`.
pub struct FederatedDatabase {
    name: Arc<str>,
    members: BTreeMap<String, Arc<dyn Database>>,
    engine: Engine,
    sessions: Arc<SessionFactory>,
    tasks: TaskTracker,
    /// [`RESULTS_KIND`] for a database of stored results.
    kind: DatabaseKind,
    /// Stored results by their names as tables; only in a database of stored results.
    results: BTreeMap<String, LoadedResult>,
}

impl FederatedDatabase {
    /// Creates a database called `name` with the tables of `members`. It relates to its members like a view to its
    /// tables: callers that may query it can query the members through it with their own identity, even if they may not
    /// query the members directly.
    ///
    /// # Errors
    /// `Internal` when the session cannot be created.
    pub fn new(
        name: impl Into<String>,
        members: impl IntoIterator<Item = Arc<dyn Database>>,
        engine: &Engine,
    ) -> Result<Self, Error> {
        let name: Arc<str> = name.into().into();
        let sessions = SessionFactory::new(&name, engine).map_err(|error| Error::internal(error.to_string()))?;
        let database = Self::with_results(members, [], engine, Arc::new(sessions), TaskTracker::new());
        Ok(Self { name, kind: DatabaseKind::Federated, ..database })
    }

    /// A database of stored results for one caller, with `results` and the tables of `members`. Of several results with
    /// one name, it has the last one.
    pub(super) fn with_results(
        members: impl IntoIterator<Item = Arc<dyn Database>>,
        results: impl IntoIterator<Item = ResultTable>,
        engine: &Engine,
        sessions: Arc<SessionFactory>,
        tasks: TaskTracker,
    ) -> Self {
        let members = members.into_iter().map(|member| (member.name().to_owned(), member)).collect();
        let results = results.into_iter().map(|result| (result.name().to_owned(), LoadedResult::new(result))).collect();
        let (name, kind) = (RESULTS_DATABASE.into(), RESULTS_KIND);
        Self { name, members, engine: engine.clone(), sessions, tasks, kind, results }
    }

    /// The name of a stored result, if `parts` can only be one. Without members, the name of the database is optional.
    fn result_name<'a>(&self, parts: &'a [String]) -> Option<&'a str> {
        if self.kind != RESULTS_KIND {
            return None;
        }
        match parts {
            [name] => match name.split_once('.') {
                Some((database, name)) => database.eq_ignore_ascii_case(&self.name).then_some(name),
                None => self.members.is_empty().then_some(name.as_str()),
            },
            [database, name] => database.eq_ignore_ascii_case(&self.name).then_some(name.as_str()),
            _ => None,
        }
    }

    fn find_result(&self, parts: &[String]) -> Option<&LoadedResult> {
        self.results.get(self.result_name(parts)?)
    }

    async fn find_member(
        &self,
        parts: &[String],
        principal: &Principal,
    ) -> Result<(&Arc<dyn Database>, String), Error> {
        if let Some(name) = self.result_name(parts) {
            return Err(missing_result_table(name, self.results.keys().map(String::as_str)));
        }
        // A single part is a name as the catalog lists it.
        let (member, table) = match parts {
            [whole] => {
                whole.split_once('.').map_or((whole.as_str(), None), |(member, table)| (member, Some(table.to_owned())))
            }
            [member, table @ ..] => {
                let parts: Vec<&str> = table.iter().map(String::as_str).collect();
                let dialect = self.members.get(member).map_or(SqlDialect::DataFusion, |member| member.dialect());
                (member.as_str(), Some(dialect.table_name(&parts)))
            }
            [] => return Err(Error::internal("a table without a name")),
        };
        let Some(table) = table else {
            let message = format!("table {member:?} needs the name of its database: database.table");
            let choices = self.nearest_tables(member, principal).await;
            return Err(Error::new(ErrorKind::NotFound, message).with_choices(choices));
        };
        let found = self.members.get(member).ok_or_else(|| {
            let near = nearest_names(member, self.members.keys().map(String::as_str));
            let choices = if near.is_empty() { self.members.keys().cloned().collect() } else { near };
            let message = format!("there is no database {member:?} in {}", self.name);
            Error::new(ErrorKind::NotFound, message).with_choices(choices)
        })?;
        Ok((found, table))
    }

    /// The full names of the tables whose own names are similar to `name`.
    async fn nearest_tables(&self, name: &str, principal: &Principal) -> Vec<String> {
        let catalogs = load_catalogs(self.members.values(), principal).await;
        let tables = catalogs.iter().flat_map(|(member, catalog)| {
            catalog.tables.iter().map(move |table| (table.name.as_str(), format!("{}.{}", member.name(), table.name)))
        });
        let tables: Vec<(&str, String)> = tables.collect();
        let names: BTreeSet<&str> = tables.iter().map(|(table, _)| *table).collect();
        let near = nearest_names(name, names).into_iter();
        near.flat_map(|near| tables.iter().filter(move |(table, _)| *table == near).map(|(_, full)| full.clone()))
            .collect()
    }

    async fn load_tables(
        &self,
        statement: &Statement,
        principal: &Principal,
        context: MemberQueryContext,
    ) -> Result<MemberTables, Error> {
        let is_missing = |reference: &TableReference| {
            MemberTables::is_bare(reference) && self.find_result(&MemberTables::parts(reference)).is_none()
        };
        let mut references = find_tables(statement, self.sessions.base(), is_missing, &self.name)?;
        let results = self.load_results(&mut references, &context).await?;
        let catalogs = match SystemCatalogs::find_needs(statement) {
            Some(needs) => {
                references.retain(|reference| !is_catalog(&MemberTables::parts(reference), &self.members));
                let objects = self.load_objects(principal, needs.columns).await?;
                SystemCatalogs::new(&needs, objects).map_err(|error| to_core_error(&error, &self.name))?
            }
            None => SystemCatalogs::default(),
        };
        let count = references.len() + results.len();
        if count > TABLES_MAX {
            let message = format!("the statement reads {count} tables; the limit is {TABLES_MAX}");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let context = &context;
        let loading = references.iter().map(|reference| async move {
            let parts = MemberTables::parts(reference);
            let found = self.find_member(&parts, principal).await;
            let (member, name) = found.map_err(|error| advise_catalog(reference, error))?;
            let (schema, member) = (load_schema(member, &name, principal).await?, member.clone());
            let member = Member::Database(member);
            Ok::<_, Error>((parts, MemberTable { member, name, schema, rows: None, context: context.clone() }))
        });
        let mut tables: HashMap<_, _> = try_join_all(loading).await?.into_iter().collect();
        self.add_row_estimates(tables.values_mut().collect(), principal).await;
        let (database, tables, results) = (self.name.clone(), Arc::new(tables), Arc::new(results));
        Ok(MemberTables { database, tables, results, catalogs })
    }

    /// The stored results among `references`, by their names as tables. The others stay.
    async fn load_results(
        &self,
        references: &mut Vec<TableReference>,
        context: &MemberQueryContext,
    ) -> Result<HashMap<String, Arc<dyn TableProvider>>, Error> {
        let mut results = HashMap::new();
        for reference in std::mem::take(references) {
            match self.find_result(&MemberTables::parts(&reference)) {
                Some(result) => drop(results.insert(result.name().to_owned(), result.provider(context).await?)),
                None => references.push(reference),
            }
        }
        Ok(results)
    }

    /// The tables that `principal` may see; with their columns if `with_columns`.
    async fn load_objects(&self, principal: &Principal, with_columns: bool) -> Result<VisibleObjects, Error> {
        let mut tables = load_member_tables(&self.members, principal, with_columns).await?;
        for result in self.results.values() {
            // One with columns that are no columns here has none.
            let columns = if with_columns { result.schema().await.ok() } else { None };
            let columns = columns.map(|columns| columns.fields().to_vec()).unwrap_or_default();
            tables.push(VisibleTable { schema: self.name.to_string(), name: result.name().to_owned(), columns });
        }
        Ok(VisibleObjects::new(&*self.name, &principal.subject, tables))
    }

    async fn add_row_estimates(&self, mut tables: Vec<&mut MemberTable>, principal: &Principal) {
        if tables.len() < 2 {
            return;
        }
        let names: BTreeSet<&str> = tables.iter().map(|table| table.member.name()).collect();
        let members = self.members.values().filter(|member| names.contains(member.name()));
        let catalogs = load_catalogs(members, principal).await;
        for table in &mut tables {
            let catalog = catalogs.iter().find(|(member, _)| member.name() == table.member.name());
            let Some((_, catalog)) = catalog else { continue };
            table.rows = catalog.tables.iter().find(|entry| entry.name == table.name).and_then(|entry| entry.rows);
        }
    }

    fn create_session(&self, tables: &MemberTables, principal: &Principal) -> StatementSession {
        self.sessions.create_session_without_files(principal, Arc::new(tables.clone()))
    }

    fn query_context(&self, principal: &Principal) -> MemberQueryContext {
        MemberQueryContext::new(principal, &self.engine, &self.tasks)
    }
}

#[async_trait]
impl Database for FederatedDatabase {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> DatabaseKind {
        self.kind
    }

    fn members(&self) -> Vec<Arc<dyn Database>> {
        self.members.values().cloned().collect()
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        let mut tables = Vec::new();
        for (member, catalog) in load_catalogs(self.members.values(), principal).await {
            let named =
                |table: &TableEntry| TableEntry { name: format!("{}.{}", member.name(), table.name), ..table.clone() };
            tables.extend(catalog.tables.iter().map(named));
        }
        tables.extend(self.results.values().map(|result| {
            let name = result.name();
            result.entry(if self.members.is_empty() { name.to_owned() } else { format!("{}.{name}", self.name) })
        }));
        tables.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(Arc::new(Catalog::from_tables(tables)))
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        if let Some(result) = self.find_result(&[table.to_owned()]) {
            return result.columns().await;
        }
        let (member, name) = self.find_member(&[table.to_owned()], principal).await?;
        member.columns(&name, principal).await
    }

    async fn table_storage(&self, table: &str, principal: &Principal) -> Result<TableStorage, Error> {
        if self.find_result(&[table.to_owned()]).is_some() {
            return Ok(TableStorage::default());
        }
        let (member, name) = self.find_member(&[table.to_owned()], principal).await?;
        member.table_storage(&name, principal).await
    }

    /// Combines all members. Zero if no member distinguishes principals.
    fn row_policy_fingerprint(&self, principal: &Principal) -> u64 {
        let all = self.members.iter();
        StableHasher::combine_named(all.map(|(name, member)| (name.as_str(), member.row_policy_fingerprint(principal))))
    }

    /// The version tag of the member, or of all members. Unavailable members have none.
    async fn version_tag(&self, table: Option<&str>, principal: &Principal) -> Result<Option<String>, Error> {
        if let Some(table) = table {
            return match self.find_member(&[table.to_owned()], principal).await {
                Ok((member, name)) => member.version_tag(Some(&name), principal).await,
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            };
        }
        let requested = self.members.values().map(|member| member.version_tag(None, principal));
        let version_tags = join_all(requested).await.into_iter().map(|tag| tag.ok().flatten().unwrap_or_default());
        Ok(Some(version_tags.collect::<Vec<String>>().join(" ")))
    }

    async fn rows_version_tag(&self, table: &str, principal: &Principal) -> Result<Option<String>, Error> {
        match self.find_member(&[table.to_owned()], principal).await {
            Ok((member, name)) => member.rows_version_tag(&name, principal).await,
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let context = self.query_context(principal);
        let tables = self.load_tables(statement, principal, context.clone()).await?;
        let session = self.create_session(&tables, principal);
        let session = with_cancellation(session, &context.cancellation);
        // Dropping this future before the plan is complete cancels the functions that run during planning.
        let cancel_on_drop = context.cancellation.token().clone().drop_guard();
        let worker_pool = self.engine.worker_pool(principal)?;
        let (statement, of_plan) = (statement.clone(), worker_pool.clone());
        let planning = async move {
            let logical = optimize_statement(&statement, &session, &tables).await?;
            let logical = push_down(logical, &context).map_err(|error| to_core_error(&error, tables.database()))?;
            build_plan(logical, session, &tables, of_plan, context.cancellation).await
        };
        let plan = worker_pool.run(planning).await?;
        cancel_on_drop.disarm();
        Ok(Box::new(plan))
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
        // Each member is shut down separately, which ends the remaining queries.
        let _ = tokio::time::timeout(CLOSE_WITHIN, self.tasks.wait()).await;
    }
}

/// The tables that a statement names, by their names in the statement.
#[derive(Debug, Clone)]
struct MemberTables {
    database: Arc<str>,
    /// By the parts of their names, the member first.
    tables: Arc<HashMap<Vec<String>, MemberTable>>,
    /// Stored results, by their names.
    results: Arc<HashMap<String, Arc<dyn TableProvider>>>,
    catalogs: SystemCatalogs,
}

impl MemberTables {
    fn parts(reference: &TableReference) -> Vec<String> {
        let catalog = reference.catalog().filter(|catalog| *catalog != CATALOG);
        let parts = [catalog, reference.schema(), Some(reference.table())];
        parts.into_iter().flatten().map(str::to_owned).collect()
    }

    fn is_bare(reference: &TableReference) -> bool {
        reference.schema().is_none() && !reference.table().contains('.')
    }

    /// The stored result that `parts` name, with or without the name of the database.
    fn result(&self, parts: &[&str]) -> Option<&Arc<dyn TableProvider>> {
        let is_own = |database: &str| database.eq_ignore_ascii_case(&self.database);
        let name: &str = match *parts {
            [name] => name.split_once('.').filter(|(database, _)| is_own(database)).map_or(name, |(_, name)| name),
            [database, name] if is_own(database) => name,
            _ => return None,
        };
        self.results.get(name)
    }

    fn catalog_relation(&self, parts: &[&str]) -> Option<Arc<dyn TableProvider>> {
        match parts {
            [name] => self.catalogs.relation(None, name),
            [schema, name] => self.catalogs.relation(Some(schema), name),
            _ => None,
        }
    }
}

impl StatementScope for MemberTables {
    fn database(&self) -> &Arc<str> {
        &self.database
    }

    fn has_no_table(&self, reference: &TableReference) -> bool {
        Self::is_bare(reference) && self.result(&[reference.table()]).is_none()
    }

    fn columns(&self, reference: &TableReference) -> Result<SchemaRef, Error> {
        let parts = Self::parts(reference);
        if let Some(table) = self.tables.get(&parts) {
            return Ok(table.schema.clone());
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let relation = self.result(&parts).cloned().or_else(|| self.catalog_relation(&parts));
        relation.map(|relation| relation.schema()).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no table {:?}", reference.to_string()))
                .with_hint("Write the database name before the table: database.table.")
        })
    }

    fn provider(&self, catalog: &str, schema: &str, table: &str) -> Option<Arc<dyn TableProvider>> {
        let all = [catalog, schema, table];
        let parts = match (catalog == CATALOG, *schema == *self.database) {
            // A name without a schema is looked up in the schema of this database.
            (true, true) => &all[2..],
            (true, false) => &all[1..],
            (false, _) => &all[..],
        };
        let owned: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        match self.tables.get(&owned) {
            Some(table) => Some(Arc::new(table.clone())),
            None => self.result(parts).cloned().or_else(|| self.catalog_relation(parts)),
        }
    }

    fn catalogs(&self) -> &SystemCatalogs {
        &self.catalogs
    }

    fn member_queries(&self, plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
        let mut queries = Vec::new();
        // The visitor never fails.
        let _ = plan.apply(|node| {
            queries.extend(node.downcast_ref::<MemberExec>().map(MemberExec::describe_query));
            Ok(TreeNodeRecursion::Continue)
        });
        queries
    }
}

/// Maximum number of tables whose columns are loaded for one statement.
const CATALOG_TABLES_MAX: usize = 256;
/// Maximum number of tables whose columns are loaded at the same time.
const PARALLEL_MAX: usize = 4;

/// Whether `parts` name a system catalog and not a table of a member.
pub(super) fn is_catalog(parts: &[String], members: &BTreeMap<String, Arc<dyn Database>>) -> bool {
    match parts {
        [name] => catalog_name(None, name).is_some(),
        [schema, name] => !members.contains_key(schema) && catalog_name(Some(schema), name).is_some(),
        _ => false,
    }
}

/// The catalogs of those of `members` that are available. Only the tables of the others are missing.
async fn load_catalogs<'a>(
    members: impl Iterator<Item = &'a Arc<dyn Database>>,
    principal: &Principal,
) -> Vec<(&'a Arc<dyn Database>, Arc<Catalog>)> {
    let loading = members.map(|member| async move { Some((member, member.catalog(principal).await.ok()?)) });
    join_all(loading).await.into_iter().flatten().collect()
}

/// The tables of `members` that `principal` may see; with their columns if `with_columns`.
async fn load_member_tables(
    members: &BTreeMap<String, Arc<dyn Database>>,
    principal: &Principal,
    with_columns: bool,
) -> Result<Vec<VisibleTable>, Error> {
    let catalogs = load_catalogs(members.values(), principal).await;
    let entries: Vec<(&Arc<dyn Database>, &TableEntry)> =
        catalogs.iter().flat_map(|(member, catalog)| catalog.tables.iter().map(|entry| (*member, entry))).collect();
    if with_columns && entries.len() > CATALOG_TABLES_MAX {
        let message = format!(
            "the catalogs would have the columns of {} tables; the limit is {CATALOG_TABLES_MAX}",
            entries.len()
        );
        return Err(Error::new(ErrorKind::TooLarge, message)
            .with_hint("Use the tool get_schema, which describes one table at a time."));
    }
    let loading = entries.into_iter().map(|(member, entry)| load_table(member, entry, principal, with_columns).boxed());
    Ok(stream::iter(loading.collect::<Vec<_>>()).buffered(PARALLEL_MAX).collect().await)
}

async fn load_table(
    member: &Arc<dyn Database>,
    entry: &TableEntry,
    principal: &Principal,
    with_columns: bool,
) -> VisibleTable {
    let mut columns = Vec::new();
    // An unreadable table has no columns.
    if with_columns && let Ok(schema) = load_schema(member, &entry.name, principal).await {
        columns = schema.fields().to_vec();
    }
    VisibleTable { schema: member.name().to_owned(), name: entry.name.clone(), columns }
}
