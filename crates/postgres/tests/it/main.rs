<<<<<<< HEAD
//! What the engine promises, against a real server: `scripts/postgres run -- cargo nextest run -p tidegate-postgres`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "tests")]

mod answers; // Rows, errors, catalogs, plans.
mod cancellation; // What stops a statement, and what becomes of its connection.
mod connect; // From a connection string to an open connection.
mod identity; // Roles, claims, and row-level security under load.
mod scene; // A database of one's own, and the engine on it.
mod writing; // Declared tools that write.
=======
//! What the crate promises, against a real server.
//!
//! - `server`: the connection that the tests share
//! - `shown`: record batches as callers read them
//! - `values`: types as they are stated, and what is refused
//! - `parameters`: what the server makes of bound parameters
//! - `round_trips`: random values of each type

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod parameters;
mod round_trips;
mod server;
mod shown;
mod values;
>>>>>>> 7b0b3ff6d678d5ef611d0b9b2d3f05f57eea1f0f
