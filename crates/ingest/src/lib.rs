//! Tables that take rows: a write-ahead log, and Delta tables that it is emptied into; and messages of MQTT brokers as rows.
//!
//! - [`IngestFolder`]: a folder of tables, which implements [`WriteTarget`](tidegate_query::WriteTarget).
//! - [`WriteAheadLog`]: the log.
//! - [`delta`]: the Delta tables that it is emptied into.
//! - [`mqtt`]: subscribes to topics of a broker, for any table that takes rows.

mod folder;
pub mod mqtt;
mod write_ahead_log;

pub use folder::{
    IngestCounters, IngestError, IngestFolder, IngestOptions, IngestTableView, OpenedTable, SchemaEvolution,
    TableDeclaration, TableVerification, lost_tables, open_tables, permission_problem, verify_folder, write_problem,
};
pub use tidegate_delta as delta;
pub use write_ahead_log::{WriteAheadLog, WriteAheadLogError, WriteAheadLogOptions};
