//! What a question is: query spec, statement, database trait, executor, formats.
//!
//! An engine implements [`Database`]; a tool makes a [`Statement`] from SQL or from a
//! [`QuerySpec`], and the [`Executor`] streams the rows of its plan into a reply in the caller's
//! format. Knows no engine and no protocol.

mod database;

pub use database::{Catalog, Column, Database, Databases, Plan, Rows, TableEntry, TableStatus};
