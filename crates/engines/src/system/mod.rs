//! The system database: live tables whose rows are produced when they are read.
//!
//! A [`LiveTable`] produces rows on a blocking thread and passes them on in batches through a short channel. Columns that
//! a statement does not need are not read. Rows are never stored, and an answer is never cached: each mention of a table
//! in a statement is a reading of its own.
//!
//! A table may demand access names. For callers without them it does not exist. Sensitive columns are masked before
//! they reach the plan, so that no condition or join reveals their values.

mod journal;
mod live_table;
mod postgres;
mod system_database;

pub use journal::JournalTable;
pub use live_table::{ColumnCondition, ColumnTest, LiveTable, MachineTable, ReadContext, RowCallback};
pub use postgres::PostgresTable;
pub use system_database::{OfferedTable, SystemDatabase};
