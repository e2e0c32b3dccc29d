//! Tests of the engines, one topic per file.
//!
//! - `formats`: each format and compression is a table.
//! - `json`: JSON files: their columns, late keys and values, errors.
//! - `layout`: which files make which table; folders, partitions, names.
//! - `lake`: folders whose bookkeeping says which files they have: Delta tables, and formats that are refused.
//! - `changes`: queries use new, changed and removed files.
//! - `broken`: unreadable files do not affect others.
//! - `sandboxing`: nothing outside the paths is read, and only reading is possible.
//! - `differential`: the same statements in PostgreSQL and over files.
//! - `errors`: the errors that callers receive for invalid statements.
//! - `functions`: limits of functions whose result or work is much larger than their arguments.
//! - `parquet`: files of other writers: types that the Arrow library does not have, and footers that are wrong.
//! - `plans`: plans and estimates before execution.
//! - `scan_filters`: filters with which a scan skips row groups.
//! - `tpch`: the plans of the statements of TPC-H.
//! - `principals`: the queries of one principal while another one runs queries.
//! - `policies`: row policies: what is visible, and that nothing reveals the rest.
//! - `streams`: order, back-pressure, cancellation.
//! - `messy`: irregular files, and files that are replaced while they are read.
//! - `typed_text`: text files with numbers of another format, and with declared types.
//! - `logs`: log files: formats, rotation, options.
//! - `network`: tables of several nodes as one.
//! - `memory`: limits of memory and disk.
//! - `sorts`: sorts with little memory, and the folder that they spill to.
//! - `source`: tables of files and recent rows that a writer of this process keeps.
//! - `lookups`: lookups in small tables, whose rows are in memory.
//! - `patterns`: limits of `LIKE`, of regular expressions, and of `||`.
//! - `wide`: windows, joins and subqueries that repeat long values.
//! - `replay`: what the replays of SQL scripts share; the tests of each engine use it.
//! - `sql_page`: `docs/reference/sql.md` says what the engine does.
//! - `upstream`: what DataFusion alone gets wrong, and so which code can go with its next version.
//! - `sql`: SQL behaviour, replayed from the workspace's `tests/slt/*.slt`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod broken;
mod changes;
mod differential;
mod errors;
mod formats;
mod functions;
mod globs;
mod json;
mod lake;
mod layout;
mod logs;
mod lookups;
mod memory;
mod messy;
mod network;
mod parquet;
mod patterns;
mod plans;
mod policies;
mod principals;
mod sandboxing;
mod scan_filters;
mod sorts;
mod source;
mod sql;
mod sql_page;
mod streams;
mod support;
mod tpch;
mod typed_text;
mod upstream;
mod wide;
