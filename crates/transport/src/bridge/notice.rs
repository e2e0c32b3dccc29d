//! What the bridge tells whoever runs it; the client hears of its own calls only.

use std::fmt;
use std::sync::Arc;

/// Something that happened on the way to the server. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BridgeNotice {
    /// The server cannot be reached, for that reason; it is tried again.
    Disconnected(String),
    /// The server is reached again.
    Reconnected,
    /// The server began anew, and the client's handshake was made again.
    HandshakeRenewed,
    /// The server refuses the bridge; nothing is tried until the next call.
    Refused(String),
    /// Something of the server was left out, since the client could make nothing of it.
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

/// Hears notices; it must not wait.
pub type BridgeNoticeListener = Arc<dyn Fn(&BridgeNotice) + Send + Sync>;
