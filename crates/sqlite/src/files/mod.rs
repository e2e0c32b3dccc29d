//! The files of a database, and the names that their tables go by.

mod file_stamp;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use tidegate_core::{Error, ErrorKind};
use tidegate_query::SqlDialect;

pub(crate) use file_stamp::FileStamp;

const DIALECT: SqlDialect = SqlDialect::Sqlite;
/// SQLite attaches no more files than these to one connection.
const FILES_MAX: usize = 10;

/// The schema of the only file.
pub(crate) const MAIN_SCHEMA: &str = "main";

/// The files of a database.
#[derive(Debug)]
pub(crate) struct DatabaseFiles {
    /// The files in the order of the configuration.
    pub(crate) files: Vec<DatabaseFile>,
}

/// One file.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    /// Where it is, as its owner wrote it, but absolute. SQLite takes a path that begins with `file:` for more than a
    /// path; an absolute one never does.
    pub(crate) path: PathBuf,
    /// The schema that its tables are in.
    pub(crate) schema: String,
}

impl DatabaseFiles {
    /// The files at `paths`. A single one is the schema `main`; of several, each is named after its stem.
    ///
    /// # Errors
    /// `InvalidArguments` when there is no file or are too many, one does not exist, or two have the same stem.
    pub(crate) fn new(database: &str, paths: Vec<PathBuf>) -> Result<Self, Error> {
        let invalid = |message: String| Error::new(ErrorKind::InvalidArguments, message);
        match paths.len() {
            0 => return Err(invalid(format!("the database {database:?} has no file"))),
            count if count > FILES_MAX => {
                let message = format!("the database {database:?} has {count} files; SQLite joins at most {FILES_MAX}");
                return Err(invalid(message).with_hint("Make several databases of them."));
            }
            _ => {}
        }
        for path in &paths {
            check_is_file(path)?;
        }
        let is_only = paths.len() == 1;
        let mut taken = BTreeSet::from([MAIN_SCHEMA.to_owned(), "temp".to_owned()]);
        let mut all = Vec::with_capacity(paths.len());
        for path in paths {
            let path = std::path::absolute(&path).unwrap_or(path);
            let schema = if is_only { MAIN_SCHEMA.to_owned() } else { stem(&path)?.to_owned() };
            if !is_only && !taken.insert(schema.to_lowercase()) {
                let message = format!("{}: the name {schema:?} is taken", path.display());
                return Err(invalid(message).with_hint(
                    "Of several files each is named after its file, without the ending; \"main\" and \"temp\" are SQLite's own \
                     names.",
                ));
            }
            all.push(DatabaseFile { path, schema });
        }
        Ok(Self { files: all })
    }

    /// What names the state of all files: another number when any of them, or its log, was written.
    ///
    /// # Errors
    /// When a file cannot be seen.
    pub(crate) fn version(&self) -> io::Result<u64> {
        let mut version = DefaultHasher::new();
        for file in &self.files {
            (FileStamp::read(&file.path)?, file_stamp::read_log_stamp(&file.path)).hash(&mut version);
        }
        Ok(version.finish())
    }

    /// Whether tables go by their bare names, since there is but one file.
    pub(crate) fn is_single(&self) -> bool {
        self.files.len() == 1
    }

    /// The name that callers know a table by.
    pub(crate) fn display_name(&self, schema: &str, table: &str) -> String {
        if self.is_single() { DIALECT.table_name(&[table]) } else { DIALECT.table_name(&[schema, table]) }
    }
}

/// The name of several files' schemas, which goes into SQL and so must be text.
fn stem(path: &Path) -> Result<&str, Error> {
    let stem = path.to_str().and(path.file_stem()).and_then(|stem| stem.to_str());
    stem.ok_or_else(|| {
        let message = format!("{}: the path is not valid UTF-8", path.display());
        Error::new(ErrorKind::InvalidArguments, message).with_hint("Such a file can only be opened by itself.")
    })
}

fn check_is_file(path: &Path) -> Result<(), Error> {
    let reason = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => return Ok(()),
        Ok(_) => "this is no file".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "no such file".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::new(ErrorKind::InvalidArguments, format!("{}: {reason}", path.display())))
}
