//! Logs and metrics, through the public API of the crate.
//!
//! - `fixture`: random rows, as batches with random types of columns and random divisions.
//! - `formats`: what telemetry senders send.
//! - `metrics`: queries, comparisons and the recorder.
//! - `queries`: full-text queries: parsing, errors, and which rows match.
//! - `scans`: facets, histograms, pages and patterns of one scan, beside naive implementations.
//! - `paging`: cursors neither repeat nor lose an entry, also while rows are added.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod fixture;
mod formats;
mod metrics;
mod paging;
mod queries;
mod scans;
