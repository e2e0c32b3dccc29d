//! Discovery of databases, tables and columns.

mod catalogs;
pub(crate) mod get_schema;
pub(crate) mod list_databases;
pub(crate) mod list_tables;
mod samples;

pub(crate) use catalogs::{DatabaseListing, filter_tables, list_catalogs};
pub(crate) use samples::{fetch_examples, read_first_rows};
