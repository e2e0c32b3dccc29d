//! The client of stored results: downloads one over HTTP, block by block, and writes it to a file.
//!
//! Blocks come as Arrow, several at once. Each is checked against the hash that the result's manifest names, and kept
//! beside the file until the file is whole: what was fetched once is not fetched again, whatever broke since. The rows
//! become the format that was asked for here, with the writers of the server.
//!
//! What is held in memory is bounded by the blocks that are under way; blocks are written in order, and a file never has
//! its name before it is whole.

mod address;
mod backoff;
mod bearer;
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
mod server_message;

pub use address::{ResultAddress, ResultAddressError, ResultServer};
pub use bearer::{BearerToken, BearerTokenError};
pub use destination::{Destination, FORMATS, UnfinishedFile, parse_format};
pub use download::{FetchedFile, fetch};
pub use download_event::{DownloadEvent, DownloadListener, DownloadProgress};
pub use error::{FetchError, ResumeInfo};
pub use options::FetchOptions;
pub use progress_bar::DownloadProgressBar;
pub use remote_query::{RemoteQuery, start_query};
pub use server_message::ServerMessage;
