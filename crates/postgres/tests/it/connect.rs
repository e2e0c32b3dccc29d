//! Connecting, from a string to a session.
//!
//! - `scene`: surroundings made for the test, and the servers that the environment names.
//! - `certificates`: certificates of all sorts, of a server that only has TLS.
//! - `connection_strings`: valid connection strings, and the errors for invalid ones.
//! - `defaults`: what the environment, services and password files add.
//! - `random_input`: whatever is read, nothing panics and no password is printed.
//! - `sessions`: open connections: versions, settings, several hosts, cancelling, the end.
//! - `server_errors`: servers that reject a connection, and the messages for the caller and the owner.
//! - `tls`: TLS in all its modes.
//! - `non_postgres_servers`: hosts that are not PostgreSQL servers, or that do not respond.

mod certificates;
mod connection_strings;
mod defaults;
mod environment_fixture;
mod non_postgres_servers;
mod random_input;
mod server_errors;
mod sessions;
mod tls;
