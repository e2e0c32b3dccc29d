//! The engine of PostgreSQL, through the public face of the crate and before real servers.
//!
//! - `connect`: connection strings, and connections with everything that can be wrong with them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod connect;
