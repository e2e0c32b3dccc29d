//! Delta tables.
//!
//! - `fixture`: tables in temporary folders, and their rows.
//! - `commits`: versions, conflicts, checkpoints, interrupted writes.

mod commits;
mod fixture;
