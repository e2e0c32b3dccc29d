//! The public interface of the crate, with a database in memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod answers;
mod bodies;
mod dialects;
mod fake;
mod formats;
mod missing_nodes;
mod parquet;
mod properties;
mod query_spec;
mod result_store;
mod row_encoder;
mod row_policies;
mod secrets;
mod stored;
