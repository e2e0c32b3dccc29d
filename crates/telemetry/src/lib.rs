//! Logs and metrics as computation: adapters pass rows or samples, and render the answers. The crate runs no SQL and
//! starts no tasks.

pub mod logs;
pub mod metrics;
