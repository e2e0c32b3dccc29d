//! The state of a folder in memory, and how records of the log change it.
//!
//! The state of a table is its Delta table, its rows that are in the log and not in the Delta table yet, and views of both. A
//! view is the table at one moment.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use parking_lot::Mutex;
use tidegate_query::{REJECTS_SUFFIX, rejected_rows_schema};
use tokio::sync::OwnedSemaphorePermit;

use super::IngestError;
use super::closed_tables::{TableClosure, unwritable_reason};
use super::columns::{pad, union};
use super::keys::{KeyTable, StoredKey};
use super::options::{IngestOptions, TableDeclaration, table_key};
use super::storage::TableStorage;
use crate::delta::{DataFile, DeltaError, DeltaSnapshot, DeltaTable};

#[derive(Debug)]
pub(crate) struct FolderState {
    pub(crate) path: PathBuf,
    declarations: BTreeMap<String, Arc<TableDeclaration>>,
    /// Whether a write creates a table that is not declared.
    pub(crate) creates_tables: bool,
    /// The tables by [`table_key`].
    pub(crate) tables: BTreeMap<String, TableState>,
    pub(crate) keys: KeyTable,
    /// Changes with the rows of any table.
    pub(crate) version: u64,
    /// The sequence number of the last record that is part of the state.
    pub(crate) applied_sequence: u64,
    next_incarnation: u64,
    /// The tables with records that are kept beside the log, by key, and the last of these records.
    pub(crate) kept: BTreeMap<String, u64>,
    /// Why no tables are created: a lost record may have created them.
    pub(crate) new_tables_closure: Option<TableClosure>,
    /// No writes begin any more.
    pub(crate) is_closing: bool,
}

/// A write that is in the log.
#[derive(Debug)]
pub(crate) struct AppliedWrite {
    pub(crate) tables: Vec<(String, AppliedRows, Option<OwnedSemaphorePermit>)>,
    pub(crate) key: Option<StoredKey>,
}

impl FolderState {
    /// The state with the declared tables, without rows.
    pub(crate) fn new(
        path: PathBuf,
        tables: &BTreeMap<String, TableDeclaration>,
        creates_tables: bool,
        keys: KeyTable,
    ) -> Self {
        let mut state = Self {
            path,
            declarations: BTreeMap::new(),
            creates_tables,
            tables: BTreeMap::new(),
            keys,
            version: 0,
            applied_sequence: 0,
            next_incarnation: 0,
            kept: BTreeMap::new(),
            new_tables_closure: None,
            is_closing: false,
        };
        state.set_declarations(tables, creates_tables);
        state
    }

    /// Replaces the declarations. Tables that are declared no more stay as they are.
    pub(crate) fn set_declarations(&mut self, tables: &BTreeMap<String, TableDeclaration>, creates_tables: bool) {
        let declared =
            |(name, declaration): (&String, &TableDeclaration)| (table_key(name), Arc::new(declaration.clone()));
        self.declarations = tables.iter().map(declared).collect();
        self.creates_tables = creates_tables;
        for table in self.tables.values_mut() {
            table.set_declaration(declaration(&self.declarations, &table.name));
        }
        for name in tables.keys() {
            self.table_mut(name);
        }
        self.version += 1;
    }

    /// The declaration of a table, which is empty if the owner declared none.
    pub(crate) fn declaration(&self, name: &str) -> Arc<TableDeclaration> {
        declaration(&self.declarations, name)
    }

    /// Whether the owner declared the table.
    pub(crate) fn is_declared(&self, name: &str) -> bool {
        self.declarations.contains_key(&table_key(name))
    }

    /// The table, which is added if it does not exist.
    pub(crate) fn table_mut(&mut self, name: &str) -> &mut TableState {
        match self.tables.entry(table_key(name)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.next_incarnation += 1;
                let declaration = declaration(&self.declarations, name);
                let folder = self.path.join(name);
                let mut table = TableState::new(name.to_owned(), declaration, folder, self.next_incarnation, None);
                table.closure = self.new_tables_closure.clone();
                entry.insert(table)
            }
        }
    }

    /// The table with this incarnation, unless it was dropped.
    pub(crate) fn current_table(&mut self, key: &str, incarnation: u64) -> Option<&mut TableState> {
        self.tables.get_mut(key).filter(|table| table.incarnation == incarnation && table.dropped_at.is_none())
    }

    /// Sets a table that was found on disk, and has the records of the log up to `flushed_sequence`.
    pub(crate) fn insert_stored(&mut self, name: &str, table: DeltaTable, flushed_sequence: u64) {
        self.next_incarnation += 1;
        let snapshot = table.snapshot();
        let (mut declaration, folder) = (self.declaration(name), self.path.join(name));
        if !self.is_declared(name) {
            Arc::make_mut(&mut declaration).partition_by = table.partition_by();
        }
        let delta = Some((table, snapshot));
        let mut table = TableState::new(name.to_owned(), declaration, folder, self.next_incarnation, delta);
        table.flushed_sequence = flushed_sequence;
        self.tables.insert(table_key(name), table);
    }

    /// Makes a write visible.
    pub(crate) fn apply(&mut self, sequence: u64, write: AppliedWrite) {
        self.version += 1;
        let version = self.version;
        for (name, rows, reservation) in write.tables {
            let table = self.table_mut(&name);
            table.version = version;
            table.apply(sequence, rows, reservation);
        }
        if let Some(key) = write.key {
            self.keys.finish(&key.key);
            self.keys.store(StoredKey { sequence, ..key });
        }
        self.applied_sequence = sequence;
    }

    /// Hides a table whose removal is in the log.
    pub(crate) fn drop_table(&mut self, sequence: u64, name: &str) {
        self.version += 1;
        if let Some(table) = self.tables.get_mut(&table_key(name)) {
            table.dropped_at = Some(sequence);
            table.closure = None;
            table.unwritable = None;
            table.is_kept = false;
            table.pending = None;
            table.flushing = None;
            table.release_view();
        }
        self.applied_sequence = sequence;
    }

    /// Removes a dropped table. A declared one is there again, without rows.
    pub(crate) fn forget_table(&mut self, name: &str) {
        self.tables.remove(&table_key(name));
        if self.is_declared(name) {
            self.table_mut(name);
        }
    }

    /// The sequence number up to which no record of the log is needed any more.
    pub(crate) fn releasable_sequence(&self) -> u64 {
        let oldest = self.tables.values().filter_map(TableState::oldest_unflushed).min();
        oldest.map_or(self.applied_sequence, |oldest| oldest - 1)
    }

    /// The tables whose kept records are in their Delta table, or were removed with it.
    pub(crate) fn released_tables(&self) -> Vec<String> {
        let is_released = |(key, last): &(&String, &u64)| match self.tables.get(*key) {
            Some(table) => table.moves_rows() && table.oldest_unflushed().is_none_or(|oldest| oldest > **last),
            None => true,
        };
        self.kept.iter().filter(is_released).map(|(key, _)| key.clone()).collect()
    }

    /// The columns of a table that a write must fit, if it has columns.
    pub(crate) fn admitted_schema(&self, name: &str) -> Option<SchemaRef> {
        match self.tables.get(&table_key(name)) {
            Some(table) => table.admitted_schema.clone(),
            None => self.declaration(name).columns.clone(),
        }
    }
}

fn declaration(declared: &BTreeMap<String, Arc<TableDeclaration>>, name: &str) -> Arc<TableDeclaration> {
    if let Some(declared) = declared.get(&table_key(name)) {
        return declared.clone();
    }
    let columns = name.strip_suffix(REJECTS_SUFFIX).map(|of_table| {
        let stamps = declared.get(&table_key(of_table)).map(|table| table.stamps.as_slice()).unwrap_or_default();
        rejected_rows_schema(stamps.iter().map(|stamp| stamp.column.as_str()))
    });
    Arc::new(TableDeclaration { columns, ..TableDeclaration::default() })
}

/// Dead views in the list of views after which it is cleaned.
const VIEWS_CLEANED_AT: usize = 64;

/// Rows of a table that only the log has.
#[derive(Debug)]
pub(crate) struct LoggedRows {
    /// The records that they may be in, among those of other tables.
    pub(crate) sequences: RangeInclusive<u64>,
    pub(crate) rows: u64,
}

#[derive(Debug)]
pub(crate) struct TableState {
    pub(crate) name: String,
    pub(crate) declaration: Arc<TableDeclaration>,
    /// Distinguishes the table from one of the same name that was dropped.
    pub(crate) incarnation: u64,
    pub(crate) storage: Arc<TableStorage>,
    /// The version of the database that changed the rows last.
    pub(crate) version: u64,
    /// The columns of the rows that are visible. `None` before the first write of a table without declared columns.
    pub(crate) schema: Option<SchemaRef>,
    /// The columns after all writes that were admitted, some of which may not be in the log yet.
    pub(crate) admitted_schema: Option<SchemaRef>,
    pub(crate) snapshot: Option<Arc<DeltaSnapshot>>,
    /// Rows that are being moved to the Delta table, or whose move failed.
    pub(crate) flushing: Option<Arc<PendingRows>>,
    pub(crate) pending: Option<PendingRows>,
    /// The sequence number up to which the Delta table has the records of the log; 0 before the first move.
    pub(crate) flushed_sequence: u64,
    /// The sequence number of the removal. The table is invisible, and its files wait for the end of its views.
    pub(crate) dropped_at: Option<u64>,
    /// Why the table takes and returns no rows.
    pub(crate) closure: Option<TableClosure>,
    /// Why no rows can be written to the Delta table, though it can be read.
    pub(crate) unwritable: Option<String>,
    /// The rows in memory are kept beside the log, which need not have them.
    is_kept: bool,
    /// The first record that stays in the log for a Delta table that cannot be opened, as it could not be kept beside it.
    pub(crate) unkept_since: Option<u64>,
    pub(crate) flushes: u64,
    pub(crate) compactions: u64,
    pub(crate) last_error: Option<String>,
    view: Option<IngestTableView>,
    live_views: Vec<Weak<ViewContent>>,
}

impl TableState {
    pub(crate) fn new(
        name: String,
        declaration: Arc<TableDeclaration>,
        folder: PathBuf,
        incarnation: u64,
        delta: Option<(crate::delta::DeltaTable, Arc<DeltaSnapshot>)>,
    ) -> Self {
        let (delta, snapshot) = delta.unzip();
        let stored = snapshot.as_ref().map(|snapshot| snapshot.schema.clone());
        let feature = snapshot.as_ref().and_then(|snapshot| snapshot.unsupported_writer_feature.clone());
        let unwritable = feature.map(|feature| unwritable_reason(&DeltaError::UnsupportedWriterFeature(feature)));
        let schema = match (stored, &declaration.columns) {
            (Some(stored), Some(declared)) => Some(union(&stored, declared)),
            (stored, declared) => stored.or_else(|| declared.clone()),
        };
        Self {
            storage: Arc::new(TableStorage::new(name.clone(), folder, delta)),
            name,
            declaration,
            incarnation,
            version: 0,
            admitted_schema: schema.clone(),
            schema,
            snapshot,
            flushing: None,
            pending: None,
            flushed_sequence: 0,
            dropped_at: None,
            closure: None,
            unwritable,
            is_kept: false,
            unkept_since: None,
            flushes: 0,
            compactions: 0,
            last_error: None,
            view: None,
            live_views: Vec::new(),
        }
    }

    /// Sets what the owner declares. Declared columns that the table lacks are added.
    fn set_declaration(&mut self, declaration: Arc<TableDeclaration>) {
        for schema in [&mut self.schema, &mut self.admitted_schema] {
            *schema = match (schema.take(), &declaration.columns) {
                (Some(known), Some(declared)) => Some(union(&known, declared)),
                (known, declared) => known.or_else(|| declared.clone()),
            };
        }
        self.declaration = declaration;
        self.view = None;
    }

    /// Makes the rows of a write visible.
    pub(crate) fn apply(&mut self, sequence: u64, rows: AppliedRows, reservation: Option<OwnedSemaphorePermit>) {
        let schema = match &self.schema {
            Some(schema) => union(schema, &rows.schema),
            None => rows.schema.clone(),
        };
        let admitted =
            self.admitted_schema.as_ref().map_or_else(|| schema.clone(), |admitted| union(admitted, &schema));
        self.admitted_schema = Some(admitted);
        self.schema = Some(schema.clone());
        let pending = self.pending.get_or_insert_with(|| PendingRows::new(schema, sequence));
        pending.apply(sequence, rows, reservation);
        self.view = None;
    }

    /// The sequence number of the last record with rows of the table.
    pub(crate) fn last_sequence(&self) -> u64 {
        let flushing = self.flushing.as_ref().map(|rows| rows.last_sequence);
        let pending = self.pending.as_ref().map(|rows| rows.last_sequence);
        pending.or(flushing).unwrap_or(self.flushed_sequence)
    }

    /// The sequence number of the oldest record that only the log has.
    pub(crate) fn oldest_unflushed(&self) -> Option<u64> {
        let waiting = [self.flushing.as_deref(), self.pending.as_ref()].into_iter().flatten();
        let waiting = waiting.filter(|_| !self.is_kept).map(|rows| rows.first_sequence);
        self.dropped_at.into_iter().chain(self.unkept_since).chain(waiting).min()
    }

    /// Notes that the rows in memory are kept beside the log. They stay there only to be read.
    pub(crate) fn set_kept(&mut self) {
        self.is_kept = true;
        if self.closure.is_some() {
            (self.flushing, self.pending) = (None, None);
        }
        // The table takes no more of them, so they must not hold back those of others.
        [self.flushing.as_deref(), self.pending.as_ref()].into_iter().flatten().for_each(PendingRows::free_room);
        self.release_view();
    }

    /// The records that only the log has, and that are after the record `kept`.
    pub(crate) fn records_after(&self, kept: Option<u64>) -> Option<RangeInclusive<u64>> {
        let first = self.oldest_unflushed()?;
        let first = kept.map_or(first, |kept| first.max(kept + 1));
        Some(first..=self.last_sequence()).filter(|records| !records.is_empty())
    }

    /// Whether the table has columns, or is closed with those that it had.
    pub(crate) fn exists(&self) -> bool {
        self.dropped_at.is_none() && (self.schema.is_some() || self.closure.is_some())
    }

    /// Closes the table until the folder is opened again. What keeps rows in the log counts more than lost rows.
    pub(crate) fn close(&mut self, closure: TableClosure) {
        if self.closure.as_ref().is_none_or(TableClosure::moves_rows) {
            self.closure = Some(closure);
        }
    }

    /// Whether the rows that the log has can be moved to the Delta table.
    pub(crate) fn moves_rows(&self) -> bool {
        self.unwritable.is_none() && self.closure.as_ref().is_none_or(TableClosure::moves_rows)
    }

    /// The error of each write to the table, if it takes no rows.
    pub(crate) fn refusal(&self) -> Option<IngestError> {
        let unwritable = || {
            let reason = self.unwritable.clone()?;
            Some(IngestError::TableUnwritable { table: self.name.clone(), reason })
        };
        self.closure.as_ref().map(|closure| closure.to_error(&self.name)).or_else(unwritable)
    }

    /// Why the table is closed or takes no rows, or why the last step of the background task failed.
    pub(crate) fn problem(&self) -> Option<&str> {
        let closure = self.closure.as_ref().map(|closure| closure.reason.as_str());
        closure.or(self.unwritable.as_deref()).or(self.last_error.as_deref())
    }

    /// The rows that only the log has.
    pub(crate) fn logged_rows(&self) -> Vec<LoggedRows> {
        let moving = [self.flushing.as_deref(), self.pending.as_ref()].into_iter().flatten();
        let logged =
            |rows: &PendingRows| LoggedRows { sequences: rows.first_sequence..=rows.last_sequence, rows: rows.rows };
        moving.map(logged).collect()
    }

    /// Whether the rows in the log are many or old enough to be moved.
    pub(crate) fn is_flush_due(&self, options: &IngestOptions) -> bool {
        let is_due = |rows: &PendingRows| {
            rows.rows >= options.flush_rows
                || rows.bytes >= options.flush_bytes
                || rows.since.elapsed() >= options.flush_age
        };
        self.flushing.is_some() || self.pending.as_ref().is_some_and(is_due)
    }

    /// Replaces the Delta table's version, after a commit.
    pub(crate) fn set_snapshot(&mut self, snapshot: Arc<DeltaSnapshot>) {
        self.snapshot = Some(snapshot);
        self.view = None;
    }

    /// Takes the rows that are moved to the Delta table next. Those of a failed move are taken again, as a part of them
    /// may be in the Delta table.
    pub(crate) fn start_flush(&mut self) -> Option<Arc<PendingRows>> {
        if self.flushing.is_none() {
            self.flushing = self.pending.take().map(Arc::new);
            self.view = None;
        }
        self.flushing.clone()
    }

    /// The table as it is now. `None` if it has no columns yet, or is dropped or closed.
    pub(crate) fn view(&mut self) -> Option<IngestTableView> {
        if self.dropped_at.is_some() || self.closure.is_some() {
            return None;
        }
        if let Some(view) = &self.view {
            return Some(view.clone());
        }
        let schema = self.schema.clone()?;
        let mut files = Vec::new();
        let mut batches = Vec::new();
        let moving = [self.flushing.as_deref(), self.pending.as_ref()];
        let moving: Vec<&PendingRows> = moving.into_iter().flatten().collect();
        // Rows before a replacement are invisible.
        let replacement = moving.iter().rposition(|rows| rows.replaces);
        if replacement.is_none() {
            files.extend(self.snapshot.iter().flat_map(|snapshot| snapshot.files.iter().cloned()));
        }
        for rows in moving.iter().skip(replacement.unwrap_or(0)) {
            files.extend(rows.staged.iter().cloned());
            // The columns were checked before the write. A batch that does not fit is left as it is, so that reading it is
            // an error.
            batches.extend(rows.batches.iter().map(|batch| pad(batch, &schema).unwrap_or_else(|_| batch.clone())));
        }
        let view = IngestTableView(Arc::new(ViewContent {
            table: self.name.clone(),
            version: self.version,
            schema,
            folder: self.storage.folder.clone(),
            snapshot: self.snapshot.clone(),
            files,
            batches,
        }));
        if self.live_views.len() >= VIEWS_CLEANED_AT {
            self.live_views.retain(|view| view.strong_count() > 0);
        }
        self.live_views.push(Arc::downgrade(&view.0));
        self.view = Some(view.clone());
        Some(view)
    }

    /// Forgets the view that is kept for the next caller.
    pub(crate) fn release_view(&mut self) {
        self.view = None;
    }

    /// The views that somebody uses.
    pub(crate) fn live_views(&mut self) -> Vec<Arc<ViewContent>> {
        self.live_views.retain(|view| view.strong_count() > 0);
        self.live_views.iter().filter_map(Weak::upgrade).collect()
    }
}

/// So many small batches become one, so that scans do not read a batch of a few rows for each write.
const MERGED_BATCHES: usize = 32;
/// A batch with fewer rows is small. Batches are merged once to this size, and once more to the next.
const SMALL_BATCH_ROWS: [usize; 2] = [1024, 8 * 1024];

/// Rows of a table that were acknowledged, in the order of the log.
#[derive(Debug)]
pub(crate) struct PendingRows {
    /// The columns of the table with these rows.
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    /// Data files in the folder of the table.
    pub(crate) staged: Vec<Arc<DataFile>>,
    /// Whether the rows take the place of those in the Delta table.
    pub(crate) replaces: bool,
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    pub(crate) since: Instant,
    pub(crate) rows: u64,
    /// Bytes in memory.
    pub(crate) bytes: u64,
    /// The room in memory. Freed with the rows.
    reservation: Mutex<Option<OwnedSemaphorePermit>>,
}

/// The rows of one write for one table.
#[derive(Debug)]
pub(crate) struct AppliedRows {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) staged: Vec<Arc<DataFile>>,
    pub(crate) replaces: bool,
    /// Bytes in memory.
    pub(crate) bytes: u64,
}

impl AppliedRows {
    pub(crate) fn rows(&self) -> u64 {
        let in_memory = self.batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        in_memory + self.staged.iter().map(|file| file.rows).sum::<u64>()
    }
}

impl PendingRows {
    /// No rows yet; the write with this sequence number adds the first.
    pub(crate) fn new(schema: SchemaRef, first_sequence: u64) -> Self {
        Self {
            schema,
            batches: Vec::new(),
            staged: Vec::new(),
            replaces: false,
            first_sequence,
            last_sequence: first_sequence,
            since: Instant::now(),
            rows: 0,
            bytes: 0,
            reservation: Mutex::default(),
        }
    }

    /// Leaves the room in memory to other rows, though these stay.
    fn free_room(&self) {
        self.reservation.lock().take();
    }

    /// Adds the rows of a write.
    pub(crate) fn apply(&mut self, sequence: u64, added: AppliedRows, reservation: Option<OwnedSemaphorePermit>) {
        if added.replaces {
            self.batches.clear();
            self.staged.clear();
            self.rows = 0;
            self.bytes = 0;
            self.free_room();
            self.replaces = true;
        }
        self.last_sequence = sequence;
        self.rows += added.rows();
        self.bytes += added.bytes;
        self.schema = union(&self.schema, &added.schema);
        self.staged.extend(added.staged);
        for batch in added.batches {
            self.batches.push(batch);
            SMALL_BATCH_ROWS.iter().for_each(|rows| self.merge_small_batches(*rows));
        }
        match (self.reservation.get_mut(), reservation) {
            // Both come from the semaphore of the folder, so they can be merged.
            (Some(all), Some(new)) => all.merge(new),
            (all @ None, new) => *all = new,
            (Some(_), None) => {}
        }
    }

    fn merge_small_batches(&mut self, rows_max: usize) {
        let small = self.batches.iter().rev().take(MERGED_BATCHES);
        let schema = self.batches.last().map(RecordBatch::schema);
        let is_small = |batch: &&RecordBatch| batch.num_rows() < rows_max && Some(batch.schema()) == schema;
        if small.take_while(is_small).count() < MERGED_BATCHES {
            return;
        }
        let Some(schema) = schema else { return };
        let start = self.batches.len() - MERGED_BATCHES;
        // Without the merge, the rows are the same in more batches.
        if let Some(tail) = self.batches.get(start..)
            && let Ok(merged) = concat_batches(&schema, tail)
        {
            self.batches.truncate(start);
            self.batches.push(merged);
        }
    }
}

/// The rows of a table at one moment: data files, and batches in memory. Each row is in one of them. A clone is cheap.
///
/// The files are not deleted as long as a clone exists.
#[derive(Debug, Clone)]
pub struct IngestTableView(pub(crate) Arc<ViewContent>);

#[derive(Debug)]
pub(crate) struct ViewContent {
    pub(crate) table: String,
    pub(crate) version: u64,
    pub(crate) schema: SchemaRef,
    pub(crate) folder: PathBuf,
    pub(crate) snapshot: Option<Arc<DeltaSnapshot>>,
    pub(crate) files: Vec<Arc<DataFile>>,
    pub(crate) batches: Vec<RecordBatch>,
}

impl IngestTableView {
    /// The name of the table.
    pub fn table(&self) -> &str {
        &self.0.table
    }

    /// The version of the database that changed the rows of the table last. Two views of the table with one version have
    /// the same rows, maybe in other files.
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// Whether both are the same rows in the same files and batches.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    /// The folder to which the paths of the files are relative.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// The Delta table, with which the files are read: its columns are the columns of the files. Its files may be other
    /// ones than [`IngestTableView::files`]. `None` if there are no files.
    pub fn snapshot(&self) -> Option<&Arc<DeltaSnapshot>> {
        self.0.snapshot.as_ref()
    }

    /// The data files. A file may lack columns of the schema, which are null.
    pub fn files(&self) -> &[Arc<DataFile>] {
        &self.0.files
    }

    /// The rows in memory, with all columns of the schema.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.0.batches
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        let in_memory = self.0.batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        in_memory + self.0.files.iter().map(|file| file.rows).sum::<u64>()
    }
}
