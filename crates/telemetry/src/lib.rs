//! Logs and metrics as pure computation: no sockets, no SQL, no Arrow.
//!
//! Adapters feed rows or samples and render the answers.

pub mod metrics;
