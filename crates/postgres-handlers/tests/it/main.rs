//! Handlers in a database, against a real server: `scripts/postgres run -- cargo nextest run -p tidegate-postgres-handlers`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod install; // The schema of handlers: made, renewed, taken away, and nothing else touched.
mod testing; // Test files of handlers: what they report, and that they leave nothing behind.
