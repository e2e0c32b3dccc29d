//! Several databases asked as one: joins across files, PostgreSQL and SQLite.
//!
//! Each table is read by a statement to the database it lies in, planned and run by that database for the same
//! principal: the same walls, the same identity, the same connections. What a database can do by itself with the same
//! outcome (filters, projections, limits, joins and aggregates of its own tables) is part of that statement; the rest
//! is done here, by the embedded engine.

mod catalogs;
mod column_conversion;
mod database;
mod exec;
mod member;
mod provider;
mod push;
mod tables;

pub use database::FederatedDatabase;
