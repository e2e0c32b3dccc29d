//! Logs and metrics as computations over Arrow record batches. The crate reads no files, runs no SQL and starts no tasks.

pub mod logs;
