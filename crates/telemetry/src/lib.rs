//! Logs and metrics as computation: adapters pass rows or samples, and render the answers. The crate runs no SQL and
//! starts no tasks. [`formats`] has what telemetry senders send.

pub mod formats;
pub mod logs;
pub mod metrics;
