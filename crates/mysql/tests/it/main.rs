//! What the crate promises, against a real server: `scripts/mariadb run -- cargo nextest run -p tidegate-mysql`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod answers; // Rows, errors, catalogs, plans.
mod cancellation; // What ends a statement, and what becomes of its connection.
mod connections; // TLS, logins, and connections that are lost.
mod identity; // Roles and variables of callers.
mod ingest; // Tables that take rows.
mod policies; // Row policies: which rows callers see, and attempts to see others.
mod read_only; // What gets past the statement policy changes nothing.
mod test_database; // A database of its own on the test server.
mod values; // Each type, as the server has its values.
