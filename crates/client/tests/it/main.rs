//! Downloads of stored results and the bridge, with servers of the tests' own.
//!
//! - `bridge`: a client over a pipe, the bridge, and a server whose connection breaks
//! - `fetch`: downloads, with a server that misbehaves on demand

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod bridge;
mod fetch;
