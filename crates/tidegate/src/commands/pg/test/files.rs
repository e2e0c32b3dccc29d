//! The test files that the command line names.

use std::path::{Path, PathBuf};

use crate::command_error::CommandError;

/// Bytes of a test file at most.
const BYTES_MAX: u64 = 16 << 20;

/// A test file that was read.
pub(super) struct SqlTestFile {
    /// As the reader finds it.
    pub(super) name: String,
    pub(super) text: String,
}

/// Reads `paths`; a folder stands for the SQL files in it, in the order of their names.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<SqlTestFile>, CommandError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            for path in list_sql_files(path)? {
                files.push(read_file(&path)?);
            }
        } else {
            files.push(read_file(path)?);
        }
    }
    Ok(files)
}

fn list_sql_files(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let unreadable = |error| CommandError::Usage(format!("cannot read {}: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "sql") && path.is_file() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(CommandError::Usage(format!("there is no *.sql file in {}", folder.display())));
    }
    paths.sort();
    Ok(paths)
}

fn read_file(path: &Path) -> Result<SqlTestFile, CommandError> {
    let name = path.display().to_string();
    let unreadable = |error: std::io::Error| CommandError::Usage(format!("cannot read {name}: {error}"));
    if std::fs::metadata(path).map_err(unreadable)?.len() > BYTES_MAX {
        return Err(CommandError::Usage(format!(
            "{name} is larger than a test file may be, which is {} MiB",
            BYTES_MAX >> 20
        )));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    Ok(SqlTestFile { name, text })
}
