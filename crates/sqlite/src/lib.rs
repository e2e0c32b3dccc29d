//! The engine of SQLite: files opened read-only, rows streamed into Arrow.
//!
//! It stands without the statement policy in front of it: the file is opened for reading, an authorizer lets nothing
//! through but reading, and the bounds are SQLite's own. SQLite's types belong to values and not to columns, so a
//! column of an answer is a union unless the schema makes its type certain.

mod answer;
mod database;
mod files;
mod options;
mod plan;
mod policy_views;
mod pool;
mod session;
mod tables;
mod work_error;

pub use database::SqliteDatabase;
pub use options::SqliteOptions;
