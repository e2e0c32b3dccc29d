//! Log files, through the public API of the crate.
//!
//! - `fixture`: reads files and shows their entries.
//! - `access`, `error_logs`, `haproxy`, `kubernetes`, `syslog`, `structured`, `postgres`, `pattern`: known lines of each
//!   format.
//! - `journal`: journal files against the answers of `journalctl`.
//! - `revealed_columns`: from which columns the values of others can be read.
//! - `reader`: pieces, entries of several lines, bounds, growing files, and bytes that are no text.
//! - `detection`: logs are recognised, and other files are not.
//! - `suggestions`: what is suggested for other files reads them.
//! - `properties`: pieces of any size give the same entries, which cover every byte, and no input panics.
//! - `speed`: a measurement that runs on request.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod access;
mod detection;
mod error_logs;
mod fixture;
mod haproxy;
mod journal;
mod kubernetes;
mod pattern;
mod postgres;
mod properties;
mod reader;
mod revealed_columns;
mod speed;
mod structured;
mod suggestions;
mod syslog;
