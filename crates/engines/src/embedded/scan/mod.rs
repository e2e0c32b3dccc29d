//! Scanning tables with DataFusion: a table provider over the files of a snapshot, and the sources that read them.

mod file_sources;
mod footer;
mod json_rows;
mod leaf_values;
mod parquet_values;
mod provider;
mod text_rows;

pub(crate) use provider::{FileTableProvider, files_url};
pub(crate) use text_rows::{ReadFailure, find_cause, is_retryable};
