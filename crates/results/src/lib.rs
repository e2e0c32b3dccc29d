//! Stored results: answers kept as blocks, so that pages, downloads and exports show the same rows.
//!
//! A result is a folder with blocks, each a complete Arrow stream, and an append-only manifest with one line per block.
//! A block without a line does not exist, so that an interrupted process leaves a complete prefix or nothing.

mod block;
mod folder;
mod links;
mod manifest;
mod quota;
mod result;
mod result_store;
mod result_writer;

pub use block::{END as END_OF_STREAM, ResultBlock};
pub use manifest::{BlockMetadata, FileDescription, RequiredAccess, ResultHeader, ResultId};
pub use quota::StoreLimits;
pub use result::{ResultEnd, ResultProgress, StoredResult};
pub use result_store::{CacheKey, ResultStore};
pub use result_writer::{
    FILE_PIECE_BYTES, NewResult, ResultWriter, RowConverter, StoredColumns, array_bytes, batch_bytes, pieces_to_rows,
};
