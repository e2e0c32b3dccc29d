//! The files of a database, the names of their tables, and its limits.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tidegate_core::{Error, ErrorKind};
use tidegate_query::RowPolicies;
use tidegate_sql::SqlDialect;

const DIALECT: SqlDialect = SqlDialect::Sqlite;
/// The maximum number of files that SQLite can attach to one connection.
const FILES_MAX: usize = 10;

pub(crate) const MAIN_SCHEMA: &str = "main";

#[derive(Debug)]
pub(crate) struct DatabaseFiles {
    /// In the order of the configuration.
    pub(crate) files: Vec<DatabaseFile>,
}

#[derive(Debug)]
pub(crate) struct DatabaseFile {
    /// Absolute, with its last parts as configured: SQLite interprets a path that begins with `file:` as a URI.
    pub(crate) path: PathBuf,
    pub(crate) schema: String,
}

impl DatabaseFiles {
    /// The files at `paths`. A single file has the schema `main`; each of several files has the schema of its stem.
    pub(crate) fn new(database: &str, paths: Vec<PathBuf>) -> Result<Self, Error> {
        let invalid = |message: String| Error::new(ErrorKind::InvalidArguments, message);
        match paths.len() {
            0 => return Err(invalid(format!("the database {database:?} has no file"))),
            count if count > FILES_MAX => {
                let message =
                    format!("the database {database:?} has {count} files; SQLite can attach at most {FILES_MAX}");
                return Err(invalid(message).with_hint("Declare several databases instead."));
            }
            _ => {}
        }
        for path in &paths {
            check_is_file(path)?;
        }
        let is_only = paths.len() == 1;
        let mut schemas = BTreeSet::from([MAIN_SCHEMA.to_owned(), "temp".to_owned()]);
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let path = std::path::absolute(&path).unwrap_or(path);
            let schema = if is_only { MAIN_SCHEMA.to_owned() } else { stem(&path)?.to_owned() };
            if !is_only && !schemas.insert(schema.to_lowercase()) {
                let message = format!("{}: the schema name {schema:?} is already in use", path.display());
                return Err(invalid(message).with_hint(
                    "Each of several files needs its own name without the ending; \"main\" and \"temp\" are reserved by \
                      SQLite.",
                ));
            }
            files.push(DatabaseFile { path, schema });
        }
        Ok(Self { files })
    }

    /// A hash of the state of all files. It changes when any of them, or its write-ahead log, is written.
    pub(crate) fn version(&self) -> io::Result<u64> {
        let mut version = DefaultHasher::new();
        for file in &self.files {
            (FileVersion::read(&file.path)?, read_wal_version(&file.path)).hash(&mut version);
        }
        Ok(version.finish())
    }

    /// Whether tables have bare names, since there is only one file.
    pub(crate) fn is_single(&self) -> bool {
        self.files.len() == 1
    }

    pub(crate) fn display_name(&self, schema: &str, table: &str) -> String {
        if self.is_single() { DIALECT.table_name(&[table]) } else { DIALECT.table_name(&[schema, table]) }
    }
}

/// The file name without the ending. It becomes part of SQL, so it must be valid UTF-8.
fn stem(path: &Path) -> Result<&str, Error> {
    let stem = path.to_str().and(path.file_stem()).and_then(|stem| stem.to_str());
    stem.ok_or_else(|| {
        let message = format!("{}: the path is not valid UTF-8", path.display());
        Error::new(ErrorKind::InvalidArguments, message)
            .with_hint("Rename the file, or declare it as a database of its own.")
    })
}

fn check_is_file(path: &Path) -> Result<(), Error> {
    let reason = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => return Ok(()),
        Ok(_) => "it is not a file".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "no such file".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::new(ErrorKind::InvalidArguments, format!("{}: {reason}", path.display())))
}

/// Distinguishes a file from an earlier file at the same path.
///
/// Reading it never opens the file: closing any handle of it would drop the locks that SQLite holds in this process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FileVersion {
    identity: Option<(u64, u64)>,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FileVersion {
    /// The current version of the file at `path`; follows links.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self { identity: identity(&metadata), bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}

/// `None` if the write-ahead log is absent or empty: readers create and remove empty logs.
fn read_wal_version(path: &Path) -> Option<FileVersion> {
    FileVersion::read(&wal_path(path)).ok().filter(|version| version.bytes > 0)
}

pub(crate) fn wal_path(path: &Path) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push("-wal");
    path.into()
}

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

/// On other systems the standard library has no such identity; size and time have to be enough.
#[cfg(not(unix))]
fn identity(_metadata: &std::fs::Metadata) -> Option<(u64, u64)> {
    None
}

/// The limits of a [`SqliteDatabase`](crate::SqliteDatabase).
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The maximum number of connections, each with its own thread. A query holds a connection from its start to its
    /// last row. Further queries wait for a free connection.
    pub connections_max: usize,
    /// How long a query waits for a file that another program has locked.
    pub busy_timeout: Duration,
    /// How long a query waits for a client that reads no rows. Then the query fails, so that its snapshot does not
    /// block the checkpoints of a writer.
    pub stall_timeout: Duration,
    /// How long an unused connection stays open.
    pub idle_timeout: Duration,
    /// The maximum number of rows of a batch. The first batches are smaller, so that the first rows arrive early.
    pub batch_rows: usize,
    /// The size of values, in bytes, at which a batch is complete, even with fewer rows.
    pub batch_bytes: usize,
    /// The maximum size of one text or blob, and of one row of a table, in bytes. Larger ones are an error.
    pub value_bytes_max: usize,
    /// The page cache of one connection, in bytes, and the size of a sort that stays in memory.
    pub cache_bytes: usize,
    /// The memory that SQLite may use for all connections of the process, in bytes. SQLite has only one such limit:
    /// with several databases, the smallest applies.
    pub memory_bytes: u64,
    /// The maximum age of a cached result; `None` disables the cache.
    pub cached_answer_max_age: Option<Duration>,
    /// Which rows and columns are visible to which callers.
    pub row_policies: RowPolicies,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            connections_max: 4,
            busy_timeout: Duration::from_secs(5),
            stall_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            batch_rows: 8_192,
            batch_bytes: 1 << 20,
            value_bytes_max: 16 << 20,
            cache_bytes: 8 << 20,
            cached_answer_max_age: None,
            memory_bytes: 512 << 20,
            row_policies: RowPolicies::default(),
        }
    }
}
