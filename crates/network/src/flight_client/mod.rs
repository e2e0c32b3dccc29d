//! Any server of Arrow Flight SQL as a database, and other Tidegate nodes as the nodes of a network.
//!
//! Another Tidegate node receives a statement as a ticket and is queried in one round trip. Other servers are queried by
//! the commands of [Arrow Flight SQL](https://arrow.apache.org/docs/format/FlightSql.html).

mod action;
mod address;
mod answer;
mod attempts;
mod connection;
mod database;
mod node_client;
mod options;
mod other_catalog;
mod other_server;
mod plan;
mod prepared;
mod quotation;
mod server_kind;
mod status;
mod table_cache;
mod tables;
mod tables_by_statement;
mod write;

pub use self::address::normalized_flight_url;
pub use self::database::FlightSqlDatabase;
pub use self::options::{FlightSqlOptions, FlightTls, NodeCredential};
