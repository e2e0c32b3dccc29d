//! DataFusion engines that run SQL: embedded (over files), federated (joins across databases), network (tables of other
//! nodes) and system (live tables).
//!
//! Each engine implements [`tidegate_query::Database`] and is independent of protocols. Only this crate and the crate
//! of PostgreSQL's SQL depend on DataFusion.

mod column_cast;
pub mod embedded;
mod federated;
mod network;
mod system;

pub use embedded::{
    ColumnRange, ColumnType, EmbeddedDatabase, Engine, EngineOptions, FileLimits, Inference, LogOptionProblem,
    LogTableOptions, NumberFormat, RaggedRows, RecordedFile, RecordedTable, RecordedTables, RowSelect, TableRecorder,
    TextEncoding, TextTableOptions, glob_folder, table_glob,
};
pub use federated::{FederatedDatabase, ResultDatabases};
pub use network::{HeldRows, HeldValues, NetworkDatabase, NetworkIngest, NetworkNode, NetworkOptions, PartialAnswers};
pub use system::{
    ColumnCondition, ColumnTest, JournalTable, LiveTable, MachineTable, OfferedTable, PostgresTable, ReadContext,
    RowCallback, SystemDatabase,
};
