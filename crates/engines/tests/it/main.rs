//! Tests of the engines, a topic a file.
//!
//! - `formats`: each format and compression is a table.
//! - `layout`: which files make which table; folders, partitions, names.
//! - `changes`: new, changed and vanished files are seen.
//! - `broken`: files that cannot be read hurt no other.
//! - `sandboxing`: nothing outside the paths is read, and nothing but reading is done.
//! - `differential`: the same statements in PostgreSQL and over files.
//! - `errors`: what a caller reads of its mistakes.
//! - `functions`: bounds of functions that make or compute much out of little.
//! - `plans`: what a plan tells before it runs.
//! - `principals`: the queries of one principal beside those of another.
//! - `policies`: row policies: what is seen, and that nothing tells of the rest.
//! - `streams`: order, back-pressure, cancellation.
//! - `messy`: files as people have them, and files that are replaced while they are read.
//! - `memory`: bounds of memory and disk.
//! - `patterns`: bounds of `LIKE`, of regular expressions, and of `||`.
//! - `wide`: windows, joins and subqueries that repeat long values.
//! - `replay`: what the replays of the scripts of SQL share; the tests of each engine have it.
//! - `sql_page`: `docs/sql.md` says what the engine does.
//! - `sql`: SQL behaviour, replayed from the workspace's `tests/slt/*.slt`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod broken;
mod changes;
mod differential;
mod errors;
mod formats;
mod functions;
mod globs;
mod layout;
mod memory;
mod messy;
mod patterns;
mod plans;
mod policies;
mod principals;
#[path = "../../../../tests/slt/replay.rs"]
#[allow(dead_code, reason = "other engines need the tables as statements")]
mod replay;
mod sandboxing;
mod sql;
mod sql_page;
mod streams;
mod support;
mod wide;
