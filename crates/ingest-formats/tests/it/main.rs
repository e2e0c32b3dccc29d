//! Bodies of rows, through the public API of the crate.
//!
//! - `fixture`: schemas, bodies in pieces, and rows as text.
//! - `exactness`: which value fits into which column, and what it becomes.
//! - `speed`: a measurement that runs on request.
//! - `ndjson`, `json`, `csv`: the syntax of each format, and its errors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod csv;
mod exactness;
mod fixture;
mod json;
mod ndjson;
mod speed;
