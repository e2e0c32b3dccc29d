//! The built-in tools through the one door, with databases that live in memory.
//!
//! - `fake`: those databases, and a registry over them.
//! - `list`: what a client is told about the tools, and what that costs.
//! - `token_cost`: what a catalog of a hundred tables costs.
//! - `discover`, `ask`, `operations`: the tools by what they are for.
//! - `resources`, `prompts`: the other ways in; `stored_results`: what is kept of answers; `toolset`: tools that are
//!   called by another one.
//! - `declared_http`, `declared_resources`: what a configuration declares; `declared_files`: its large files;
//!   `declared_elicitation`: what its tools ask the person behind a call.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod declared_elicitation;
mod declared_files;
mod declared_http;
mod declared_resources;
mod discover;
mod fake;
mod operations;
mod prompts;
mod query_tools;
mod resources;
mod stored_results;
mod token_cost;
mod tool_list;
mod toolset;
