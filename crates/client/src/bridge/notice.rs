//! Notices for the operator of the bridge. The client receives only errors of its own calls.

use std::fmt;
use std::sync::Arc;

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
