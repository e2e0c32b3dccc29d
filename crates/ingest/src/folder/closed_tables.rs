//! Tables that are closed, because a part of their rows is damaged. All others go on.
//!
//! Lost records are noted in the folder `damaged`, in a file for each table, because the log forgets its records: the
//! rows that it still has move to the Delta table as usual. Beside the files are copies of the damaged segments. The
//! owner accepts a loss by deleting the file while the folder is closed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_core::private_file;

use super::options::table_key;
use super::{IngestError, TIDEGATE_FOLDER};
use crate::delta::{DeltaError, DeltaSnapshot};
use crate::write_ahead_log::LostRecords;

/// The folder of what is known of losses.
const DAMAGED_FOLDER: &str = "damaged";
/// The name of the file for tables that a lost record may have created. No table has such a name.
const NEW_TABLES: &str = "new tables";
const SUFFIX: &str = "json";

/// What is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DamagedPart {
    /// A record of the log, whose rows are lost.
    Record,
    /// A data file that the log names.
    DataFile,
    /// The Delta table, or it has features that are not supported.
    DeltaTable,
}

/// Why a table is closed.
#[derive(Debug, Clone)]
pub(crate) struct TableClosure {
    pub(crate) part: DamagedPart,
    /// What is damaged, and what the owner can do.
    pub(crate) reason: String,
}

impl TableClosure {
    /// The closure of a table in the folder `root` whose Delta table cannot be opened or written.
    pub(crate) fn of_delta_table(root: &Path, table: &str, error: &DeltaError) -> Self {
        let error = without_root(root, &error.to_string());
        let reason = format!(
            "{error}; undo what another program has changed, or move {table} out of the folder of the database, and \
             restart the server; until then, rows that are in no data file yet are kept in {TIDEGATE_FOLDER}"
        );
        Self { part: DamagedPart::DeltaTable, reason }
    }

    /// Whether the rows that the log has can be moved to the Delta table, as far as this closure is concerned.
    pub(crate) fn moves_rows(&self) -> bool {
        self.part == DamagedPart::Record
    }

    pub(crate) fn is_of_delta_table(&self) -> bool {
        self.part == DamagedPart::DeltaTable
    }

    /// The error of each operation on `table`.
    pub(crate) fn to_error(&self, table: &str) -> IngestError {
        IngestError::TableClosed { table: table.to_owned(), reason: self.reason.clone() }
    }
}

/// Why no rows can be written to `table`, if they cannot. It can be read.
pub fn write_problem(table: &str, snapshot: &DeltaSnapshot) -> Option<String> {
    let feature = snapshot.unsupported_writer_feature.clone()?;
    let reason = unwritable_reason(&DeltaError::UnsupportedWriterFeature(feature));
    Some(IngestError::TableUnwritable { table: table.to_owned(), reason }.to_string())
}

/// Why a table takes no rows whose Delta table has a rule for writers that is not supported. `feature` is its error.
pub(crate) fn unwritable_reason(feature: &DeltaError) -> String {
    format!(
        "{feature}; its rows can be read; undo what another program has changed and restart the server, or drop the \
         table; until then, rows that are in no data file yet are kept in {TIDEGATE_FOLDER}"
    )
}

/// The tables that have lost rows.
#[derive(Debug)]
pub(crate) struct LostRows {
    root: PathBuf,
    /// By the key of the table, or [`NEW_TABLES`].
    tables: BTreeMap<String, TableLoss>,
}

/// The loss of one table, as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TableLoss {
    pub(crate) table: String,
    /// The sequence number of the last record that is lost.
    sequence: u64,
    pub(crate) reason: String,
}

impl LostRows {
    /// What is known of the folder of tables `root`.
    pub(crate) fn load(root: &Path) -> Result<Self, IngestError> {
        let folder = damaged_folder(root);
        let mut tables = BTreeMap::new();
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { root: root.to_owned(), tables });
            }
            Err(error) => return Err(IngestError::io("list", &folder)(error)),
        };
        for entry in entries {
            let path = entry.map_err(IngestError::io("list", &folder))?.path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let Some(name) = name.filter(|_| path.extension().is_some_and(|suffix| suffix == SUFFIX)) else { continue };
            let content = std::fs::read(&path).map_err(IngestError::io("read", &path))?;
            // The file alone closes the table, whatever became of its content.
            let loss = serde_json::from_slice(&content).unwrap_or_else(|_| TableLoss {
                table: name.to_owned(),
                sequence: u64::MAX,
                reason: format!("rows are lost; {}", advice(name)),
            });
            tables.insert(table_key(name), loss);
        }
        Ok(Self { root: root.to_owned(), tables })
    }

    /// Notes that `table` has lost rows of the record `sequence`.
    pub(crate) fn add(&mut self, table: &str, sequence: u64, problem: &str) {
        let loss = self.tables.entry(table_key(table)).or_insert_with(|| TableLoss {
            table: table.to_owned(),
            sequence,
            reason: format!("{problem}; {}", advice(table)),
        });
        loss.sequence = loss.sequence.max(sequence);
    }

    /// Notes that the record `sequence` may have created tables.
    pub(crate) fn add_new_tables(&mut self, sequence: u64, problem: &str) {
        self.add(NEW_TABLES, sequence, problem);
    }

    /// Forgets losses of `table` before the record `sequence`, which removes or replaces all of its rows.
    pub(crate) fn forget(&mut self, table: &str, sequence: u64) {
        let key = table_key(table);
        if self.tables.get(&key).is_some_and(|loss| loss.sequence < sequence) {
            self.tables.remove(&key);
        }
    }

    /// The tables that exist and have lost rows.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &TableLoss> {
        self.tables.iter().filter(|(key, _)| *key != NEW_TABLES).map(|(_, loss)| loss)
    }

    /// Why no tables can be created.
    pub(crate) fn new_tables(&self) -> Option<&TableLoss> {
        self.tables.get(NEW_TABLES)
    }

    /// Writes what is known, before the log forgets it.
    pub(crate) fn store(&self) -> Result<(), IngestError> {
        let before = Self::load(&self.root)?;
        for loss in self.tables.values().filter(|loss| !before.tables.values().any(|known| known == *loss)) {
            let folder = damaged_folder(&self.root);
            private_file::create_folder(&folder).map_err(IngestError::io("create", &folder))?;
            let path = loss_file(&self.root, &loss.table);
            let temporary = path.with_extension("new");
            // Strings and numbers always have a JSON form.
            let content = serde_json::to_vec_pretty(loss).unwrap_or_default();
            private_file::create(&temporary)
                .and_then(|mut file| file.write_all(&content).and_then(|()| file.sync_all()))
                .and_then(|()| std::fs::rename(&temporary, &path))
                .and_then(|()| File::open(&folder)?.sync_all())
                .map_err(IngestError::io("write", &path))?;
        }
        let stale = before.tables.iter().filter(|(key, _)| !self.tables.contains_key(*key));
        for (_, loss) in stale {
            let path = loss_file(&self.root, &loss.table);
            Self::delete(&self.root, &loss.table).map_err(IngestError::io("remove", &path))?;
        }
        Ok(())
    }

    /// Forgets the loss of a table that is removed.
    pub(crate) fn delete(root: &Path, table: &str) -> std::io::Result<()> {
        match std::fs::remove_file(loss_file(root, table)) {
            Ok(()) => File::open(damaged_folder(root))?.sync_all(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Keeps a copy of a damaged segment. The log deletes its own one when it needs the other records no more, but puts a
    /// folder in its place aside.
    pub(crate) fn keep_copy(&self, segment: &Path) {
        if segment.is_dir() {
            return;
        }
        let folder = damaged_folder(&self.root);
        let Some(copy) = segment.file_name().map(|name| folder.join(name)) else { return };
        let copied = match copy.try_exists() {
            Ok(false) => private_file::create_folder(&folder).and_then(|()| std::fs::copy(segment, &copy)).map(drop),
            known => known.map(drop),
        };
        if let Err(error) = copied {
            tracing::warn!(segment = %segment.display(), %error, "a damaged segment of the log could not be copied");
        }
    }

    /// What is wrong with `lost`, without the part of the path that callers need not know.
    pub(crate) fn describe(&self, lost: &LostRecords, rows: Option<u64>) -> String {
        let LostRecords { file, offset, problem, sequences, .. } = lost;
        let file = file.strip_prefix(&self.root).unwrap_or(file).display();
        let (first, last) = (sequences.start(), sequences.end());
        let records = match (first == last, rows) {
            (true, Some(1)) => format!("the record {first} of the log, with 1 row, is lost"),
            (true, Some(rows)) => format!("the record {first} of the log, with {rows} rows, is lost"),
            (true, None) => format!("the record {first} of the log is lost"),
            (false, _) => format!("the records {first} to {last} of the log are lost"),
        };
        format!("{records}: {file} is damaged at byte {offset} ({problem})")
    }
}

/// The tables of the folder `root` that have lost rows, and why they are closed. For a process that only reads them.
///
/// # Errors
/// `Io` if the folder cannot be read.
pub fn lost_tables(root: &Path) -> Result<BTreeMap<String, String>, IngestError> {
    let lost = LostRows::load(root)?;
    Ok(lost.tables().map(|loss| (loss.table.clone(), loss.reason.clone())).collect())
}

/// A text for callers, who need not know where the folder `root` is.
pub(crate) fn without_root(root: &Path, text: &str) -> String {
    text.replace(&format!("{}/", root.display()), "")
}

fn damaged_folder(root: &Path) -> PathBuf {
    root.join(TIDEGATE_FOLDER).join(DAMAGED_FOLDER)
}

fn loss_file(root: &Path, table: &str) -> PathBuf {
    damaged_folder(root).join(format!("{}.{SUFFIX}", table_key(table)))
}

/// What the owner can do about a loss.
fn advice(table: &str) -> String {
    let file = format!("{TIDEGATE_FOLDER}/{DAMAGED_FOLDER}/{}.{SUFFIX}", table_key(table));
    let drop = if table == NEW_TABLES { "" } else { "drop the table, " };
    format!(
        "restore the folder of the database from a backup, {drop}or accept the loss: stop the server, delete the file \
         {file} in the folder of the database, and start the server"
    )
}
