//! The log of what was done, through the public face of the crate.
//!
//! - `scene`: a node in miniature whose calls are written down.
//! - `lines`: what a line says, and what it does not.
//! - `reopening`: rotation, restarts, torn ends, and who may write.
//! - `full_disk`: disks that are full or slow, under both policies.
//! - `tampering`: whatever is done to a log, verification finds it, or says that it cannot.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod fixture;
mod full_disk;
mod lines;
mod live_log;
mod reopening;
mod tampering;
