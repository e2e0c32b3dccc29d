//! The embedded engine: DataFusion over files. The data files in a folder are tables.

mod comparison_operator;
mod database;
mod decode_budget;
mod engine;
mod files;
mod freshness;
mod lookup;
mod memory;
mod plan;
mod query_cancellation;
mod query_load;
mod row_bytes;
mod row_select;
mod scan;
mod security_barrier;
mod sort_share;
mod spill_folder;
mod worker_pools;

pub use database::FileDatabase;
pub use engine::{Engine, EngineOptions};
pub use files::{
    ColumnRange, ColumnType, FileLimits, Inference, LogOptionProblem, LogTableOptions, NumberFormat, RaggedRows,
    SourceFile, SourceTable, SourceTables, TableSource, TextEncoding, TextTableOptions, glob_folder, table_glob,
};
pub use plan::{EngineFunction, FunctionKind};
pub use row_select::RowSelect;

pub(crate) use plan::{
    CATALOG, EmbeddedPlan, SessionFactory, StatementScope, StatementSession, SystemCatalogs, advise_catalog,
    build_plan, describe_statement, find_tables, optimize_statement, to_core_error, with_cancellation,
};
pub(crate) use query_cancellation::QueryCancellation;
pub(crate) use security_barrier::{PolicyTableColumns, PrincipalPolicies, RowPolicyTable, check_table_policies};
pub(crate) use worker_pools::WorkerPool;
