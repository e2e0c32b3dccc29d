//! How DataFusion reads the tables: a provider over a snapshot's files, and a source of our own
//! for text files.

mod convert;
mod exact;
mod failure;
mod footer;
mod provider;
mod text_source;
mod uuid;

pub(crate) use failure::{ReadFailure, teaches};
pub(crate) use provider::{FileTableProvider, files_url};
