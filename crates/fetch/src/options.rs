//! Who fetches, and the bounds.

use std::sync::Arc;
use std::time::Duration;

use crate::bearer::BearerToken;
use crate::download_event::{DownloadEvent, DownloadListener};

/// Who fetches, and the bounds.
#[derive(Clone)]
pub struct FetchOptions {
    /// Proves who calls. It stays at home where a result was named by a link, which is proof enough.
    pub bearer: Option<BearerToken>,
    /// Blocks that are fetched at once.
    pub parallel: usize,
    /// Whether a result that ended incomplete is taken as far as it goes.
    pub accept_incomplete: bool,
    /// Attempts at one thing without any progress, after which it is given up. A server that has not answered at all
    /// yet gets fewer.
    pub attempts_max: u32,
    /// The delay after the first failed attempt; it doubles.
    pub initial_delay: Duration,
    /// The longest delay between attempts.
    pub max_delay: Duration,
    /// How long a connection may take to stand.
    pub connect_timeout: Duration,
    /// How long a server may be silent in the middle of an answer.
    pub read_timeout: Duration,
    /// How long a running result may not grow.
    pub stall_timeout: Duration,
    /// How long a question may take until its result has begun.
    pub response_timeout: Duration,
    /// Hears how far it is, and what went wrong on the way.
    pub listener: DownloadListener,
}

impl Default for FetchOptions {
    /// Nobody in particular, four blocks at once, and half a minute of patience with a server that went away.
    fn default() -> Self {
        Self {
            bearer: None,
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
