//! Stored results.
//!
//! - `scene`: a server whose results do what their id says, and requests to it.
//! - `downloads`: which request becomes which call, and in which form and under which name it is answered.
//! - `conditions`: what a client that has it, or a part of it, gets.
//! - `codings`: gzip and zstd.
//! - `documents`: what the OpenAPI document says of them.
//! - `links`: who is let in by a link, and that nothing tells it.
//! - `refusals`: what is refused, with which problem, and that nothing stays open.
//! - `streams`: results that are still being written, that break off, that nobody reads.

mod codings;
mod conditions;
mod documents;
mod downloads;
mod fixture;
mod links;
mod refusals;
mod streams;
