//! End to end, and the rules of the workspace.
//!
//! - `cli`: the binary, verb by verb: what it prints where, and how it ends.
//! - `declared`: declared resources and prompts on a real node.
//! - `federated`: several databases as one.
//! - `file_node`: files as a node of a network.
//! - `workspace_rules`: what may depend on what, and how large files and functions may be.
//! - `reference`: the generated pages of `docs/reference`.
//! - `library`: a host program with tools of its own.
//! - `log_counting`: counts of logs in Parquet files beside scans; `log_rotation`: pages over files that are rotated.
//! - `result_tables`: answers that are tables.
//! - `network_telemetry`: metrics, traces and lists of logs over a network beside one database with all rows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod cli;
mod declared;
mod federated;
mod file_node;
mod library;
mod log_counting;
mod log_rotation;
mod network_telemetry;
mod reference;
mod result_tables;
mod workspace_rules;
