//! Tables that take rows: a write-ahead log, and Delta tables that it is emptied into.

pub mod delta;
mod write_ahead_log;

pub use write_ahead_log::{LogError, LogOptions, WriteAheadLog};
