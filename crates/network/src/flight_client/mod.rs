//! Any server of Arrow Flight SQL as a database, and other Tidegate nodes as the nodes of a network.
//!
//! Another Tidegate node receives a statement as a ticket and is queried in one round trip. Other servers are queried by
//! the commands of [Arrow Flight SQL](https://arrow.apache.org/docs/format/FlightSql.html).

mod answer;
mod connection;
mod database;
mod node_client;
mod options;
mod other_server;
mod server_kind;
mod status;
mod tables;
mod write;

pub use self::database::FlightSqlDatabase;
pub use self::options::{FlightSqlOptions, FlightTls, NodeCredential, normalized_flight_url};
