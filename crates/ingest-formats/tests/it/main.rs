//! Bodies of rows, through the public API of the crate.
//!
//! - `fixture`: schemas, bodies in pieces, and rows as text.
//! - `exactness`: which value fits into which column, and what it becomes.
//! - `binary`: Arrow streams and Parquet files.
//! - `coding`: gzip and zstd, and how far they may expand.
//! - `expansion`: small bodies with large values.
//! - `memory`: what bodies reserve while they are decoded.
//! - `inference`: columns that no table describes.
//! - `properties`: any rows through any format, and bodies that are cut or changed; `written` writes them.
//! - `speed`: a measurement that runs on request.
//! - `ndjson`, `json`, `csv`: the syntax of each format, and its errors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod binary;
mod coding;
mod csv;
mod exactness;
mod expansion;
mod fixture;
mod inference;
mod json;
mod memory;
mod ndjson;
mod properties;
mod speed;
mod written;
