//! System tables, through the public API of the crate.
//!
//! - `fixture`: reads tables into rows with named values.
//! - `processes`: processes against `ps` and this process; masks, needed columns and bounds.
//! - `network`: sockets of this process; interfaces against `ip`.
//! - `machine`: mounts against `df`, disks, services, users, load and memory against `/proc`.
//! - `page`: `docs/reference/system-tables.md` is current.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod fixture;
mod machine;
mod network;
mod page;
mod processes;
