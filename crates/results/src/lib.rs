//! Stored results: answers kept as blocks, so that pages, downloads and exports show the same rows.
//!
//! A result is a folder with blocks, each a complete Arrow stream, and an append-only manifest with one line per block.
//! A block without a line does not exist, so that an interrupted process leaves a complete prefix or nothing.

mod answer_cache;
mod block;
mod counters;
mod folder;
mod link_holders;
mod manifest;
mod quota;
mod result;
mod result_file;
mod result_store;
mod result_writer;
mod seal;

pub use answer_cache::CacheKey;
pub use block::{END as END_OF_STREAM, ResultBlock};
pub use manifest::{BlockFacts, ResultHeader, ResultId};
pub use quota::StoreLimits;
pub use result::{ResultEnd, ResultProgress, StoredResult};
pub use result_file::{FILE_PIECE_BYTES, FileDescription, pieces_to_rows};
pub use result_store::{NewResult, ResultStore};
pub use result_writer::{ResultWriter, RowConverter, StoredColumns, WriteOutcome};
pub use seal::Cursor;
