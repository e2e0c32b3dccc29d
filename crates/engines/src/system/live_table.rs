//! A live table, and those of the machine.

use std::ops::ControlFlow;
use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_runtime::Job;
use tidegate_system::{
    ROWS_MAX_DEFAULT, ReadOptions, ReadSummary, SystemError, SystemReader, SystemTable, SystemTableDescription,
    SystemValue,
};
use tokio::runtime::Handle;

use super::conditions::ColumnCondition;

/// Receives rows, and may stop the reading.
pub type RowCallback<'a> = &'a mut dyn FnMut(Vec<SystemValue>) -> ControlFlow<()>;

/// Who reads a table, and in which job.
#[derive(Debug, Clone)]
pub struct ReadContext {
    /// The caller.
    pub principal: Arc<Principal>,
    /// The job that needs the rows.
    pub job: Arc<Job>,
    /// The caller's runtime, for tables whose rows come over the network.
    pub runtime: Handle,
    /// Conditions that all needed rows fulfil. A table may produce other rows, too.
    pub conditions: Vec<ColumnCondition>,
}

/// A table whose rows are produced when it is read.
pub trait LiveTable: Send + Sync + 'static {
    /// The description.
    fn description(&self) -> &SystemTableDescription;

    /// Whether the table exists for `principal`, if that does not only depend on access names.
    fn is_visible_to(&self, _principal: &Principal) -> bool {
        true
    }

    /// The maximum number of rows of one reading. Statements that need more of them fail.
    fn rows_max(&self) -> usize {
        ROWS_MAX_DEFAULT
    }

    /// Notes for the administrator, such as files that cannot be read: one sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The size of the rows on disk, if they are stored. Blocks the thread.
    fn stored_bytes(&self) -> Option<u64> {
        None
    }

    /// The columns by whose values rows are found without reading all others.
    fn indexed_columns(&self) -> Vec<String> {
        Vec::new()
    }

    /// For each column of the description, the positions of the others whose values can be read from it; empty if there
    /// are none. A row policy that masks one of them masks the column too.
    fn revealed_columns(&self) -> Vec<Vec<usize>> {
        Vec::new()
    }

    /// A number that changes when rows are added, if that is cheap to detect. Blocks the thread.
    fn rows_version(&self) -> Option<u64> {
        None
    }

    /// Produces the rows and passes each to `on_row`: a value for each column of the description, in its order. Columns
    /// that `options` do not need are null. Sensitive columns are masked unless `options` grant them. Blocks the
    /// thread, which is not one of an asynchronous runtime.
    ///
    /// # Errors
    /// When the table cannot be read as a whole.
    fn read(&self, context: &ReadContext, options: &ReadOptions, on_row: RowCallback<'_>)
    -> Result<ReadSummary, Error>;
}

/// A table of the machine.
#[derive(Debug)]
pub struct MachineTable {
    table: SystemTable,
    reader: Arc<SystemReader>,
}

impl MachineTable {
    /// All tables of the machine. They share a reader, because CPU percentages compare with its earlier readings.
    pub fn all() -> Vec<Arc<dyn LiveTable>> {
        let reader = Arc::new(SystemReader::new());
        let table = |table: &SystemTable| Arc::new(Self { table: *table, reader: reader.clone() });
        SystemTable::ALL.iter().map(|name| table(name) as Arc<dyn LiveTable>).collect()
    }
}

impl LiveTable for MachineTable {
    fn description(&self) -> &SystemTableDescription {
        self.table.description()
    }

    fn read(&self, _: &ReadContext, options: &ReadOptions, on_row: RowCallback<'_>) -> Result<ReadSummary, Error> {
        self.reader.read(self.table, options, &mut |row| on_row(row)).map_err(|error| to_core_error(&error))
    }
}

fn to_core_error(error: &SystemError) -> Error {
    let kind = match error {
        SystemError::NotAvailable { .. } | SystemError::Unreadable { .. } => ErrorKind::Unavailable,
        SystemError::UnknownColumn { .. } | SystemError::InvalidParameter { .. } => ErrorKind::InvalidArguments,
    };
    Error::new(kind, error.to_string())
}
