//! Metrics.
//!
//! - `fixture`: catalogs, requests and samples.
//! - `known_answers`: answers that were computed by hand.
//! - `reference`: any samples give the answer of a computation that collects everything first.
//! - `requests`: what is wrong with a request, all at once.
//! - `comparison`: the ranking of changes.
//! - `recorder`: the store, its bounds and its files.

mod comparison;
mod fixture;
mod known_answers;
mod recorder;
mod reference;
mod requests;
