//! The SQLite engine: opens files read-only and streams rows as Arrow batches.
//!
//! It is safe without the statement policy in front of it. The file is opened read-only, an authorizer rejects every
//! operation except reading, and the limits are SQLite's own. In SQLite, types belong to values and not to columns.
//! Therefore a column of a result is a union, unless the schema guarantees its type.
//!
//! [`SqliteIngest`] writes rows into declared tables, with connections of its own.

mod answer;
mod catalog;
mod database;
mod ingest;
mod plan;
mod policy_views;
mod pool;
mod session;
mod tables;
mod work_error;

pub use database::SqliteDatabase;
pub use ingest::{SqliteIngest, SqliteIngestOptions};
pub use tables::SqliteOptions;
