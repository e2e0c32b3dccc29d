//! Metric tools, traces, and the lists of fields and sources of logs over a network, beside one database with all rows.
//!
//! - `fixture`: the databases, and a registry with the tools; `tables`: the tables of the nodes.
//! - `samples`: random samples, and how nodes share them.
//! - `metrics`, `traces`, `logs`: the answers are those of the database with all rows.
//! - `missing_node`: a node is away.

mod fixture;
mod logs;
mod metrics;
mod missing_node;
mod samples;
mod tables;
mod traces;
