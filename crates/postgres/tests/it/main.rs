//! The engine of PostgreSQL: rows streamed into Arrow behind three walls.
//!
//! - `attempts`: what role and transaction hold without the parser, checked in the database.
//! - `cluster`: a server of a test's own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod attempts;
mod cluster;
