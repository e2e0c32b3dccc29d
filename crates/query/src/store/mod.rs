//! Stored results: an answer kept as blocks, so that pages, downloads and exports are views of one and the same rows.
//!
//! A result is a folder: blocks, each an Arrow stream of its own, and a manifest that only grows, one line a block.
//! What has no line does not exist, so that whatever ends the process leaves a whole prefix or nothing.

mod block;
mod cache;
mod described;
mod figures;
mod file;
mod files;
mod id;
mod limits;
mod manifest;
mod quota;
mod readers;
mod result;
mod results;
mod seal;
mod space;
mod summary;
mod writer;

pub use block::{Block, END as END_OF_STREAM};
pub(crate) use cache::CacheKey;
pub use file::{FILE_PIECE_BYTES, StoredFile, file_rows};
pub use id::ResultId;
pub use limits::StoreLimits;
pub use manifest::{BlockFacts, Head};
pub use result::{End, Stage, StoredResult};
pub use results::{Asked, ResultStore};
pub use seal::Cursor;
pub(crate) use summary::summary;
pub use writer::{ResultWriter, Written};
