//! Logs and metrics, through the public API of the crate.
//!
//! - `metrics`: queries, comparisons and the recorder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod metrics;
