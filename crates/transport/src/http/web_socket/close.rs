//! How a WebSocket ends: which code and reason the client is told, and that it gets to hear them.
//!
//! [RFC 6455, 7.4](https://www.rfc-editor.org/rfc/rfc6455#section-7.4)

use std::time::Duration;

use futures::StreamExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// How long a client may take to hear that we close.
pub(super) const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// The longest reason that fits a control frame, in bytes.
const REASON_BYTES_MAX: usize = 123;
const DISCARDED_BYTES: usize = 16 * 1024;

/// Why a WebSocket ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// The client closed it, or is gone: nothing more can be said.
    Gone,
    /// The server shuts down.
    Shutdown,
    /// No message for too long.
    Idle,
    /// No sign of life.
    PingTimeout,
    /// Who it is is let in no longer.
    NotAdmitted(String),
    /// A message began and did not end in time.
    TooSlow,
    /// A binary message.
    Binary,
    /// A message beyond the bound, in bytes.
    TooLarge(usize),
    /// A text message that is no UTF-8.
    InvalidUtf8,
    /// The client broke the rules of the protocol.
    ProtocolError(String),
}

impl CloseReason {
    /// Why nothing more was read.
    pub(super) fn from_error(error: &Error, message_bytes_max: usize) -> Self {
        use tokio_tungstenite::tungstenite::error::ProtocolError::ResetWithoutClosingHandshake;
        match error {
            Error::Capacity(_) => Self::TooLarge(message_bytes_max),
            Error::Utf8(_) => Self::InvalidUtf8,
            Error::Protocol(ResetWithoutClosingHandshake) => Self::Gone,
            Error::Protocol(error) => Self::ProtocolError(error.to_string()),
            _ => Self::Gone,
        }
    }

    /// Whether a message was at fault, which is told as a refusal.
    pub(super) fn is_client_error(&self) -> bool {
        matches!(
            self,
            Self::NotAdmitted(_)
                | Self::TooSlow
                | Self::Binary
                | Self::TooLarge(_)
                | Self::InvalidUtf8
                | Self::ProtocolError(_)
        )
    }

    /// What the client is told; `None` where there is nobody to tell.
    pub(super) fn to_close_frame(&self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Gone => return None,
            Self::Shutdown => (CloseCode::Away, "the server is shutting down".to_owned()),
            Self::Idle => (CloseCode::Normal, "idle for too long".to_owned()),
            Self::PingTimeout => (CloseCode::Away, "no answer to a ping".to_owned()),
            Self::NotAdmitted(reason) => (CloseCode::Policy, reason.clone()),
            Self::TooSlow => (CloseCode::Policy, "the message arrived too slowly".to_owned()),
            Self::Binary => (CloseCode::Unsupported, "binary messages are not supported; send text".to_owned()),
            Self::TooLarge(bytes_max) => (CloseCode::Size, format!("the message is longer than {bytes_max} bytes")),
            Self::InvalidUtf8 => (CloseCode::Invalid, "the message is not UTF-8".to_owned()),
            Self::ProtocolError(reason) => (CloseCode::Protocol, reason.clone()),
        };
        let cut = reason.floor_char_boundary(REASON_BYTES_MAX);
        Some(CloseFrame { code, reason: reason[..cut].into() })
    }
}

/// Says `frame` and waits, within the bound, until the client has heard it.
pub(super) async fn close<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: WebSocketStream<S>,
    frame: CloseFrame,
    within: Duration,
) {
    let closing = async {
        socket.close(Some(frame)).await?;
        // The client's own close ends this; what it sent before that counts no more.
        while let Some(Ok(_)) = socket.next().await {}
        // After a fault nothing is read as frames any more. Were the connection dropped with bytes unread, the system
        // would reset it, and the client might never see why.
        let stream = socket.get_mut();
        stream.shutdown().await?;
        let mut discarded = vec![0; DISCARDED_BYTES];
        while stream.read(&mut discarded).await? > 0 {}
        Ok::<_, Error>(())
    };
    // Whatever comes of it, the connection is dropped now.
    let _ = tokio::time::timeout(within, closing).await;
}
