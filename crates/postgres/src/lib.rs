//! The engine of PostgreSQL: rows streamed into Arrow behind three walls.
//!
//! The driver appears in this crate alone. The way of a call: a connection is lent ([`PostgresDatabase`]), a
//! transaction begins as the caller's role, the statement is prepared, its rows are decoded as they come, the
//! transaction ends, the connection goes back.

mod batch_forwarder;
mod batch_stream;
mod catalog;
mod composite_types;
pub mod connect;
mod database;
mod error;
mod explain;
pub mod handlers;
mod identity;
mod lease;
mod options;
mod plan;
mod pool;
mod pooler;
mod prepared;
mod retry_backoff;
mod role;
mod role_inspection;
mod running_statement;
mod server;
mod session;
mod transaction;
mod unreachable;
pub mod values;

pub use database::PostgresDatabase;
pub use identity::{ClaimSettings, RunAs};
pub use options::{PostgresOptions, TenantIsolation};
pub use role::RoleRequest;
pub use role_inspection::RoleFinding;
