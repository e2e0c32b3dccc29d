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

use crate::http::caller::CallerError;

pub(super) const CLOSE_WITHIN: Duration = Duration::from_secs(5);
const REASON_BYTES_MAX: usize = 123;
const DISCARDED_BYTES: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// The client closed it or disconnected; nothing more can be sent.
    Gone,
    Shutdown,
    /// No message, or no answer to a ping, for too long.
    Quiet(CloseCode, &'static str),
    /// The client caused it, which is reported as a rejected message.
    ClientError(CloseCode, String),
}

impl CloseReason {
    pub(super) const IDLE: Self = Self::Quiet(CloseCode::Normal, "idle for too long");
    pub(super) const PING_TIMEOUT: Self = Self::Quiet(CloseCode::Away, "no answer to a ping");

    pub(super) fn too_slow() -> Self {
        Self::ClientError(CloseCode::Policy, "the message arrived too slowly".to_owned())
    }

    pub(super) fn binary() -> Self {
        Self::ClientError(CloseCode::Unsupported, "binary messages are not supported; send text".to_owned())
    }

    pub(super) fn not_admitted(refused: &CallerError) -> Self {
        Self::ClientError(CloseCode::Policy, refused.to_rpc_error().message)
    }

    pub(super) fn from_error(error: &Error, message_bytes_max: usize) -> Self {
        use tokio_tungstenite::tungstenite::error::ProtocolError::ResetWithoutClosingHandshake;
        let (code, reason) = match error {
            Error::Capacity(_) => (CloseCode::Size, format!("the message is longer than {message_bytes_max} bytes")),
            Error::Utf8(_) => (CloseCode::Invalid, "the message is not UTF-8".to_owned()),
            Error::Protocol(ResetWithoutClosingHandshake) => return Self::Gone,
            Error::Protocol(error) => (CloseCode::Protocol, error.to_string()),
            _ => return Self::Gone,
        };
        Self::ClientError(code, reason)
    }

    /// The close frame for the client; `None` if it is disconnected.
    pub(super) fn to_close_frame(&self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Gone => return None,
            Self::Shutdown => (CloseCode::Away, "the server is shutting down"),
            Self::Quiet(code, reason) => (*code, *reason),
            Self::ClientError(code, reason) => (*code, reason.as_str()),
        };
        let end = reason.floor_char_boundary(REASON_BYTES_MAX);
        Some(CloseFrame { code, reason: reason[..end].into() })
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
