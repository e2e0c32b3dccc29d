//! Closes a WebSocket: the code and reason for the client, and waiting until the client has received them.
//!
//! [RFC 6455, 7.4](https://www.rfc-editor.org/rfc/rfc6455#section-7.4)

use std::time::Duration;

use futures::StreamExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// How long a client may take to receive the close frame.
pub(super) const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// The longest reason that fits into a control frame, in bytes.
const REASON_BYTES_MAX: usize = 123;
const DISCARDED_BYTES: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// The client closed it or disconnected; nothing more can be sent.
    Gone,
    Shutdown,
    /// No message for too long.
    Idle,
    /// No answer to a ping.
    PingTimeout,
    /// The caller is no longer admitted.
    NotAdmitted(String),
    /// A message began and was not complete in time.
    TooSlow,
    Binary,
    /// A message over the limit, in bytes.
    TooLarge(usize),
    InvalidUtf8,
    ProtocolError(String),
}

impl CloseReason {
    /// The reason for a read error.
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

    /// Whether the client caused it, which is reported as a rejected message.
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

    /// The close frame for the client; `None` if it is disconnected.
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

/// Sends `frame` and waits up to `within` until the client has received it.
pub(super) async fn close<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: WebSocketStream<S>,
    frame: CloseFrame,
    within: Duration,
) {
    let closing = async {
        socket.close(Some(frame)).await?;
        // The client's own close frame ends this; messages before it are ignored.
        while let Some(Ok(_)) = socket.next().await {}
        // After a protocol error, frames are not read any more. If the connection were dropped with unread bytes, the
        // operating system would reset it, and the client might not receive the reason.
        let stream = socket.get_mut();
        stream.shutdown().await?;
        let mut discarded = vec![0; DISCARDED_BYTES];
        while stream.read(&mut discarded).await? > 0 {}
        Ok::<_, Error>(())
    };
    // The connection is dropped now in any case.
    let _ = tokio::time::timeout(within, closing).await;
}
