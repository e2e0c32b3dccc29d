//! The output to the client: complete lines, in the order in which they are complete.

use tidegate_mcp::{RequestId, RpcError};
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;

use crate::lines::write_line;
use crate::outbox::OutgoingMessage;

/// Maximum number of messages in the outgoing queue. Calls wait while it is full.
const LINES_MAX: usize = 64;

/// The sending end of the output, which all parts of the bridge share.
#[derive(Debug, Clone)]
pub(super) struct Output(mpsc::Sender<OutgoingMessage>);

impl Output {
    /// An output, and its receiving end for [`write_lines`].
    pub(super) fn new() -> (Self, mpsc::Receiver<OutgoingMessage>) {
        let (sender, receiver) = mpsc::channel(LINES_MAX);
        (Self(sender), receiver)
    }

    /// Waits while the client reads slowly. Does nothing if the client has disconnected.
    pub(super) async fn send(&self, message: OutgoingMessage) {
        let _ = self.0.send(message).await;
    }

    /// Answers a request with an error. `id` is `None` if it could not be read.
    pub(super) async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        self.send(OutgoingMessage::Whole(error.to_bytes(id))).await;
    }

    /// Resolves when the client has disconnected.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Writes each message as a line, until the last [`Output`] is dropped.
pub(super) async fn write_lines(
    mut lines: mpsc::Receiver<OutgoingMessage>,
    writer: impl AsyncWrite + Unpin + Send,
) -> std::io::Result<()> {
    let mut writer = BufWriter::new(writer);
    while let Some(message) = lines.recv().await {
        write_line(&mut writer, message).await?;
        if lines.is_empty() {
            writer.flush().await?;
        }
    }
    writer.flush().await
}
