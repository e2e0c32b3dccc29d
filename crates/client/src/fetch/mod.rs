//! Client of stored results: downloads one over HTTP, block by block, and writes it to a file.
//!
//! Blocks arrive as Arrow, several at the same time. Each one is verified against its hash in the manifest. Blocks stay
//! beside the file until the file is complete, so no block is fetched twice, whatever fails. The writers of the server
//! convert the rows to the requested format.
//!
//! Memory is bounded by the blocks that are being fetched. Blocks are written in order, and a file has its final name
//! only when it is complete.

mod address;
mod block_fetcher;
mod client;
mod compression;
mod credential;
mod destination;
mod digest;
mod download;
mod download_event;
mod error;
mod manifest;
mod manifest_follower;
mod options;
mod partial_download;
mod progress_bar;
mod progress_tracker;
mod remote_query;
mod request_failure;
mod result_file_writer;
mod retry;

pub use address::{ResultAddress, ResultServer};
pub use destination::{Destination, FORMATS, UnfinishedFile, parse_format};
pub use download::{FetchedFile, fetch};
pub use download_event::{DownloadEvent, DownloadListener, DownloadProgress};
pub use error::{FetchError, ResumeInfo};
pub use options::FetchOptions;
pub use progress_bar::DownloadProgressBar;
pub use remote_query::{RemoteQuery, start_query};
