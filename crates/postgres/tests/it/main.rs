//! What the engine promises, against a real server: `scripts/postgres run -- cargo nextest run -p tidegate-postgres`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "tests")]

mod answers; // Rows, errors, catalogs, plans.
mod cancellation; // What stops a statement, and what becomes of its connection.
mod connect; // From a connection string to an open connection.
mod identity; // Roles, claims, and row-level security under load.
mod scene; // A database of one's own, and the engine on it.
mod writing; // Declared tools that write.
