//! What the client is told: whole lines, in the order in which they are complete.

use tidegate_mcp::{RequestId, RpcError};
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;

use crate::lines::write_line;
use crate::outbox::OutgoingMessage;

/// Messages that wait for the output; more of them make their calls wait.
const LINES_MAX: usize = 64;

/// Where every part of the bridge puts what the client must hear.
#[derive(Debug, Clone)]
pub(super) struct Output(mpsc::Sender<OutgoingMessage>);

impl Output {
    /// An output, and what [`write_lines`] takes from it.
    pub(super) fn new() -> (Self, mpsc::Receiver<OutgoingMessage>) {
        let (sender, receiver) = mpsc::channel(LINES_MAX);
        (Self(sender), receiver)
    }

    /// Waits while the client is slow to read. A client that hung up hears nothing.
    pub(super) async fn send(&self, message: OutgoingMessage) {
        let _ = self.0.send(message).await;
    }

    /// Answers a request with an error; none when its id could not be read.
    pub(super) async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        self.send(OutgoingMessage::Whole(error.to_bytes(id))).await;
    }

    /// Resolves when the client hung up.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Writes what it is told, a line each, until the last [`Output`] is gone.
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
