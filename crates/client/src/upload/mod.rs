//! Client of tables that take rows: sends files, whole or in parts.
//!
//! Each request has a key, so that the server stores its rows once however often it is sent. A large file of lines is
//! sent in parts, so that an interruption costs one part. Memory is bounded: a file is read while it is sent.

mod csv_scan;
mod error;
mod file_part;
mod part_cutter;
mod progress;
mod receipt;
mod sender;

use std::time::Duration;

use crate::bearer_token::BearerToken;
use crate::tls::TrustedAuthorities;

pub use error::{RowReason, UploadError};
pub use file_part::FilePart;
pub use part_cutter::{PartCutter, RowSyntax};
pub use progress::UploadProgressBar;
pub use receipt::{Rejection, UploadReceipt};
pub use sender::{UploadRequest, UploadTarget, Uploader};

/// A file of lines that is larger is sent in parts of about so many bytes.
pub const PART_BYTES: u64 = 64 << 20;

/// Options of an upload.
#[derive(Debug, Clone)]
pub struct UploadOptions {
    /// Bearer token of the caller.
    pub bearer: Option<BearerToken>,
    /// The authorities that may sign the certificate of the server; `None` for those of the system.
    pub authorities: Option<TrustedAuthorities>,
    /// Attempts after which the upload of a part fails. A server that has never responded gets fewer.
    pub attempts_max: u32,
    /// Delay after the first failed attempt; later delays double.
    pub initial_delay: Duration,
    /// Longest delay between attempts.
    pub max_delay: Duration,
    /// Timeout for establishing a connection.
    pub connect_timeout: Duration,
    /// How long a server may neither take bytes nor respond.
    pub stall_timeout: Duration,
}

impl Default for UploadOptions {
    /// No credential, ten attempts, and five minutes without progress.
    fn default() -> Self {
        Self {
            bearer: None,
            authorities: None,
            attempts_max: 10,
            initial_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(5 * 60),
        }
    }
}

/// A scope of keys that no other run has.
pub fn random_scope() -> String {
    uuid::Uuid::new_v4().to_string()
}
