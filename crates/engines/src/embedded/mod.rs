//! The embedded engine: DataFusion over files. The data files in a folder are tables.

mod database;
mod engine;
mod files;
mod freshness;
mod function_list;
mod machine;
mod memory;
mod plan;
mod scan;
mod security_barrier;
mod snapshot_store;
mod worker_pools;

pub use database::FileDatabase;
pub use engine::{Engine, EngineOptions};
pub use files::{ColumnType, FileLimits, NumberFormat, RaggedRows, TextEncoding, TextTableOptions, glob_folder};
pub use function_list::{EngineFunction, FunctionKind};
pub(crate) use plan::{
    CATALOG, QueryCancellation, SessionFactory, StatementScope, SystemCatalogs, build_plan, describe_statement,
    find_tables, optimize_statement, to_core_error, with_cancellation,
};
