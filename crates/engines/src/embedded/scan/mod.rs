//! Scanning tables with DataFusion: a table provider over the files of a snapshot, and a source for all formats but
//! Parquet.

mod csv_rows;
mod delta_types;
mod footer;
mod isolated_parquet;
mod json_column;
mod json_rows;
mod leaf_values;
mod log_rows;
mod parquet_values;
mod provider;
mod read_failure;
mod reader_source;
mod row_batches;

pub(crate) use provider::{FileTableProvider, files_url};
pub(crate) use read_failure::{ReadFailure, find_cause, is_retryable};
