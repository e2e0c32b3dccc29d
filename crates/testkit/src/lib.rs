//! Fixtures that the tests of several crates share. Never part of a release.
//!
//! - [`host`]: a server whose tools execute the steps in their arguments, and resources that tests change; [`schema`] and
//!   [`message_checker`]: checks of every message against the official schemas.
//! - [`token_authenticator`], [`token_signer`]: tokens, a clock that a test advances, an authenticator that accepts them, and
//!   one with a key that can be revoked.
//! - [`wait`]: waiting for a condition, with a time limit, and time with a paused clock.
//! - [`connections`]: a TCP proxy that holds connections until a test releases them; the two ends of standard input and
//!   output, in memory.
//! - `test_database` (feature `postgres`): a database of its own on the server that `scripts/postgres` starts.
//! - [`test_job`]: the job of a call that runs until a test drops it.
//! - [`sql_logic_test`]: the scripts of `tests/slt`, for each engine; [`fuzz_corpus`]: the stored inputs of the fuzz
//!   targets.
#![allow(missing_docs, reason = "no API: the tests beside it are its only users")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

pub mod connections;
pub mod fuzz_corpus;
pub mod host;
pub mod message_checker;
pub mod schema;
pub mod sql_logic_test;
#[cfg(feature = "postgres")]
pub mod test_database;
pub mod test_job;
pub mod token_authenticator;
pub mod token_signer;
pub mod wait;
