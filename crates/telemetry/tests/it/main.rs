//! The core of the log tools, through the public API of the crate and beside naive implementations.
//!
//! - `fixture`: random rows, as batches with random types of columns and random divisions.
//! - `queries`: full-text queries: parsing, errors, and which rows match.
//! - `scans`: facets, histograms, pages and patterns of one scan.
//! - `paging`: cursors neither repeat nor lose an entry, also while rows are added.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod fixture;
mod paging;
mod queries;
mod scans;
