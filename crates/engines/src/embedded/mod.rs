//! The embedded engine: DataFusion over files. The data files in a folder are tables.

mod decode_budget;
mod embedded_database;
mod engine;
mod files;
mod lookup;
mod memory;
mod plan;
mod query_cancellation;
mod row_bytes;
mod row_select;
mod scan;
mod security_barrier;

pub use embedded_database::EmbeddedDatabase;
pub use engine::{Engine, EngineOptions};
pub use files::{
    ColumnRange, ColumnType, FileLimits, Inference, LogOptionProblem, LogTableOptions, NumberFormat, RaggedRows,
    RecordedFile, RecordedTable, RecordedTables, TableRecorder, TextEncoding, TextTableOptions, glob_folder,
    table_glob,
};
pub use plan::{EngineFunction, FunctionKind};
pub use row_select::RowSelect;

pub(crate) use engine::WorkerPool;
pub(crate) use plan::{
    CATALOG, EmbeddedPlan, SessionFactory, StatementScope, StatementSession, SystemCatalogs, advise_catalog,
    build_plan, describe_statement, find_tables, optimize_statement, to_core_error, with_cancellation,
};
pub(crate) use query_cancellation::QueryCancellation;
pub(crate) use row_bytes::{COLLECTED_BYTES_MAX, cut_rows};
pub(crate) use security_barrier::{PolicyTableColumns, PrincipalPolicies, RowPolicyTable, check_table_policies};
