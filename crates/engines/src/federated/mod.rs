//! Federated databases: joins across files, PostgreSQL and SQLite.
//!
//! Each table is read by a statement that its own database plans and runs for the same principal: the same access
//! checks, identity and connections apply. Whatever that database can compute with the same result (filters,
//! projections, limits, joins and aggregates of its own tables) is part of that statement. The embedded engine computes
//! the rest.

mod catalogs;
mod column_conversion;
mod database;
mod exec;
mod member;
mod provider;
mod push;
mod tables;

pub use database::FederatedDatabase;
pub(crate) use exec::{MemberExec, StartOutcome};
pub(crate) use member::{Member, MemberQueryContext, MemberTable};
pub(crate) use push::push_down;
