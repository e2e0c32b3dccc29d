//! Stored results: answers kept as blocks, so that pages, downloads and exports show the same rows.
//!
//! A result is a folder with blocks, each a complete Arrow stream, and an append-only manifest with one line per block.
//! A block without a line does not exist, so that an interrupted process leaves a complete prefix or nothing.

mod block;
mod folder;
mod link_holders;
mod manifest;
mod memory_size;
mod quota;
mod read_ahead;
mod result;
mod result_file;
mod result_signer;
mod result_store;
mod result_writer;

pub use block::{END as END_OF_STREAM, ResultBlock};
pub use manifest::{BlockMetadata, FileDescription, ResultHeader, ResultId};
pub use memory_size::{array_bytes, batch_bytes};
pub use quota::StoreLimits;
pub use result::{ResultEnd, ResultProgress, StoredResult};
pub use result_file::{FILE_PIECE_BYTES, pieces_to_rows};
pub use result_store::{CacheKey, ResultStore};
pub use result_writer::{NewResult, ResultWriter, RowConverter, StoredColumns};
