//! Federated databases: joins across files, PostgreSQL and SQLite.
//!
//! Each table is read by a statement that its own database plans and runs for the same principal: the same access
//! checks, identity and connections apply. Whatever that database can compute with the same result (filters,
//! projections, limits, joins and aggregates of its own tables) is part of that statement. The embedded engine computes
//! the rest. Stored results are tables beside those of a database; their rows are read here.

mod column_conversion;
mod federated_database;
mod member;
mod push;
mod result_tables;

pub use federated_database::FederatedDatabase;
pub use result_tables::ResultDatabases;

pub(crate) use member::{Member, MemberExec, MemberQueryContext, MemberTable, StartOutcome};
pub(crate) use push::{LOW_BITS, LOW_MASK, push_down};
