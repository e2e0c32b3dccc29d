//! The options of a bridge, and its notices.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::address::ServerAddress;
use crate::bearer_token::BearerToken;
use crate::tls::TrustedAuthorities;
use tidegate_core::Backoff;

/// A call that waits 5 s for a server must notice within that time that it is reachable again.
const DELAY_MIN: Duration = Duration::from_millis(100);
pub(super) const DELAY_MAX: Duration = Duration::from_secs(2);

/// The server, the credentials and the limits of a bridge.
#[derive(Clone)]
pub struct BridgeOptions {
    /// The URL of the server.
    pub address: ServerAddress,
    /// The token that authenticates the caller.
    pub bearer: Option<BearerToken>,
    /// The authorities that may sign the certificate of the server; `None` for those of the system.
    pub authorities: Option<TrustedAuthorities>,
    /// Maximum size of a message of the client in bytes; longer ones are refused.
    pub message_bytes_max: usize,
    /// Maximum size of a message of the server in bytes. A longer one fails its call, and ends a WebSocket connection.
    /// A message is held in memory until the client has received it.
    pub server_message_bytes_max: usize,
    /// How long a call may wait for a connection.
    pub wait_within: Duration,
    /// How long a restarted server may take to answer the repeated handshake.
    pub handshake_within: Duration,
    /// How long open calls may take to end after the client closed its side.
    pub drain_within: Duration,
    /// Receives notices for the operator of the bridge.
    pub notice_listener: BridgeNoticeListener,
}

impl BridgeOptions {
    /// A bridge to `address` with the default limits, without a token.
    pub fn new(address: ServerAddress) -> Self {
        Self {
            address,
            bearer: None,
            authorities: None,
            message_bytes_max: 4 * 1024 * 1024,
            server_message_bytes_max: 64 * 1024 * 1024,
            wait_within: Duration::from_secs(5),
            handshake_within: Duration::from_secs(30),
            drain_within: Duration::from_secs(10),
            notice_listener: Arc::new(|_| {}),
        }
    }

    pub(super) fn notify(&self, notice: &BridgeNotice) {
        (self.notice_listener)(notice);
    }
}

pub(super) fn reconnection_backoff() -> Backoff {
    Backoff::new(DELAY_MIN, DELAY_MAX)
}

/// An event in the connection to the server. It contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BridgeNotice {
    /// The server is unreachable, for this reason; the bridge retries.
    Disconnected(String),
    /// The server is reachable again.
    Reconnected,
    /// The server restarted, and the client's handshake was repeated.
    HandshakeRenewed,
    /// The server rejects the bridge, which retries only at the next call.
    Refused(String),
    /// A message was dropped, because it was not delivered or the client could not use it.
    Ignored(String),
}

impl fmt::Display for BridgeNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected(reason) => write!(f, "the server cannot be reached: {reason}"),
            Self::Reconnected => f.write_str("reconnected to the server"),
            Self::HandshakeRenewed => f.write_str("the server restarted; the client's handshake was repeated"),
            Self::Refused(reason) => f.write_str(reason),
            Self::Ignored(subject) => write!(f, "message dropped: {subject}"),
        }
    }
}

/// Receives notices. It must not block.
pub type BridgeNoticeListener = Arc<dyn Fn(&BridgeNotice) + Send + Sync>;
