//! PostgreSQL as a database: rows are streamed into Arrow behind three defence layers.
//!
//! A call takes a connection from the pool of its [`PostgresDatabase`] and begins a transaction as the caller's role.
//! The statement is prepared, its rows are decoded as they arrive, the transaction ends, and the connection returns.
//!
//! Handlers in the database, a crate of their own, run SQL through [`CallTransaction`].

mod call_transaction;
mod catalog;
pub mod connect;
mod database;
pub mod error;
mod explain;
mod function_restrictions;
mod ingest;
mod options;
mod plan;
mod pool;
mod prepared;
mod role;
mod running_statement;
mod server;
mod session;
pub mod values;

pub use call_transaction::{CallTransaction, PreparedCall};
pub use database::PostgresDatabase;
pub use ingest::{PostgresIngest, PostgresIngestOptions};
pub use options::{PostgresOptions, TenantIsolation};
pub use role::RoleRequest;
pub use session::{TransactionIdentity, retry_backoff};
pub use tidegate_query::{ClaimSettings, RunAs, user_and_tenant};
