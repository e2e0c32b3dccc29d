//! The engine of PostgreSQL: rows streamed into Arrow behind three walls.
//!
//! The driver appears in this crate alone. The way of a call: a connection is lent ([`PostgresDatabase`]), a
//! transaction begins as the caller's role, the statement is prepared, its rows are decoded as they come, the
//! transaction ends, the connection goes back.

mod away;
mod behind_pooler;
mod catalog;
mod composites;
pub mod connect;
mod database;
mod error;
mod explain;
pub mod handlers;
mod identity;
mod inspect;
mod lease;
mod options;
mod plan;
mod pool;
mod prepared;
mod pump;
mod retrying;
mod role;
mod rows;
mod running;
mod server;
mod session;
mod transaction;
pub mod values;

pub use database::PostgresDatabase;
pub use identity::{ClaimSettings, RunAs};
pub use inspect::Finding;
pub use options::{PostgresOptions, Tenancy};
pub use role::RoleRequest;
