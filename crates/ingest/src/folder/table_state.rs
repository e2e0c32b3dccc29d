//! The state of one table: its Delta table, its rows in the log, and views of both.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use arrow::datatypes::SchemaRef;
use tokio::sync::OwnedSemaphorePermit;

use super::closed_tables::TableClosure;
use super::columns::{pad, union};
use super::options::{IngestOptions, TableDeclaration};
use super::pending::{AppliedRows, PendingRows};
use super::storage::TableStorage;
use super::view::{IngestTableView, ViewContent};
use crate::delta::DeltaSnapshot;

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
            unkept_since: None,
            flushes: 0,
            compactions: 0,
            last_error: None,
            view: None,
            live_views: Vec::new(),
        }
    }

    /// Sets what the owner declares. Declared columns that the table lacks are added.
    pub(crate) fn set_declaration(&mut self, declaration: Arc<TableDeclaration>) {
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
        let flushing = self.flushing.as_ref().map(|rows| rows.first_sequence);
        let pending = self.pending.as_ref().map(|rows| rows.first_sequence);
        self.dropped_at.into_iter().chain(self.unkept_since).chain(flushing).chain(pending).min()
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
        self.closure.as_ref().is_none_or(TableClosure::moves_rows)
    }

    /// Why the table is closed, or why the last step of the background task failed.
    pub(crate) fn problem(&self) -> Option<&str> {
        let closure = self.closure.as_ref().map(|closure| closure.reason.as_str());
        closure.or(self.last_error.as_deref())
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
