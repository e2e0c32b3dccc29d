//! The built-in tools through the registry, with databases in memory.
//!
//! - `fake`: those databases, and a registry over them.
//! - `tool_list`: the tool list, and its size.
//! - `token_cost`: the tokens of a catalog of a hundred tables.
//! - `discover`, `query_tools`, `operations`, `function_tools`, `network_tools`: the tools by purpose.
//! - `resources`, `prompts`: the other entries; `stored_results`: stored answers; `toolset`: tools that another tool
//!   calls.
//! - `ingest_tools`: rows that are written, to tables in memory.
//! - `log_counting`: counts of logs in SQLite and PostgreSQL beside scans; `log_answers`: the members of answers about logs.
//! - `declared_http`, `declared_resources`: declared entries; `declared_files`: large files; `declared_elicitation`:
//!   prompts to the person behind a call.
//! - `missing_nodes`: answers without the rows of some nodes.
//! - `knowledge`: what people wrote about a database.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod declared_elicitation;
mod declared_files;
mod declared_http;
mod declared_resources;
mod discover;
mod fake;
mod function_tools;
mod ingest_tools;
mod knowledge;
mod log_answers;
mod log_counting;
mod missing_nodes;
mod network_tools;
mod operations;
mod prompts;
mod query_tools;
mod resources;
mod stored_results;
mod token_cost;
mod tool_list;
mod toolset;
