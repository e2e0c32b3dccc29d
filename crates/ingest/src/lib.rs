//! Tables that take rows: a write-ahead log, and Delta tables that it is emptied into.

mod delta;
mod write_ahead_log;

pub use write_ahead_log::{LogError, LogOptions, WriteAheadLog};
