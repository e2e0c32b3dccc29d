//! Arrow Flight SQL: a server on the registry for BI tools and programs.
//!
//! The only crate that uses `arrow-flight` and `tonic`. The server is a transport as REST is: a statement is a call of the
//! built-in tool `sql` through [`tidegate_runtime::Registry::call`], so that identity, rights, row policies, limits and audit
//! apply.

mod flight_server;

pub use flight_server::{FlightOptions, RunningFlightServer, serve_flight};
