//! DataFusion over files: everything in a folder is a table.

mod barrier;
mod database;
mod engine;
mod files;
mod freshness;
mod lanes;
mod machine;
mod memory;
mod offered;
mod plan;
mod scan;
mod store;

pub use database::FileDatabase;
pub use engine::{Engine, EngineOptions};
pub use files::{ColumnType, FileLimits, NumberFormat, RaggedRows, TextEncoding, TextTable, glob_folder};
pub use offered::{EngineFunction, FunctionKind};
pub(crate) use plan::{
    CATALOG, Scope, Sessions, SystemCatalogs, Wanted, describe, error_of, optimized, ready, tables_of, watched,
};
