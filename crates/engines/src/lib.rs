//! The databases that can be asked: embedded (DataFusion over files).
//!
//! Each engine implements [`tidegate_query::Database`] and knows no protocol. DataFusion appears
//! in this crate alone.

pub mod embedded;

pub use embedded::{ColumnType, Engine, EngineOptions, FileDatabase, FileLimits, TextTable, glob_folder};
