//! Tables that take rows, through the public API of the crate.
//!
//! - `folder`: tables that take rows: writes, keys, columns, maintenance, full disks, crashes.
//! - `mqtt`: messages of a real broker as rows of a folder.
//! - `write_ahead_log`: what a log returns after it was closed, cut, damaged or released.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod folder;
mod mqtt;
mod write_ahead_log;
