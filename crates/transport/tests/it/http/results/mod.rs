//! Stored results.
//!
//! - `fixture`: a server whose results depend on their id, and requests to it.
//! - `downloads`: the call that results from each request, and the format and file name of its answer.
//! - `conditions`: responses to clients that have the result, or a part of it.
//! - `codings`: gzip and zstd.
//! - `documents`: the stored results in the OpenAPI document.
//! - `links`: access by links, which are never disclosed.
//! - `refusals`: rejected requests and their problems; nothing stays open.
//! - `streams`: results that are still being written, that fail, or that are not read.

mod codings;
mod conditions;
mod documents;
mod downloads;
mod fixture;
mod links;
mod refusals;
mod streams;
