//! MySQL and MariaDB as a database: rows are streamed into Arrow from read-only sessions.
//!
//! A call takes a connection from the pool of its [`MySqlDatabase`]. Each session only reads from its start; the SQL of a
//! caller runs in a transaction of its own besides. The statement is prepared, and its rows are decoded as they arrive. What
//! a call leaves behind is ended with `KILL QUERY` on another connection. [`MySqlIngest`] writes, on connections of its own.

mod catalog;
mod connect;
mod connection_string;
mod database;
mod error;
mod ingest;
mod options;
mod plan;
mod pool;
mod role;
mod row_policies;
mod running_statement;
mod server;
mod session;
mod values;

pub use connection_string::{MySqlConnectionStringError, MySqlTarget, is_mysql_uri, without_mysql_password};
pub use database::MySqlDatabase;
pub use ingest::MySqlIngest;
pub use options::MySqlOptions;
pub use role::AccountRequest;
