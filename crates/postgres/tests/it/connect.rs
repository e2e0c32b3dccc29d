//! Connecting, from a string to a session.
//!
//! - `scene`: surroundings made for the test, and the servers that the environment names.
//! - `certificates`: certificates of all sorts, of a server that only has TLS.
//! - `strings`: what is understood of connection strings, and what is said of those that are not.
//! - `completion`: what the environment, services and password files add.
//! - `any_text`: whatever is read, nothing panics and no password is printed.
//! - `sessions`: open connections: versions, settings, several hosts, cancelling, the end.
//! - `refusals`: servers that refuse, and what is said of each to the caller and to the owner.
//! - `protection`: TLS in all its modes.
//! - `strangers`: hosts that are no PostgreSQL, or that say nothing.

mod any_text;
mod certificates;
mod completion;
mod protection;
mod refusals;
mod scene;
mod sessions;
mod strangers;
mod strings;
