//! Delta tables, through the public API of the crate.
//!
//! - `fixture`: tables in temporary folders, and their rows; `samples`: a column of each type.
//! - `commits`: versions, conflicts, checkpoints, interrupted writes.
//! - `types`: values of all types, also as partitions.
//! - `statistics`: bounds of columns, partitions by time, expiry, limits of a writer.
//! - `foreign`: tables for other readers, and tables of other writers.
//! - `partitions`: rows of many partitions in few files.
//! - `versions`: the newest version of tables of other writers; `mapping`: columns with other names in the data files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod commits;
mod fixture;
mod foreign;
mod mapping;
mod partitions;
mod samples;
mod statistics;
mod types;
mod versions;
