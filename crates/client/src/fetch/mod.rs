//! Client of stored results: downloads one over HTTP, block by block, and writes it to a file.
//!
//! Blocks arrive as Arrow, several at the same time. Each one is verified against its hash in the manifest. Blocks stay
//! beside the file until the file is complete, so no block is fetched twice, whatever fails. The writers of the server
//! convert the rows to the requested format.
//!
//! Memory is bounded by the blocks that are being fetched. Blocks are written in order, and a file has its final name
//! only when it is complete.

mod address;
mod arrow_file_converter;
mod block_fetcher;
mod client;
mod compression;
mod destination;
mod download;
mod error;
mod manifest;
mod manifest_follower;
mod partial_download;
mod progress;
mod remote_query;
mod result_file_writer;
mod tool_call;
mod transport_control;

use std::sync::Arc;
use std::time::Duration;

use crate::bearer_token::BearerToken;
use crate::tls::TrustedAuthorities;

pub use address::{ResultAddress, ResultServer};
pub use arrow_file_converter::ArrowFileConverter;
pub use destination::{Destination, UnfinishedFile, format_names, parse_format};
pub use download::{FetchedFile, fetch};
pub use error::{FetchError, ResumeInfo};
pub use progress::{DownloadEvent, DownloadListener, DownloadProgress, DownloadProgressBar};
pub use remote_query::{RemoteQuery, start_query};
pub use tool_call::call_tool;
pub use transport_control::{TransportChange, control_transports};

/// Options of a download.
#[derive(Clone)]
pub struct FetchOptions {
    /// Bearer token of the caller. It is not sent to a result with a link, for which the link is sufficient.
    pub bearer: Option<BearerToken>,
    /// The authorities that may sign the certificate of the server; `None` for those of the system.
    pub authorities: Option<TrustedAuthorities>,
    /// Number of blocks that are fetched at the same time.
    pub parallel: usize,
    /// Whether the rows of an incomplete result are accepted.
    pub accept_incomplete: bool,
    /// Attempts without progress after which the download fails. A server that has never responded gets fewer.
    pub attempts_max: u32,
    /// Delay after the first failed attempt; later delays double.
    pub initial_delay: Duration,
    /// Longest delay between attempts.
    pub max_delay: Duration,
    /// Timeout for establishing a connection.
    pub connect_timeout: Duration,
    /// How long a server may send nothing during a response.
    pub read_timeout: Duration,
    /// How long a running result may stay without new blocks.
    pub stall_timeout: Duration,
    /// How long a query may take until its response begins.
    pub response_timeout: Duration,
    /// Receives progress, retries and damaged blocks.
    pub listener: DownloadListener,
}

impl Default for FetchOptions {
    /// No credential, four blocks at the same time, ten attempts.
    fn default() -> Self {
        Self {
            bearer: None,
            authorities: None,
            parallel: 4,
            accept_incomplete: false,
            attempts_max: 10,
            initial_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(15 * 60),
            response_timeout: Duration::from_secs(15 * 60),
            listener: Arc::new(|_| {}),
        }
    }
}

impl FetchOptions {
    pub(crate) fn notify(&self, notice: &DownloadEvent) {
        (self.listener)(notice);
    }
}
