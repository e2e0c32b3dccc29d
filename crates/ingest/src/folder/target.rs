//! A folder as a target of writes.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind, nearest_names};
use tidegate_query::{IngestTable, REJECTS_SUFFIX, TableWrite, WriteMode, WriteRequest, WriteStart, WriteTarget};

use super::columns::{check_new_columns, merge_columns};
use super::error::{conflict, unavailable};
use super::keys::KeyState;
use super::options::{SchemaEvolution, TableDeclaration, check_new_table_name, is_rejects, table_key};
use super::shared::{FolderShared, IngestCounters};
use super::state::{FolderState, TableState};
use super::writer::{FolderWriter, RunningKey, TablePart};
use super::{IngestError, IngestFolder};
use crate::delta::{DataFileWriter, WriterOptions};

/// Tables of one write.
const TABLES_MAX: usize = 100;
/// Bytes of a key.
const KEY_BYTES_MAX: usize = 1024;

#[async_trait]
impl WriteTarget for IngestFolder {
    fn database(&self) -> &str {
        &self.shared.name
    }

    fn tables(&self) -> Vec<String> {
        self.shared.table_names()
    }

    async fn table(&self, table: &str) -> Result<IngestTable, Error> {
        let state = self.shared.state.lock();
        self.shared.check_table(&state, table)?;
        let declaration = state.declaration(table);
        let is_transformed = declaration.transform.is_some();
        Ok(IngestTable {
            name: table.to_owned(),
            schema: state.admitted_schema(table).filter(|_| !is_transformed),
            adds_columns: declaration.evolve == SchemaEvolution::AddColumns,
            stamps: declaration.stamps.clone(),
        })
    }

    async fn begin(&self, request: WriteRequest) -> Result<WriteStart, Error> {
        self.shared.begin(request)
    }

    fn count_rejected(&self, rows: u64) {
        IngestCounters::add(&self.shared.counters.refused_rows, rows);
    }

    async fn drop_table(&self, table: &str) -> Result<(), Error> {
        {
            let state = self.shared.state.lock();
            let key = table_key(table);
            let known = state.tables.get(&key).filter(|known| known.name == table && is_listed(&state, known));
            let Some(known) = known else { return Err(self.shared.unknown_table(&state, table)) };
            // It is unknown which records the table has, so that its removal could not be finished after a crash.
            if let Some(closure) = known.closure.as_ref().filter(|closure| closure.is_of_delta_table()) {
                return Err(closure.to_error(table).for_caller(&self.shared.name));
            }
        }
        self.shared.drop_table(&table_key(table)).await.map_err(|error| error.for_caller(&self.shared.name))
    }
}

impl FolderShared {
    /// The tables that exist or are declared, without those of rejected rows, sorted.
    pub(crate) fn table_names(&self) -> Vec<String> {
        let state = self.state.lock();
        let tables = state.tables.values().filter(|table| is_listed(&state, table) && !is_rejects(&table.name));
        let mut names: Vec<String> = tables.map(|table| table.name.clone()).collect();
        names.sort();
        names
    }

    fn begin(self: &Arc<Self>, request: WriteRequest) -> Result<WriteStart, Error> {
        let WriteRequest { tables, mode, key } = request;
        if tables.is_empty() || tables.len() > TABLES_MAX {
            let message = format!("a write has 1 to {TABLES_MAX} tables; this one has {}", tables.len());
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        if mode == WriteMode::Replace && tables.first().is_some_and(|first| is_rejects(&first.table)) {
            return Err(Error::new(ErrorKind::InvalidArguments, "a table of rejected rows cannot be replaced"));
        }
        let key = match key {
            Some(key) => match self.start_key(key)? {
                Ok(key) => Some(key),
                Err(repeated) => return Ok(repeated),
            },
            None => None,
        };
        let mut state = self.state.lock();
        if state.is_closing {
            // The key is unlocked with the state, as its removal locks it.
            drop(state);
            return Err(IngestError::Closed.for_caller(&self.name));
        }
        let parts = tables.iter().enumerate().map(|(position, write)| {
            let mode = if position == 0 { mode } else { WriteMode::Append };
            self.begin_part(&mut state, write, mode)
        });
        let parts: Result<Vec<_>, Error> = parts.collect();
        drop(state);
        Ok(WriteStart::Writer(Box::new(FolderWriter::new(self.clone(), mode, key, parts?))))
    }

    /// Reserves a key, or returns the answer of the write that had it.
    fn start_key(self: &Arc<Self>, key: String) -> Result<Result<RunningKey, WriteStart>, Error> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            let message = format!("an idempotency key has 1 to {KEY_BYTES_MAX} bytes; this one has {}", key.len());
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let key: Arc<str> = Arc::from(key);
        let known = self.state.lock().keys.start(&key);
        match known {
            KeyState::New => Ok(Ok(RunningKey { shared: self.clone(), key })),
            KeyState::Stored(receipt) => {
                IngestCounters::add(&self.counters.repeated_writes, 1);
                Ok(Err(WriteStart::Repeated(receipt)))
            }
            KeyState::Lost(reason) => {
                let name = &self.name;
                let message = format!(
                    "the key of a write to database \"{name}\" cannot be checked, so nothing was stored: {reason}"
                );
                Err(Error::new(ErrorKind::Unavailable, message))
            }
            KeyState::Running => Err(conflict(
                "a write with this idempotency key is running; repeat it when that one is over".to_owned(),
            )),
        }
    }

    fn begin_part(&self, state: &mut FolderState, write: &TableWrite, mode: WriteMode) -> Result<TablePart, Error> {
        let name = &write.table;
        self.check_table(state, name)?;
        let known = state.tables.get(&table_key(name));
        if let Some(refusal) = known.and_then(TableState::refusal) {
            return Err(refusal.for_caller(&self.name));
        }
        let is_append_only = known.and_then(|table| table.snapshot.as_ref()).is_some_and(|known| known.is_append_only);
        if mode == WriteMode::Replace && is_append_only {
            let message =
                format!("the rows of table \"{name}\" cannot be replaced: it has the setting delta.appendOnly");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let declaration = state.declaration(name);
        let schema = match declaration.transform {
            Some(_) => None,
            None => Some(self.columns_of_write(state, name, &declaration, &write.schema)?),
        };
        let table = state.table_mut(name);
        Ok(TablePart {
            name: name.clone(),
            incarnation: table.incarnation,
            declaration: table.declaration.clone(),
            schema,
            batches: Vec::new(),
            stager: None,
            finished: Vec::new(),
            rows: 0,
        })
    }

    fn columns_of_write(
        &self,
        state: &FolderState,
        name: &str,
        declaration: &TableDeclaration,
        columns: &SchemaRef,
    ) -> Result<SchemaRef, Error> {
        let merged = match state.admitted_schema(name) {
            Some(current) => merge_columns(name, &current, columns, declaration.evolve)?,
            None => check_new_columns(name, columns).map(|()| columns.clone())?,
        };
        self.check_storable(name, &merged, declaration)?;
        Ok(merged)
    }

    /// Refuses columns that no Delta table can have, before rows are acknowledged that could never be moved to it.
    pub(crate) fn check_storable(
        &self,
        name: &str,
        columns: &Schema,
        declaration: &TableDeclaration,
    ) -> Result<(), Error> {
        let options = WriterOptions::default();
        let writer = DataFileWriter::new(&self.path.join(name), columns, &declaration.partition_by, options);
        writer.map(drop).map_err(|error| IngestError::delta(name)(error).for_caller(&self.name))
    }

    /// Checks that the table `name` exists, or that a write may create it.
    fn check_table(&self, state: &FolderState, name: &str) -> Result<(), Error> {
        match state.tables.get(&table_key(name)) {
            Some(table) if table.dropped_at.is_some() => Err(unavailable(format!(
                "table \"{name}\" was dropped, and queries still use its files; try again when they are over"
            ))),
            Some(table) if table.name != name && is_listed(state, table) => Err(self.unknown_table(state, name)),
            Some(table) if is_listed(state, table) => Ok(()),
            _ => self.check_new_table(state, name),
        }
    }

    fn check_new_table(&self, state: &FolderState, name: &str) -> Result<(), Error> {
        // The table of rejected rows exists with its table.
        if let Some(table) = name.strip_suffix(REJECTS_SUFFIX) {
            check_new_table_name(name)?;
            self.check_table(state, table)?;
        } else if state.creates_tables {
            check_new_table_name(name)?;
        } else {
            return Err(self.unknown_table(state, name));
        }
        match &state.new_tables_closure {
            Some(closure) => Err(closure.to_error(name).for_caller(&self.name)),
            None => Ok(()),
        }
    }

    fn unknown_table(&self, state: &FolderState, name: &str) -> Error {
        let listed = state.tables.values().filter(|table| is_listed(state, table) && !is_rejects(&table.name));
        let names: Vec<&str> = listed.map(|table| table.name.as_str()).collect();
        let nearest = nearest_names(name, names.iter().copied());
        let choices = if nearest.is_empty() { names.iter().map(|name| (*name).to_owned()).collect() } else { nearest };
        let quoted: String = name.chars().take(128).collect();
        let message = format!("database \"{}\" has no table {quoted:?} that takes rows", self.name);
        let hint = "Tables are declared under \"tables\" of the database in the configuration.";
        Error::new(ErrorKind::NotFound, message).with_choices(choices).with_hint(hint)
    }
}

/// Whether the table exists or is declared. Others only have a write that begins.
fn is_listed(state: &FolderState, table: &TableState) -> bool {
    table.exists() || table.dropped_at.is_none() && state.is_declared(&table.name)
}
