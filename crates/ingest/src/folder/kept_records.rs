//! Records of tables that are closed with rows in the log, beside the log.
//!
//! These rows can be neither moved nor forgotten, and the log is deleted in the order of its records. So that it can forget
//! those of all other tables, its segments with rows of such a table are kept in a folder of the table, as links; the
//! segment that the log appends to is copied. The folder, `kept/LOG/TABLE/FIRST-LAST`, has its name once it is complete.
//!
//! A start at which the table can be opened replays them like the log. When its Delta table has the rows, or the table is
//! dropped, the folder of the table is deleted before the log forgets that.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use tidegate_core::private_file;

use super::background::discard_folder;
use super::closed_tables::{TableClosure, unwritable_reason};
use super::options::table_key;
use super::recovery::LOG_FOLDER;
use super::shared::{FolderShared, IngestCounters};
use super::{IngestError, TIDEGATE_FOLDER};
use crate::delta::DeltaError;
use crate::write_ahead_log::{RecoveredRecord, WriteAheadLogError, list_segments, read_log, segment_path};

const KEPT_FOLDER: &str = "kept";
/// How the name of a folder ends that is not complete.
const UNFINISHED: &str = "new";

/// The records beside a log.
#[derive(Debug)]
pub(crate) struct KeptRecords {
    /// By [`table_key`], in the order of the records.
    tables: BTreeMap<String, Vec<KeptPart>>,
}

/// Records of a table that were kept together, with those of other tables among them.
#[derive(Debug, Clone)]
pub(crate) struct KeptPart {
    folder: PathBuf,
    sequences: RangeInclusive<u64>,
}

/// Where a record is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RecordPlace<'a> {
    /// In the log.
    Log,
    /// Beside the log, for the table with this key.
    KeptFor(&'a str),
}

impl KeptRecords {
    /// Those beside the log with the id `application` in the folder of tables `root`.
    pub(crate) fn load(root: &Path, application: &str) -> Result<Self, IngestError> {
        let folder = kept_folder(root, application);
        let mut tables = BTreeMap::new();
        for key in list_names(&folder)? {
            let of_table = folder.join(&key);
            let part =
                |name: String| Some(KeptPart { sequences: parse_sequences(&name)?, folder: of_table.join(name) });
            let mut parts: Vec<KeptPart> = list_names(&of_table)?.into_iter().filter_map(part).collect();
            parts.sort_unstable_by_key(|part| *part.sequences.start());
            tables.insert(key, parts);
        }
        Ok(Self { tables })
    }

    /// The kept records by the key of their table.
    pub(crate) fn tables(&self) -> &BTreeMap<String, Vec<KeptPart>> {
        &self.tables
    }

    /// The last kept record of each table, by its key.
    pub(crate) fn last_sequences(&self) -> BTreeMap<String, u64> {
        let last = |(key, parts): (&String, &Vec<KeptPart>)| Some((key.clone(), *parts.last()?.sequences.end()));
        self.tables.iter().filter_map(last).collect()
    }

    /// Whether what a record has for `table` is read from `source`. It may be in the log and beside it.
    pub(crate) fn is_read_from(&self, source: RecordPlace<'_>, table: &str, sequence: u64) -> bool {
        let key = table_key(table);
        match source {
            RecordPlace::KeptFor(kept) => key == kept,
            RecordPlace::Log => {
                let last = self.tables.get(&key).and_then(|parts| parts.last());
                last.is_none_or(|last| *last.sequences.end() < sequence)
            }
        }
    }
}

impl KeptPart {
    /// Passes the records on, and what is lost of them.
    pub(crate) fn read(
        &self,
        visit: &mut dyn FnMut(RecoveredRecord) -> Result<(), WriteAheadLogError>,
    ) -> Result<(), WriteAheadLogError> {
        let (first, last) = (*self.sequences.start(), *self.sequences.end());
        read_log(&self.folder, last, &mut |record| {
            let (start, end) = match &record {
                RecoveredRecord::Whole { sequence, .. } => (*sequence, *sequence),
                RecoveredRecord::Lost(lost) => (*lost.sequences.start(), *lost.sequences.end()),
            };
            if end < first || start > last { Ok(()) } else { visit(record) }
        })
    }
}

/// Keeps the records `sequences` of a table, which the log with the id `application` has. They follow those that are kept.
///
/// Blocks the thread while files are written.
pub(crate) fn keep_records(
    root: &Path,
    application: &str,
    table: &str,
    sequences: &RangeInclusive<u64>,
) -> Result<(), IngestError> {
    let log = root.join(TIDEGATE_FOLDER).join(LOG_FOLDER);
    let (first_sequences, folder) = (list_segments(&log)?, kept_folder(root, application));
    let of_table = folder.join(table_key(table));
    for name in list_names(&of_table)?.iter().filter(|name| name.ends_with(UNFINISHED)) {
        let unfinished = of_table.join(name);
        std::fs::remove_dir_all(&unfinished).map_err(IngestError::io("remove", &unfinished))?;
    }
    let complete = of_table.join(format!("{:020}-{:020}", sequences.start(), sequences.end()));
    let unfinished = complete.with_extension(UNFINISHED);
    let write = || -> std::io::Result<()> {
        private_file::create_folder(&unfinished)?;
        for first_sequence in segments_with(&first_sequences, sequences) {
            let segment = segment_path(&log, first_sequence);
            let kept = segment_path(&unfinished, first_sequence);
            // Its records are lost.
            if segment.is_dir() {
                continue;
            }
            let is_active = first_sequences.last() == Some(&first_sequence);
            if is_active || std::fs::hard_link(&segment, &kept).is_err() {
                std::fs::copy(&segment, &kept)?;
                File::open(&kept)?.sync_all()?;
            }
        }
        File::open(&unfinished)?.sync_all()?;
        std::fs::rename(&unfinished, &complete)?;
        // The folders above may be new, too.
        of_table.ancestors().take_while(|folder| *folder != root).try_for_each(|folder| File::open(folder)?.sync_all())
    };
    write().map_err(IngestError::io("keep records in", &complete))
}

/// The segments that have some of the records, by their first sequence numbers.
fn segments_with(first_sequences: &[u64], sequences: &RangeInclusive<u64>) -> Vec<u64> {
    let begins_after = first_sequences.partition_point(|first| first <= sequences.end());
    let has_first = first_sequences.partition_point(|first| first <= sequences.start()).saturating_sub(1);
    first_sequences.get(has_first..begins_after).unwrap_or_default().to_vec()
}

fn kept_folder(root: &Path, application: &str) -> PathBuf {
    root.join(TIDEGATE_FOLDER).join(KEPT_FOLDER).join(application)
}

fn parse_sequences(name: &str) -> Option<RangeInclusive<u64>> {
    let (first, last) = name.split_once('-')?;
    Some(first.parse().ok()?..=last.parse().ok()?)
}

/// The names in a folder, which may not exist.
fn list_names(folder: &Path) -> Result<Vec<String>, IngestError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(IngestError::io("list", folder)(error)),
    };
    let names =
        entries.map(|entry| entry.map(|entry| entry.file_name().into_string().ok())).filter_map(Result::transpose);
    names.collect::<Result<_, _>>().map_err(IngestError::io("list", folder))
}

impl FolderShared {
    /// Ends the writes to a table whose Delta table cannot be written, and keeps its records beside the log. The table is
    /// closed if the Delta table cannot be read either. Returns the error of each write to it.
    pub(crate) async fn close_unwritable(&self, key: &str, incarnation: u64, error: &DeltaError) -> IngestError {
        // Writes that were admitted end before, later ones are refused. Nothing is released meanwhile.
        let _commits = self.commits.write().await;
        let _release = self.key_log.lock().await;
        let (closed, name, records) = {
            let mut state = self.state.lock();
            let kept = state.kept.get(key).copied();
            let Some(table) = state.current_table(key, incarnation) else {
                return IngestError::UnknownTable(key.to_owned());
            };
            let name = table.name.clone();
            let closed = match error {
                DeltaError::UnsupportedWriterFeature(_) => {
                    let reason = unwritable_reason(error);
                    table.unwritable = Some(reason.clone());
                    IngestError::TableUnwritable { table: name.clone(), reason }
                }
                _ => {
                    let closure = TableClosure::of_delta_table(&self.path, &name, error);
                    let closed = closure.to_error(&name);
                    table.close(closure);
                    closed
                }
            };
            let records = table.records_after(kept);
            state.version += 1;
            self.version.send_replace(state.version);
            (closed, name, records)
        };
        tracing::error!(database = %self.name, error = %closed, "a table takes no more rows");
        IngestCounters::add(&self.counters.failed_flushes, 1);
        if let Some(records) = records {
            let (root, application, last) = (self.path.clone(), self.application.clone(), *records.end());
            let keep = move || keep_records(&root, &application, &name, &records);
            let kept = tokio::task::spawn_blocking(keep).await.unwrap_or(Err(IngestError::Panicked));
            if let Err(error) = kept {
                tracing::warn!(database = %self.name, %error, "the rows of a closed table remain in the log");
                return closed;
            }
            self.state.lock().kept.insert(key.to_owned(), last);
        }
        if let Some(table) = self.state.lock().current_table(key, incarnation) {
            table.set_kept();
        }
        closed
    }

    /// Deletes the kept records of tables.
    pub(crate) async fn delete_kept_records(&self, keys: Vec<String>) -> Result<(), IngestError> {
        for key in keys {
            let folder = kept_folder(&self.path, &self.application).join(&key);
            let (root, discarded) = (self.path.clone(), folder.clone());
            let discard = tokio::task::spawn_blocking(move || discard_folder(&root, &discarded));
            let discarded = discard.await.map_err(|_| IngestError::Panicked)?;
            discarded.map_err(IngestError::io("remove", &folder))?;
            self.state.lock().kept.remove(&key);
        }
        Ok(())
    }
}
