//! Opens connections: read-only, with all optional features of SQLite disabled, and with limits for statements.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::hooks::AuthContext;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::authorizer::Authorizer;
use super::{WorkCancellation, functions};
use crate::files::{DatabaseFile, DatabaseFiles, FileVersion, MAIN_SCHEMA, SqliteOptions, wal_path};
use crate::policy_views::PolicyViewCache;
use crate::tables::quote_identifier;
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
