//! Opens connections: read-only, with all optional features of SQLite disabled, with limits for statements, and with an
//! authorizer that allows reading and nothing else.
//!
//! The authorizer does not depend on the text of a statement. SQLite calls it for each action of a statement, including those of
//! views and virtual tables. Therefore it protects the files even if the parser in front of it was deceived.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::functions::SERIES;
use super::{WorkCancellation, functions};
use crate::policy_views::{MASK_PREFIX, PolicyViewCache, PolicyViews};
use crate::tables::{DatabaseFile, DatabaseFiles, FileVersion, MAIN_SCHEMA, SqliteOptions, quote_identifier, wal_path};
use crate::work_error::OpenFileError;

/// The number of virtual machine instructions between two checks for cancellation: about ten microseconds.
const PROGRESS_INSTRUCTIONS: i32 = 1_000;

const ESCAPED_IN_URI: AsciiSet = NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');

pub(super) type CurrentWork = Arc<Mutex<Option<Arc<WorkCancellation>>>>;

pub(super) struct SqliteConnection {
    pub(super) connection: Connection,
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) view_cache: PolicyViewCache,
    /// The versions of the files, read before they were opened.
    pub(super) versions: Vec<FileVersion>,
    /// The write-ahead logs of files that were opened as immutable. They must not exist.
    pub(super) absent_wals: Vec<PathBuf>,
}

pub(super) fn open(
    files: &DatabaseFiles,
    options: &SqliteOptions,
    current_work: &CurrentWork,
) -> Result<SqliteConnection, OpenFileError> {
    // Read before the files are opened: a file that is replaced in between appears as changed and is opened again.
    let read_version = |file: &DatabaseFile| {
        FileVersion::read(&file.path).map_err(|error| OpenFileError::FileUnavailable(file.schema.clone(), error))
    };
    let versions = files.files.iter().map(read_version).collect::<Result<_, _>>()?;
    let (mut connection, absent_wals) = match files.files.as_slice() {
        [file] => open_single(file, options, current_work)?,
        several => open_several(several, options, current_work)?,
    };
    let refused = |error| OpenFileError::RejectedBySqlite(MAIN_SCHEMA.to_owned(), error);
    let attached = if files.is_single() { 0 } else { i32::try_from(files.files.len()).unwrap_or(i32::MAX) };
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, attached).map_err(refused)?;
    let view_cache = PolicyViewCache::new(&connection, options.row_policies.key()).map_err(refused)?;
    let authorizer = Arc::new(Authorizer::default());
    let hook = authorizer.clone();
    connection.authorizer(Some(move |context: AuthContext<'_>| hook.authorize(context))).map_err(refused)?;
    Ok(SqliteConnection { connection, authorizer, view_cache, versions, absent_wals })
}

fn open_single(
    file: &DatabaseFile,
    options: &SqliteOptions,
    current_work: &CurrentWork,
) -> Result<(Connection, Vec<PathBuf>), OpenFileError> {
    let refused = |error| OpenFileError::RejectedBySqlite(file.schema.clone(), error);
    let open = |path: &Path, flags| -> rusqlite::Result<Connection> {
        let mut connection = Connection::open_with_flags(path, flags)?;
        configure(&mut connection, options, current_work)?;
        read_schema(&connection, MAIN_SCHEMA)?;
        Ok(connection)
    };
    match open(&file.path, open_flags()) {
        Ok(connection) => Ok((connection, Vec::new())),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            let (uri, wal) = immutable_uri(file, error)?;
            let connection = open(Path::new(&uri), open_flags() | OpenFlags::SQLITE_OPEN_URI).map_err(refused)?;
            Ok((connection, vec![wal]))
        }
        Err(error) => Err(refused(error)),
    }
}

/// Opens an empty database in memory and attaches each file under its schema name.
fn open_several(
    files: &[DatabaseFile],
    options: &SqliteOptions,
    current_work: &CurrentWork,
) -> Result<(Connection, Vec<PathBuf>), OpenFileError> {
    let failed = |error| OpenFileError::RejectedBySqlite(MAIN_SCHEMA.to_owned(), error);
    let mut connection = Connection::open_in_memory_with_flags(open_flags()).map_err(failed)?;
    configure(&mut connection, options, current_work).map_err(failed)?;
    let mut absent_wals = Vec::new();
    for file in files {
        let refused = |error| OpenFileError::RejectedBySqlite(file.schema.clone(), error);
        let attach = |path: &str| -> rusqlite::Result<()> {
            connection.execute("ATTACH ?1 AS ?2", [path, &file.schema])?;
            read_schema(&connection, &file.schema)
        };
        match attach(&file.path.to_string_lossy()) {
            Ok(()) => {}
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
                let (uri, wal) = immutable_uri(file, error)?;
                // The failed attempt may already have attached the name.
                let _ = connection.execute("DETACH ?1", [&file.schema]);
                attach(&uri).map_err(refused)?;
                absent_wals.push(wal);
            }
            Err(error) => return Err(refused(error)),
        }
    }
    Ok((connection, absent_wals))
}

fn open_flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// A URI that opens the file as immutable, and the path of its write-ahead log. SQLite cannot otherwise open a database in WAL mode
/// in a read-only folder, since it cannot create the index of the log. An immutable file is read without locks.
/// Therefore this requires that there is no log, and each query checks afterwards that the file did not change.
fn immutable_uri(file: &DatabaseFile, error: rusqlite::Error) -> Result<(String, PathBuf), OpenFileError> {
    // The log is beside the file itself, not beside a link to it.
    let path = std::fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone());
    let wal = wal_path(&path);
    if is_not_empty(&wal) {
        return Err(OpenFileError::WalUnreadable(file.schema.clone()));
    }
    match path.to_str() {
        Some(path) => Ok((format!("file:{}?immutable=1", utf8_percent_encode(path, &ESCAPED_IN_URI)), wal)),
        None => Err(OpenFileError::RejectedBySqlite(file.schema.clone(), error)),
    }
}

/// Whether the file at `path` exists and has content.
pub(super) fn is_not_empty(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0)
}

/// Reads from `schema`: SQLite opens a file at the first read.
pub(super) fn read_schema(connection: &Connection, schema: &str) -> rusqlite::Result<()> {
    let sql = format!("SELECT 1 FROM {}.sqlite_schema LIMIT 1", quote_identifier(schema));
    connection.prepare(&sql)?.raw_query().next()?;
    Ok(())
}

/// Sets the options that must be in effect before the first file is read.
fn configure(connection: &mut Connection, options: &SqliteOptions, current_work: &CurrentWork) -> rusqlite::Result<()> {
    set_switches(connection)?;
    set_limits(connection, options)?;
    functions::replace_builtin_functions(connection, options.value_bytes_max)?;
    functions::add_mathematical_functions(connection)?;
    functions::add_series(connection)?;
    let current_work = current_work.clone();
    let must_stop = move || current_work.lock().as_ref().is_some_and(|cancellation| cancellation.must_stop());
    connection.progress_handler(PROGRESS_INSTRUCTIONS, Some(must_stop.clone()))?;
    let timeout = options.busy_timeout;
    let mut since = Instant::now();
    connection.busy_handler(Some(move |count: i32| {
        if count == 0 {
            since = Instant::now();
        }
        if must_stop() || since.elapsed() >= timeout {
            return false;
        }
        std::thread::sleep(std::time::Duration::from_millis(if count < 10 { 1 } else { 10 }));
        true
    }))?;
    // Last, since some of them read the file, which may be locked.
    set_pragmas(connection, options)
}

fn set_switches(connection: &Connection) -> rusqlite::Result<()> {
    let switches = [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
        // A misspelt column in double quotes is an error, not a text.
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
    ];
    switches.into_iter().try_for_each(|(switch, on)| connection.set_db_config(switch, on).map(|_| ()))
}

fn set_limits(connection: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    let limits = [
        (Limit::SQLITE_LIMIT_LENGTH, i32::try_from(options.value_bytes_max).unwrap_or(i32::MAX)),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (Limit::SQLITE_LIMIT_COLUMN, 2_000),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 500),
        (Limit::SQLITE_LIMIT_PARSER_DEPTH, 1_000),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 200),
        (Limit::SQLITE_LIMIT_VDBE_OP, 1_000_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 127),
        // Matching takes time with the product of the lengths and cannot be interrupted.
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 1_000),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ];
    limits.into_iter().try_for_each(|(limit, value)| connection.set_limit(limit, value).map(|_| ()))
}

fn set_pragmas(connection: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    let pragmas = [
        "query_only = ON".to_owned(),
        format!("cache_size = -{}", (options.cache_bytes / 1_024).max(64)),
        // If a mapped file is truncated, the reading process is killed.
        "mmap_size = 0".to_owned(),
        "cell_size_check = ON".to_owned(),
        format!("hard_heap_limit = {}", options.memory_bytes),
    ];
    for pragma in pragmas {
        // Some of them return a row.
        connection.prepare(&format!("PRAGMA {pragma}"))?.raw_query().next()?;
    }
    Ok(())
}

/// Functions that do more than compute. Most of them exist only in other builds of SQLite.
const DENIED_FUNCTIONS: &[&str] = &[
    "load_extension",
    "readfile",
    "writefile",
    "edit",
    "fts3_tokenizer",
    "sqlite_log",
    "optimize",
    "rtreecheck",
    "fsdir",
    "zipfile",
    "shell_putsnl",
];

/// Functions whose time grows with the product of the lengths of their arguments and cannot be interrupted.
const UNBOUNDED_FUNCTIONS: &[&str] = &["json_patch", "jsonb_patch"];

/// Built-in tables that expose the file itself instead of its rows.
const DENIED_TABLES: &[&str] =
    &["dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode", "tables_used", "fsdir", "zipfile"];

/// Pragmas that full-text search executes while it reads. Each only returns a number.
const ALLOWED_PRAGMAS: &[&str] = &["data_version", "page_size"];

/// The hidden columns of `generate_series`.
const SERIES_ARGUMENT_COLUMNS: &[&str] = &["start", "stop", "step"];

#[derive(Default)]
pub(super) struct Authorizer {
    is_internal: AtomicBool,
    reads: Mutex<BTreeSet<(String, String)>>,
    refused_action: Mutex<Option<String>>,
    /// The visibility of tables for the caller, where policies apply, and the names of the active views.
    active_policy: Mutex<Option<(Arc<PolicyViews>, BTreeSet<String>)>>,
    /// Whether a caller's SQL is being prepared. Modules prepare their own SQL while rows are read.
    is_planning: AtomicBool,
}

impl Authorizer {
    /// Allows everything while the returned scope exists.
    pub(super) fn allow_internal(&self) -> FlagGuard<'_> {
        FlagGuard::new(&self.is_internal)
    }

    /// Forgets the last statement. A caller's SQL is prepared while the returned scope exists.
    pub(super) fn begin_planning(&self) -> FlagGuard<'_> {
        self.reads.lock().clear();
        *self.refused_action.lock() = None;
        FlagGuard::new(&self.is_planning)
    }

    pub(super) fn set_policy_views(&self, policy_views: Option<Arc<PolicyViews>>) {
        *self.active_policy.lock() = policy_views.map(|policy_views| (policy_views, BTreeSet::new()));
    }

    /// Sets the names of the active views, in lower case.
    pub(super) fn set_active_views(&self, names: BTreeSet<String>) {
        if let Some((_, active_views)) = self.active_policy.lock().as_mut() {
            *active_views = names;
        }
    }

    fn policy_refusal(&self, context: &AuthContext<'_>) -> Option<String> {
        let active_policy = self.active_policy.lock();
        let Some((policy_views, active_views)) = active_policy.as_ref() else {
            return mask_function_refusal(&context.action);
        };
        if !self.is_planning.load(Ordering::Acquire) {
            return None;
        }
        let is_of_barrier = context.accessor.is_some_and(|accessor| policy_views.is_security_barrier(accessor));
        match context.action {
            AuthAction::Read { table_name, .. } if is_of_barrier => {
                let is_internal = table_name.to_ascii_lowercase().starts_with("sqlite_");
                is_internal.then(|| format!("reading {table_name} past its row policy"))
            }
            _ if is_of_barrier => None,
            AuthAction::Read { table_name, .. } => {
                let name = table_name.to_ascii_lowercase();
                let bypasses_policy = match context.database_name {
                    // Without a schema, only the name is available: SQLite reports no more for a table of which no
                    // column is read.
                    None => policy_views.has_policy_on_name(&name) && !active_views.contains(&name),
                    Some(schema) => policy_views.has_policy(schema, &name),
                };
                let is_refused = name.starts_with("sqlite_") || bypasses_policy;
                is_refused.then(|| format!("reading {table_name} past its row policy"))
            }
            AuthAction::Function { .. } => mask_function_refusal(&context.action),
            AuthAction::Pragma { pragma_name, .. } => Some(format!("PRAGMA {pragma_name}")),
            _ => None,
        }
    }

    pub(super) fn tables_read(&self) -> BTreeSet<(String, String)> {
        self.reads.lock().clone()
    }

    pub(super) fn last_refusal(&self) -> Option<String> {
        self.refused_action.lock().clone()
    }

    /// Decides about an action. SQLite calls this.
    fn authorize(&self, context: AuthContext<'_>) -> Authorization {
        if self.is_internal.load(Ordering::Acquire) {
            return Authorization::Allow;
        }
        if let AuthAction::Read { table_name, .. } = context.action {
            let schema = context.database_name.unwrap_or_default();
            self.reads.lock().insert((schema.to_owned(), table_name.to_owned()));
        }
        match action_refusal(&context.action).or_else(|| self.policy_refusal(&context)) {
            None => Authorization::Allow,
            Some(subject) => {
                self.refused_action.lock().get_or_insert(subject);
                Authorization::Deny
            }
        }
    }
}

pub(super) struct FlagGuard<'a>(&'a AtomicBool);

impl<'a> FlagGuard<'a> {
    fn new(flag: &'a AtomicBool) -> Self {
        flag.store(true, Ordering::Release);
        Self(flag)
    }
}

impl Drop for FlagGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The forbidden part of `action`, in words for the caller; `None` if the action only reads.
fn action_refusal(action: &AuthAction<'_>) -> Option<String> {
    let is_among = |names: &[&str], name: &str| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    match action {
        AuthAction::Select | AuthAction::Recursive => None,
        // Its arguments are in parentheses only, where they are converted.
        AuthAction::Read { table_name, column_name }
            if table_name.eq_ignore_ascii_case(SERIES) && is_among(SERIES_ARGUMENT_COLUMNS, column_name) =>
        {
            Some(format!("the column {column_name} of {SERIES}"))
        }
        AuthAction::Read { table_name, .. } => {
            is_among(DENIED_TABLES, table_name).then(|| format!("reading {table_name}"))
        }
        AuthAction::Function { function_name } if is_among(UNBOUNDED_FUNCTIONS, function_name) => {
            Some(format!("the function {function_name}, which cannot be interrupted,"))
        }
        AuthAction::Function { function_name } => {
            is_among(DENIED_FUNCTIONS, function_name).then(|| format!("the function {function_name}"))
        }
        AuthAction::Pragma { pragma_name, pragma_value } => {
            let is_harmless = pragma_value.is_none() && is_among(ALLOWED_PRAGMAS, pragma_name);
            (!is_harmless).then(|| format!("PRAGMA {pragma_name}"))
        }
        other => Some(action_name(other).to_owned()),
    }
}

/// Refuses the mask function, which only policy views may call.
fn mask_function_refusal(action: &AuthAction<'_>) -> Option<String> {
    let AuthAction::Function { function_name } = action else { return None };
    let is_mask = function_name.to_ascii_lowercase().starts_with(MASK_PREFIX);
    is_mask.then(|| "an internal function of row policies".to_owned())
}

fn action_name(action: &AuthAction<'_>) -> &'static str {
    match action {
        AuthAction::Attach { .. } => "ATTACH",
        AuthAction::Detach { .. } => "DETACH",
        AuthAction::Insert { .. } => "INSERT",
        AuthAction::Update { .. } => "UPDATE",
        AuthAction::Delete { .. } => "DELETE",
        AuthAction::Transaction { .. } => "controlling the transaction",
        AuthAction::Savepoint { .. } => "SAVEPOINT",
        AuthAction::CreateVtable { .. } => "CREATE VIRTUAL TABLE",
        AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTable { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateTrigger { .. } => "CREATE",
        AuthAction::AlterTable { .. } => "ALTER TABLE",
        AuthAction::Reindex { .. } => "REINDEX",
        AuthAction::Analyze { .. } => "ANALYZE",
        AuthAction::Unknown { .. } => "an unknown action",
        _ => "DROP",
    }
}
