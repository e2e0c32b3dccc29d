//! What an owner declares about a folder and its tables, and their names. A name is the name of a folder too, so it must mean
//! the same on every file system.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{ColumnStamp, REJECTS_SUFFIX, RowTransform};

use crate::delta::{CompactionOptions, PartitionBy, WriterOptions};
use crate::write_ahead_log::WriteAheadLogOptions;

/// The declarations and bounds of a folder.
#[derive(Debug, Clone)]
pub struct IngestOptions {
    /// The declared tables by name.
    pub tables: BTreeMap<String, TableDeclaration>,
    /// Whether a write creates a table that is not declared.
    pub create_tables: bool,
    /// Rows of a table after which they are moved from the log to the Delta table.
    pub flush_rows: u64,
    /// Bytes of a table in memory after which they are moved to the Delta table.
    pub flush_bytes: u64,
    /// The age of a table's oldest row in the log after which its rows are moved to the Delta table.
    pub flush_age: Duration,
    /// Bytes of a write that are kept in memory and in the log. The rows of a larger write go to data files.
    pub inline_bytes_max: usize,
    /// Bytes of rows in memory that no Delta table has yet, of all tables together. Further writes wait.
    pub waiting_bytes_max: usize,
    /// How long a write waits for memory.
    pub wait_max: Duration,
    /// How long the key of a write is remembered.
    pub key_age_max: Duration,
    /// How many keys of writes are remembered. The oldest is forgotten first.
    pub keys_max: usize,
    /// How often compaction, retention and the deletion of unused files run.
    pub maintenance_interval: Duration,
    /// The age after which a file that no version of a table needs is deleted.
    pub vacuum_age: Duration,
    /// Which files are joined.
    pub compaction: CompactionOptions,
    /// The bounds of writers of data files. They share the room on disk.
    pub writer: WriterOptions,
    /// The bounds of the log.
    pub log: WriteAheadLogOptions,
}

impl Default for IngestOptions {
    /// No declared tables; every bound has the value that the documentation names as its default.
    fn default() -> Self {
        Self {
            tables: BTreeMap::new(),
            create_tables: true,
            flush_rows: 1_000_000,
            flush_bytes: 20 << 20,
            flush_age: Duration::from_secs(30),
            inline_bytes_max: 4 << 20,
            waiting_bytes_max: 40 << 20,
            wait_max: Duration::from_secs(30),
            key_age_max: Duration::from_secs(24 * 60 * 60),
            keys_max: 1_000_000,
            maintenance_interval: Duration::from_secs(60),
            vacuum_age: Duration::from_secs(60 * 60),
            compaction: CompactionOptions::default(),
            writer: WriterOptions::default(),
            log: WriteAheadLogOptions::default(),
        }
    }
}

/// What an owner declares about a table.
#[derive(Debug, Clone, Default)]
pub struct TableDeclaration {
    /// The columns. `None` if they are those of the first write.
    pub columns: Option<SchemaRef>,
    /// The columns by which data files are separated.
    pub partition_by: Vec<PartitionBy>,
    /// The age after which rows are removed, by partition. Requires a partition by time.
    pub retention: Option<Duration>,
    /// Which changes of the columns a write may make.
    pub evolve: SchemaEvolution,
    /// Columns whose value is an attribute of the caller.
    pub stamps: Vec<ColumnStamp>,
    /// Computes the rows of the table from those of a body.
    pub transform: Option<Arc<dyn RowTransform>>,
}

/// Which changes of the columns of a table a write may make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SchemaEvolution {
    /// None.
    #[default]
    Strict,
    /// It may add nullable columns.
    AddColumns,
}

/// The bytes of a name, without the suffix of rejected rows.
const NAME_BYTES_MAX: usize = 128;
/// Folders in a Delta table. Readers such as Spark search no table in folders with these names, and take the folder
/// around `_delta_log` for a table.
const RESERVED_NAMES: [&str; 2] = ["_delta_log", "_samples"];

/// Checks the name of a table that is created.
pub(crate) fn check_new_table_name(name: &str) -> Result<(), Error> {
    check_table_name(name)?;
    let stem = name.strip_suffix(REJECTS_SUFFIX).unwrap_or(name);
    if RESERVED_NAMES.contains(&table_key(stem).as_str()) {
        let other = stem.trim_start_matches('_');
        let problem = format!("is that of a folder in a Delta table; choose another one, such as {other:?}");
        return Err(Error::new(ErrorKind::InvalidArguments, format!("the table name {name:?} {problem}")));
    }
    Ok(())
}

/// Checks the name of a table that may exist.
pub(crate) fn check_table_name(name: &str) -> Result<(), Error> {
    let stem = name.strip_suffix(REJECTS_SUFFIX).unwrap_or(name);
    let problem = if stem.is_empty() {
        "is empty".to_owned()
    } else if stem.len() > NAME_BYTES_MAX {
        format!("has {} bytes; a name may have {NAME_BYTES_MAX}", stem.len())
    } else if stem.starts_with('-') {
        "begins with \"-\"".to_owned()
    } else if let Some(other) = stem.chars().find(|character| !is_name_character(*character)) {
        format!("contains {other:?}; a name has letters from a to z, digits, \"_\" and \"-\"")
    } else {
        return Ok(());
    };
    let quoted: String = name.chars().take(NAME_BYTES_MAX).collect();
    Err(Error::new(ErrorKind::InvalidArguments, format!("the table name {quoted:?} {problem}")))
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

/// Tables whose names have the same key would share a folder on some file systems.
pub(crate) fn table_key(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Whether the table has the rejected rows of another one.
pub(crate) fn is_rejects(name: &str) -> bool {
    name.ends_with(REJECTS_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::{check_new_table_name, check_table_name};

    #[test]
    fn names_that_are_folder_names_everywhere_are_accepted() {
        for name in ["a", "Sensors_2", "2024-01", "_x", "sensors__rejects", &"n".repeat(128)] {
            assert!(check_new_table_name(name).is_ok(), "{name}");
        }
        for name in ["", "..", ".x", "a/b", "a\\b", "a b", "ä", "-rf", "a\0", "__rejects", "a.b", &"n".repeat(129)] {
            assert!(check_table_name(name).is_err(), "{name}");
        }
        for name in ["_delta_log", "_Delta_LOG", "_samples", "_delta_log__rejects"] {
            assert!(check_table_name(name).is_ok() && check_new_table_name(name).is_err(), "{name}");
        }
    }
}
