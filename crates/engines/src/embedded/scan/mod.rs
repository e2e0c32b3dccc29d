//! How DataFusion reads the tables: a provider over a snapshot's files, and a source of our own
//! for text files.

mod footer;
mod json_integers;
mod provider;
mod read_failure;
mod text_conversion;
mod text_source;
mod uuid;

pub(crate) use provider::{FileTableProvider, files_url};
pub(crate) use read_failure::{ReadFailure, is_retryable};
