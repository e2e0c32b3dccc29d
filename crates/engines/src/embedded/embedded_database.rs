//! A database whose tables are files. How long the result of a statement stays valid depends on the current files of
//! its tables, and on the column corrections.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::execution::{FunctionRegistry as _, SessionState};
use datafusion::logical_expr::Volatility;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, Freshness, Plan, PolicyProblem, RowPolicies, TableStorage,
    field_type_name, mentions_current_time, type_name,
};
use tidegate_sql::{SqlDialect, Statement};

use super::engine::Engine;
use super::files::{
    FileLimits, FileSnapshots, FileTable, FileTablesSnapshot, FileVersion, FilesPath, Glob, TableDeclarations,
    TableFile, TableRecorder, TextTableOptions,
};
use super::lookup::{SmallTables, plan_lookup};
use super::plan::{EngineFunction, SessionFactory, SnapshotTables, SystemCatalogs, describe_statement, plan_statement};
use super::query_cancellation::QueryCancellation;
use super::security_barrier::{PrincipalPolicies, check_policies};

/// A database whose tables are the files below the given paths.
///
/// Each call uses the current files, without a restart: it compares the metadata of the files that it needs with that
/// of the last scan, scans the folders again if something has changed, and reads only files that changed.
pub struct EmbeddedDatabase {
    name: Arc<str>,
    engine: Engine,
    kind: DatabaseKind,
    files: Arc<FileSnapshots>,
    sessions: Arc<SessionFactory>,
    policies: RowPolicies,
    small_tables: SmallTables,
}

impl EmbeddedDatabase {
    /// Opens a database called `name` with the files at `paths`: folders, single files, or globs (`data/2024-*.csv`).
    ///
    /// Checks only that the paths exist (for a glob, its folder). Files are read later.
    ///
    /// # Errors
    /// `InvalidArguments` when a path does not exist, when a glob is invalid, or when `paths` is empty.
    pub fn open(name: impl Into<String>, paths: Vec<PathBuf>, engine: &Engine) -> Result<Self, Error> {
        Self::open_with(name, paths, engine, FileLimits::default(), BTreeMap::new())
    }

    /// As [`EmbeddedDatabase::open`], with the given limits, and options for CSV tables and sheets by the table's name.
    ///
    /// # Errors
    /// As [`EmbeddedDatabase::open`].
    pub fn open_with(
        name: impl Into<String>,
        paths: Vec<PathBuf>,
        engine: &Engine,
        limits: FileLimits,
        table_options: BTreeMap<String, TextTableOptions>,
    ) -> Result<Self, Error> {
        let name: Arc<str> = name.into().into();
        if paths.is_empty() {
            let message = format!("the database {name:?} has no path");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let paths = paths.iter().map(|path| parse_path(path)).collect::<Result<Vec<_>, Error>>()?;
        let sessions = SessionFactory::new(&name, engine).map_err(|error| Error::internal(error.to_string()))?;
        Ok(Self {
            files: Arc::new(FileSnapshots::new(paths, limits, TableDeclarations::new(table_options), engine.clone())),
            sessions: Arc::new(sessions),
            engine: engine.clone(),
            policies: RowPolicies::default(),
            small_tables: SmallTables::default(),
            kind: DatabaseKind::Files,
            name,
        })
    }

    /// A database of a kind, with the tables of `source`.
    ///
    /// # Errors
    /// `Internal` when no session can be created.
    pub fn of_source(
        name: impl Into<String>,
        kind: DatabaseKind,
        source: Arc<dyn TableRecorder>,
        engine: &Engine,
    ) -> Result<Self, Error> {
        let name: Arc<str> = name.into().into();
        let sessions = SessionFactory::new(&name, engine).map_err(|error| Error::internal(error.to_string()))?;
        Ok(Self {
            files: Arc::new(FileSnapshots::of_source(source, engine.clone())),
            sessions: Arc::new(sessions),
            engine: engine.clone(),
            policies: RowPolicies::default(),
            small_tables: SmallTables::default(),
            kind,
            name,
        })
    }

    /// Applies `policies` to the tables.
    #[must_use]
    pub fn with_row_policies(self, policies: RowPolicies) -> Self {
        Self { policies, ..self }
    }

    fn principal_policies(&self, principal: &Principal) -> PrincipalPolicies {
        PrincipalPolicies { policies: self.policies.clone(), principal: Arc::new(principal.clone()) }
    }

    fn partition_comment(&self, table: &FileTable) -> &'static str {
        if self.files.is_of_source() || table.delta.is_some() {
            "rows are stored apart by its values"
        } else {
            "from the folder names"
        }
    }

    /// The tables, of which those that `statement` names are as they are now.
    async fn load_tables(&self, statement: &Statement, principal: &Principal) -> Result<SnapshotTables, Error> {
        let requested_at = Instant::now();
        let (snapshot, files) = (self.files.recent_snapshot().await?, self.files.clone());
        let tables = SnapshotTables {
            database: self.name.clone(),
            snapshot,
            files,
            footers: self.sessions.footer_cache(),
            principal_policies: self.principal_policies(principal),
            catalogs: SystemCatalogs::default(),
        };
        let named = tables.named_tables(statement, self.sessions.base());
        let snapshot = self.files.verify(tables.snapshot.clone(), named, requested_at).await?;
        Ok(SnapshotTables { snapshot, ..tables })
    }

    /// The tables, of which the one called `table` is as it is now.
    async fn load_table(&self, table: &str) -> Result<Arc<FileTablesSnapshot>, Error> {
        let requested_at = Instant::now();
        let snapshot = self.files.recent_snapshot().await?;
        let named = snapshot.find(table).and_then(|(_, table)| table.as_ref().ok()).map(|table| vec![table.clone()]);
        self.files.verify(snapshot, named, requested_at).await
    }

    /// Bytes of the rows of small tables that are in memory for lookups.
    pub fn small_table_bytes(&self) -> usize {
        self.small_tables.bytes()
    }

    /// How often a small table was read into memory.
    pub fn small_table_reads(&self) -> u64 {
        self.small_tables.reads()
    }

    /// How often the folders were scanned.
    pub fn folder_scans(&self) -> u64 {
        self.files.walks()
    }

    /// The functions that statements may call, sorted by name.
    pub fn functions(&self) -> Vec<EngineFunction> {
        self.sessions.functions()
    }

    /// The tables with options that have no file now, with a similar name if there is one, those with declared columns
    /// that have no effect, and those with a declared log format that does not read their entries. Scans all folders.
    ///
    /// # Errors
    /// `Unavailable` if no folder can be read.
    pub async fn table_option_problems(&self) -> Result<Vec<String>, Error> {
        let mut problems = self.files.unused_table_options().await?;
        problems.extend(self.files.misread_logs().await?);
        Ok(problems)
    }

    /// The globs of this database that match no file now. Scans their folders.
    pub fn unmatched_globs(&self) -> Vec<String> {
        self.files.unmatched_globs()
    }
}

/// Parses `path` as a folder, a file or a glob. Resolves a relative path against the current directory now, so that a
/// later change of directory has no effect.
fn parse_path(path: &Path) -> Result<FilesPath, Error> {
    let refused =
        |path: &Path, reason: &str| Error::new(ErrorKind::InvalidArguments, format!("{}: {reason}", path.display()));
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let glob = Glob::parse(&whole)?;
    let visible = glob.as_ref().map_or(path, Glob::folder);
    let metadata = std::fs::metadata(visible).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => refused(visible, "no such file or folder"),
        _ => refused(visible, &super::files::io_error_reason(&error)),
    })?;
    match glob {
        Some(glob) if metadata.is_dir() => Ok(FilesPath::Glob(glob)),
        Some(glob) => Err(refused(glob.folder(), "not a folder, so no file in it can match the glob")),
        None => Ok(FilesPath::Plain(whole)),
    }
}

#[async_trait]
impl Database for EmbeddedDatabase {
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
        Ok(check_policies(&self.policies, self.files.recent_snapshot().await?.as_ref()))
    }

    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        Ok(self.principal_policies(principal).catalog(self.files.rescan().await?.as_ref()))
    }

    async fn notes(&self) -> Result<Vec<String>, Error> {
        Ok(self.files.rescan().await?.catalog.notes.clone())
    }

    fn no_tables_reason(&self) -> &'static str {
        match self.kind {
            DatabaseKind::Ingest => {
                "no rows have come in yet; the first ones make a table: tidegate import FILE --to DATABASE.TABLE --create, \
                 or POST /data/DATABASE/TABLE of the server"
            }
            _ => "no CSV, TSV, Parquet, JSON, NDJSON, Arrow, .xlsx or .ods file",
        }
    }

    async fn column_notes(&self) -> Result<Vec<String>, Error> {
        Ok(self.files.rescan().await?.odd_columns())
    }

    /// Those of log files. Reads no file if none has the name of a log.
    async fn log_tables(&self) -> Result<Vec<String>, Error> {
        match self.files.may_have_logs().await? {
            true => {
                let snapshot = self.files.rescan().await?;
                Ok(snapshot.log_tables().into_iter().map(|(name, _)| name.to_owned()).collect())
            }
            false => Ok(Vec::new()),
        }
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let (snapshot, restrictions) = (self.load_table(table).await?, self.principal_policies(principal));
        let table = restrictions.table(&snapshot, table, &self.name)?;
        let view = restrictions.view(&snapshot, &table)?;
        let (fields, positions, notes) = match &view {
            // The notes quote values, which may be hidden.
            Some(view) => (view.schema.fields().clone(), view.positions.clone(), None),
            None => {
                let fields = table.columns().fields().clone();
                let positions = (0..fields.len()).collect();
                (fields, positions, Some(&table.type_notes))
            }
        };
        let of_files = table.schema.file_schema().fields().len();
        // Tools for logs read the JSON of ingested records as text.
        let is_of_source = self.files.is_of_source();
        let type_name = |field: &Field| match is_of_source {
            true => type_name(field.data_type()),
            false => field_type_name(field),
        };
        let columns = fields.iter().zip(positions).map(|(field, position)| {
            let facts = match position >= of_files {
                true => Some(self.partition_comment(&table).to_owned()),
                false => notes.and_then(|notes| notes.get(field.name()).cloned()),
            };
            let is_masked = view.as_ref().is_some_and(|view| !view.is_unmasked(field.name()));
            let described = table.descriptions.get(field.name()).filter(|_| !is_masked);
            let parts: Vec<&str> = facts.iter().chain(described).map(String::as_str).collect();
            ColumnEntry {
                name: field.name().clone(),
                type_name: type_name(field),
                nullable: field.is_nullable(),
                comment: (!parts.is_empty()).then(|| parts.join("; ")),
                facts,
                is_masked: Some(is_masked),
            }
        });
        Ok(columns.collect())
    }

    /// The size of the files. With row policies it is unknown, because it depends on hidden rows.
    async fn table_storage(&self, table: &str, principal: &Principal) -> Result<TableStorage, Error> {
        let (snapshot, restrictions) = (self.load_table(table).await?, self.principal_policies(principal));
        let table = restrictions.table(&snapshot, table, &self.name)?;
        let bytes = match restrictions.view(&snapshot, &table)? {
            Some(_) => None,
            None => Some(table.files.iter().map(|file| file.meta.size).sum()),
        };
        Ok(TableStorage { bytes, indexed_columns: Vec::new() })
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let query_cancellation = QueryCancellation::new(self.engine.shutdown_token());
        // Dropping this future before the plan is complete cancels the functions that run during planning.
        let cancel_on_drop = query_cancellation.token().clone().drop_guard();
        let (tables, sessions) = (self.load_tables(statement, principal).await?, self.sessions.clone());
        let worker_pool = self.engine.worker_pool(principal)?;
        let lookup =
            plan_lookup(statement, &tables, &sessions, &worker_pool, &self.small_tables, &query_cancellation).await;
        if let Some(plan) = lookup {
            return Ok(Box::new(plan));
        }
        let plan = worker_pool
            .run(plan_statement(statement.clone(), tables, sessions, worker_pool.clone(), query_cancellation))
            .await?;
        cancel_on_drop.disarm();
        Ok(Box::new(plan))
    }

    async fn freshness(&self, statement: &Statement, principal: &Principal) -> Freshness {
        let Ok(tables) = self.load_tables(statement, principal).await else { return Freshness::Never };
        compute_freshness(statement, self.sessions.base(), &tables)
    }

    fn row_policy_fingerprint(&self, principal: &Principal) -> u64 {
        self.policies.fingerprint(principal)
    }

    /// Covers the rows and columns of the table's files, or only the columns if `principal` cannot read all rows.
    async fn version_tag(&self, table: Option<&str>, principal: &Principal) -> Result<Option<String>, Error> {
        let snapshot = match table {
            Some(table) => self.load_table(table).await?,
            None => self.files.recent_snapshot().await?,
        };
        Ok(compute_version_tag(&snapshot, table, &self.principal_policies(principal)))
    }

    async fn describe(&self, statement: &Statement, principal: &Principal) -> Result<SchemaRef, Error> {
        let (statement, tables) = (statement.clone(), self.load_tables(statement, principal).await?);
        let sessions = self.sessions.clone();
        let describing = async move {
            let tables = tables.with_catalogs(&statement)?;
            describe_statement(&statement, &sessions.create_session(&tables), &tables).await
        };
        self.engine.worker_pool(principal)?.run(describing).await
    }
}

/// A file that changed within this time may change again without a new modification time.
const UNCHANGED_FOR: Duration = Duration::from_secs(2);

/// Returns how long the result of `statement` over `tables` stays valid: until a file changes, or not at all if it
/// calls a function whose value changes from call to call.
fn compute_freshness(statement: &Statement, session: &SessionState, tables: &SnapshotTables) -> Freshness {
    let functions = statement.functions();
    if mentions_current_time(statement) || !functions.iter().all(|name| is_repeatable(name, session)) {
        return Freshness::Never;
    }
    // The system catalogs change with any table. An error is reported when the statement is planned.
    let Some(mut named) = tables.named_tables(statement, session) else { return Freshness::Never };
    named.sort_by(|left, right| left.name.cmp(&right.name));
    let mut version = DefaultHasher::new();
    for table in named {
        // Reusing a result would reveal whether rows that the principal cannot read have changed.
        let is_restricted = tables.principal_policies.is_restricted(&tables.snapshot, &table.name);
        if is_restricted || !table.files.iter().all(is_settled) {
            return Freshness::Never;
        }
        hash_table(&table, &mut version);
    }
    Freshness::UntilChanged(version.finish())
}

/// Whether `file` would have another version if it changed from now on.
pub(super) fn is_settled(file: &TableFile) -> bool {
    let modified = SystemTime::from(file.meta.last_modified);
    file.version.is_none_or(|version| version.is_settled())
        && !modified.elapsed().is_ok_and(|since| since < UNCHANGED_FOR)
}

/// Computes the version tag of the table called `table`, or of all tables: of the current files and column corrections.
/// For tables that `restrictions` restrict, only of the columns. `None` if the table does not exist.
fn compute_version_tag(
    snapshot: &FileTablesSnapshot,
    table: Option<&str>,
    restrictions: &PrincipalPolicies,
) -> Option<String> {
    let names: Vec<&str> = match table {
        Some(table) => vec![table],
        None => snapshot.catalog.tables.iter().map(|entry| entry.name.as_str()).collect(),
    };
    let mut version = DefaultHasher::new();
    for name in names {
        match snapshot.find(name)? {
            (_, Ok(table)) => match restrictions.view(snapshot, table) {
                Ok(None) => hash_table(table, &mut version),
                Ok(Some(view)) => (&table.name, format!("{:?}", view.schema)).hash(&mut version),
                Err(error) => (&table.name, error.message()).hash(&mut version),
            },
            (name, Err(_)) if restrictions.is_restricted(snapshot, name) => name.hash(&mut version),
            (name, Err(reason)) => (name, reason).hash(&mut version),
        }
    }
    Some(format!("{:016x}", version.finish()))
}

fn hash_table(table: &FileTable, version: &mut DefaultHasher) {
    table.name.hash(version);
    table.columns().fields().hash(version);
    table.recent.version.hash(version);
    for file in table.files.iter() {
        file.meta.location.as_ref().hash(version);
        file.meta.size.hash(version);
        SystemTime::from(file.meta.last_modified).hash(version);
        file.version.map(FileVersion::metadata).hash(version);
    }
}

/// Whether the function called `name` always returns the same value for the same arguments. `false` for unknown
/// functions.
fn is_repeatable(name: &str, session: &SessionState) -> bool {
    if let Ok(function) = session.udf(name) {
        return function.signature().volatility == Volatility::Immutable;
    }
    session.udaf(name).is_ok() || session.udwf(name).is_ok() || session.table_functions().contains_key(name)
}
