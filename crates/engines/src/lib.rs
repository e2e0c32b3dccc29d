//! The databases that can be asked: embedded (DataFusion over files), and federated (joins across databases).
//!
//! Each engine implements [`tidegate_query::Database`] and knows no protocol. DataFusion appears
//! in this crate alone.

pub mod embedded;
mod federated;

pub use embedded::{
    ColumnType, Engine, EngineOptions, FileDatabase, FileLimits, NumberFormat, RaggedRows, TextEncoding,
    TextTableOptions, glob_folder,
};
pub use federated::FederatedDatabase;
