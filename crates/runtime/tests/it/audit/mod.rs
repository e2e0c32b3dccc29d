//! The audit log.
//!
//! - `fixture`: a minimal node whose calls are audited.
//! - `lines`: the content of a line, and what must not be in it.
//! - `reopening`: rotation, restarts, incomplete last lines, and exclusive writers.
//! - `full_disk`: full and slow disks under both policies.
//! - `tampering`: verification detects every change of a log, or reports that it cannot.

mod fixture;
mod full_disk;
mod lines;
mod live_log;
mod reopening;
mod tampering;
