//! What the crate promises, through its public API, on real files that another connection writes.
//!
//! - `support`: folders, files, questions, and how an answer is collected
//! - `answers`: each value in its own type, through the formats; random values come back as they went in
//! - `streams`: rows leave early, readers stop and go away, queries are cancelled
//! - `pools`: waiting for a connection, and getting it back
//! - `catalogs`: tables, views, columns, what cannot be read
//! - `error_messages`: the words of errors
//! - `differential`: statements answered as the library itself answers them
//! - `policies`: row policies: which rows callers see, and attempts to see others
//! - `hidden_rows`: random questions of those, beside the same over a copy without what is hidden
//! - `ingest`: tables that take rows: types, transactions, keys
//! - `names`: names of what is denied, in texts of SQLite's
//! - `multiple_files`: several files as one database
//! - `views`: row policies of views, and of all tables at once
//! - `concurrent_writers`: reading beside a program that writes
//! - `damaged_files`: files that are no databases, vanish or are replaced
//! - `replay`: what the replays of the scripts of SQL share; the tests of each engine have it.
//! - `scripts`: the `.slt` files of the embedded engine, as far as SQLite can

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod answers;
mod catalogs;
mod concurrent_writers;
mod damaged_files;
mod differential;
mod error_messages;
mod hidden_rows;
mod ingest;
mod multiple_files;
mod names;
mod policies;
mod pools;
mod scripts;
mod streams;
mod support;
mod views;
