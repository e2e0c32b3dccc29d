//! The files of a database and its limits, and their tables, views, virtual tables and columns, as SQLite lists them.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, Row};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{ColumnEntry, PolicyColumn, RowPolicies, ValueKind};
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqliteTable {
    /// The schema, which identifies the file.
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) kind: TableKind,
    pub(crate) is_without_rowid: bool,
    pub(crate) is_strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableKind {
    Table,
    View,
    /// Rows that a module produces, such as a full-text index.
    Virtual,
}

/// The tables of all schemas, including policy views.
pub(crate) fn list_all_tables(connection: &Connection) -> rusqlite::Result<Vec<SqliteTable>> {
    let mut statement = connection.prepare(
        "SELECT schema, name, type, wr, strict FROM pragma_table_list \
         WHERE type IN ('table', 'view', 'virtual') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let tables = statement.query_map([], table_from_row)?;
    tables.collect()
}

/// The schemas and names of the tables of a type in SQLite's table list.
pub(crate) fn list_names(connection: &Connection, table_type: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare("SELECT schema, name FROM pragma_table_list WHERE type = ?1")?;
    let names = statement.query_map([table_type], |row| Ok((row.get(0)?, row.get(1)?)))?;
    names.collect()
}

pub(crate) fn table_from_row(row: &Row<'_>) -> rusqlite::Result<SqliteTable> {
    let kind: String = row.get(2)?;
    let kind = match kind.as_str() {
        "view" => TableKind::View,
        "virtual" => TableKind::Virtual,
        _ => TableKind::Table,
    };
    let (is_without_rowid, is_strict) = (row.get(3)?, row.get(4)?);
    Ok(SqliteTable { schema: row.get(0)?, name: row.get(1)?, kind, is_without_rowid, is_strict })
}

pub(crate) fn read_definition(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<String> {
    let schema = quote_identifier(&table.schema);
    let sql = format!("SELECT sql FROM {schema}.sqlite_schema WHERE type = ?1 AND name = ?2");
    let kind = if table.kind == TableKind::View { "view" } else { "table" };
    connection.query_row(&sql, [kind, &table.name], |row| row.get(0))
}

pub(crate) fn quote_identifier(name: &str) -> String {
    SqlDialect::Sqlite.quote_identifier(name)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    declared_type: String,
    is_not_null: bool,
    /// The position in the primary key, from 1; 0 if it is not part of it.
    key_position: i64,
    /// Whether it is an alias of the rowid, and so always an integer.
    is_rowid: bool,
    generated: GeneratedKind,
    pub(crate) references: Option<ForeignKey>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    pub(crate) table: String,
    /// `None` for the primary key.
    pub(crate) column: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GeneratedKind {
    No,
    Virtual,
    Stored,
}

/// The columns of `table`, without the hidden columns of a virtual table.
pub(crate) fn load_columns(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<Vec<TableColumn>> {
    let mut references = load_foreign_keys(connection, table)?;
    let mut statement = connection
        .prepare("SELECT name, type, \"notnull\", pk, hidden FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1")?;
    let rows = statement.query_map([&table.name, &table.schema], |row| {
        let name: String = row.get(0)?;
        Ok(TableColumn {
            references: references.remove(&name.to_lowercase()),
            name,
            declared_type: row.get(1)?,
            is_not_null: row.get(2)?,
            key_position: row.get(3)?,
            is_rowid: false,
            generated: match row.get::<_, i64>(4)? {
                2 => GeneratedKind::Virtual,
                3 => GeneratedKind::Stored,
                _ => GeneratedKind::No,
            },
        })
    })?;
    let mut columns = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    if table.kind == TableKind::Table && !table.is_without_rowid && !has_key_index(connection, table)? {
        // A primary key without an index is the rowid itself.
        columns.iter_mut().for_each(|column| column.is_rowid = column.key_position > 0);
    }
    Ok(columns)
}

fn load_foreign_keys(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<HashMap<String, ForeignKey>> {
    let mut statement =
        connection.prepare("SELECT \"from\", \"table\", \"to\" FROM pragma_foreign_key_list(?1, ?2)")?;
    let rows = statement.query_map([&table.name, &table.schema], |row| {
        let from: String = row.get(0)?;
        Ok((from.to_lowercase(), ForeignKey { table: row.get(1)?, column: row.get(2)? }))
    })?;
    rows.collect()
}

/// The columns by whose values SQLite finds rows: the rowid, and the first column of each index that covers all rows.
pub(crate) fn load_indexed_columns(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<Vec<String>> {
    let columns = load_columns(connection, table)?;
    let mut indexed: Vec<String> =
        columns.into_iter().filter(|column| column.is_rowid).map(|column| column.name).collect();
    let mut statement = connection.prepare(
        "SELECT DISTINCT i.name FROM pragma_index_list(?1, ?2) l, pragma_index_info(l.name, ?2) i \
         WHERE l.partial = 0 AND i.seqno = 0 AND i.name IS NOT NULL",
    )?;
    let names = statement.query_map([&table.name, &table.schema], |row| row.get(0))?;
    for name in names {
        indexed.push(name?);
    }
    Ok(indexed)
}

pub(crate) fn has_key_index(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM pragma_index_list(?1, ?2) WHERE origin = 'pk'";
    connection.query_row(sql, [&table.name, &table.schema], |row| row.get(0))
}

impl TableColumn {
    pub(crate) fn is_generated(&self) -> bool {
        self.generated != GeneratedKind::No
    }

    pub(crate) fn certain_type(&self, table: &SqliteTable) -> Option<SqliteType> {
        if self.is_rowid {
            return Some(SqliteType::Integer);
        }
        // SQLite does not check the type of a virtual generated column.
        if !table.is_strict || self.generated == GeneratedKind::Virtual {
            return None;
        }
        match self.declared_type.to_uppercase().as_str() {
            "INT" | "INTEGER" => Some(SqliteType::Integer),
            "REAL" => Some(SqliteType::Real),
            "TEXT" => Some(SqliteType::Text),
            "BLOB" => Some(SqliteType::Blob),
            _ => None,
        }
    }

    pub(crate) fn describe(self, table: &SqliteTable) -> ColumnEntry {
        // In other tables, SQLite allows null in a primary key, because of an old bug.
        let is_key = self.key_position > 0 && (self.is_rowid || table.is_without_rowid || table.is_strict);
        let mut notes = Vec::new();
        if self.key_position > 0 {
            notes.push("primary key".to_owned());
        }
        if self.generated != GeneratedKind::No {
            notes.push("generated".to_owned());
        }
        notes.extend(self.references.map(|target| match target.column {
            Some(column) => format!("references {}({column})", target.table),
            None => format!("references {}", target.table),
        }));
        let facts = (!notes.is_empty()).then(|| notes.join(", "));
        ColumnEntry {
            nullable: !self.is_not_null && !is_key,
            type_name: if self.declared_type.is_empty() { "any".to_owned() } else { self.declared_type },
            comment: facts.clone(),
            facts,
            is_masked: Some(false),
            name: self.name,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SqliteType {
    Integer,
    Real,
    Text,
    Blob,
    /// Each value has its own type.
    Any,
}

/// The columns for policies; `sources` are the columns that each of them is computed from.
pub(crate) fn policy_columns<'a>(columns: &'a [TableColumn], sources: &'a [Vec<usize>]) -> Vec<PolicyColumn<'a>> {
    let policy_column = |(column, sources): (&'a TableColumn, &'a Vec<usize>)| PolicyColumn {
        name: &column.name,
        kind: declared_value_kind(&column.declared_type),
        reveals: sources,
    };
    columns.iter().zip(sources).map(policy_column).collect()
}

/// SQLite does not enforce the declared type, except that it converts texts to numbers.
fn declared_value_kind(declared: &str) -> ValueKind {
    let declared = declared.to_uppercase();
    let has = |part: &str| declared.contains(part);
    // The order is SQLite's own.
    match () {
        () if has("INT") => ValueKind::Integer,
        () if has("CHAR") || has("CLOB") || has("TEXT") => ValueKind::Text,
        () if has("BLOB") || declared.is_empty() => ValueKind::Any,
        () if has("REAL") || has("FLOA") || has("DOUB") => ValueKind::Number,
        () if has("BOOL") => ValueKind::Boolean,
        () => ValueKind::Any,
    }
}
