//! Arrow Flight SQL: a server on the registry for BI tools and programs, and any server of Flight SQL as a database.
//!
//! The only crate that uses `arrow-flight` and `tonic`. The server is a transport as REST is: a statement is a call of the
//! built-in tool `sql` through [`tidegate_runtime::Registry::call`], so that identity, rights, row policies, limits and audit
//! apply. The client sends statements that are already parsed, and each request identifies the caller of its call.

mod flight_client;
mod flight_server;
mod node_protocol;

pub use flight_client::{FlightSqlDatabase, FlightSqlOptions, FlightTls, NodeCredential, normalized_flight_url};
pub use flight_server::{FlightOptions, RunningFlightServer, serve_flight};
