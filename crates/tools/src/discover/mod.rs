//! Finding out what there is: databases, tables, columns.

mod catalogs;
pub(crate) mod get_schema;
pub(crate) mod list_databases;
pub(crate) mod list_tables;
mod samples;

pub(crate) use catalogs::{Listing, listings, search};
pub(crate) use samples::{examples, first_rows};
