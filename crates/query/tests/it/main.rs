//! What the crate promises, through its public API and a database in memory.
//!
//! - `fake`: that database, and a registry that asks it
//! - `statements`: which SQL passes, which is refused, and in what words; bounds; placeholders; the cache
//! - `formats`: each format with every type, null and odd strings
//! - `answers`: pieces, modes, budgets, failures, progress, cancellation
//! - `bodies`: answers that are a body of their own: forms, bounds, failures, and that all forms agree
//! - `parquet`: answers that are Parquet files: every type, groups of rows, what breaks off
//! - `body_writer`: bodies outside of any call, and that they are read back as the rows that they were
//! - `questions`: questions as data: the SQL they become, and the words of their errors
//! - `row_policies`: what may stand in a row policy, whom they bind, and what they come to
//! - `stored`: answers that go on: stored results, their pages, exports
//! - `result_store`: the store of results itself: blocks, crashes, damage, quotas
//! - `secrets`: secrets are masked in every form, rows stand behind a fence
//! - `dialects`: what differs between the databases: names, aggregates, matching of text, placeholders
//! - `corpus`: attempts to get out, and honest SQL: the data files of `tests/corpus`
//! - `properties`: what holds for any question and any rows
//! - `stored_corpus`: what fuzzing found worth keeping

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod answers;
mod bodies;
mod body_writer;
mod corpus;
mod dialects;
mod fake;
mod formats;
mod parquet;
mod properties;
mod query_spec;
mod result_store;
mod row_policies;
mod secrets;
mod statements;
mod stored;
mod stored_corpus;
