//! The audit log, through the public API of the crate.
//!
//! - `fixture`: a minimal node whose calls are audited.
//! - `lines`: the content of a line, and what must not be in it.
//! - `reopening`: rotation, restarts, incomplete last lines, and exclusive writers.
//! - `full_disk`: full and slow disks under both policies.
//! - `tampering`: verification detects every change of a log, or reports that it cannot.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod fixture;
mod full_disk;
mod lines;
mod live_log;
mod reopening;
mod tampering;
