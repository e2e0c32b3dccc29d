//! Connecting, from a string to a session.
//!
//! - `scene`: surroundings made for the test, and the servers that the environment names.
//! - `certificates`: certificates of all sorts, of a server that only has TLS.
//! - `connection_strings`: what is understood of connection strings, and what is said of those that are not.
//! - `defaults`: what the environment, services and password files add.
//! - `random_input`: whatever is read, nothing panics and no password is printed.
//! - `sessions`: open connections: versions, settings, several hosts, cancelling, the end.
//! - `refusals`: servers that refuse, and what is said of each to the caller and to the owner.
//! - `tls`: TLS in all its modes.
//! - `non_postgres_servers`: hosts that are no PostgreSQL, or that say nothing.

mod certificates;
mod connection_strings;
mod defaults;
mod environment_fixture;
mod non_postgres_servers;
mod random_input;
mod server_errors;
mod sessions;
mod tls;
