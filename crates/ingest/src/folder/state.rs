//! The state of a folder in memory, and how records of the log change it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use tidegate_query::{REJECTS_SUFFIX, rejected_rows_schema};
use tokio::sync::OwnedSemaphorePermit;

use super::closed_tables::TableClosure;
use super::keys::{KeyTable, StoredKey};
use super::names::table_key;
use super::options::TableDeclaration;
use super::pending::AppliedRows;
use super::table_state::TableState;
use crate::delta::DeltaTable;

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
