//! The output to the client: complete lines, in the order in which they are complete.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_mcp::{RequestId, RpcError};
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Maximum number of messages in the outgoing queue. Calls wait while it is full.
const LINES_MAX: usize = 64;
/// Maximum number of large messages in memory, complete or not. Others wait until the client has received one.
const LARGE_MESSAGES_MAX: usize = 4;

#[derive(Debug)]
pub(super) struct OutgoingMessage {
    line: Bytes,
    _permit: Option<OwnedSemaphorePermit>,
}

impl OutgoingMessage {
    /// `line` contains no line break.
    pub(super) fn new(line: Bytes, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { line, _permit: permit }
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.line
    }

    pub(super) fn with_line(self, line: Bytes) -> Self {
        Self { line, ..self }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Output {
    lines: mpsc::Sender<OutgoingMessage>,
    large_messages: Arc<Semaphore>,
}

impl Output {
    pub(super) fn new() -> (Self, mpsc::Receiver<OutgoingMessage>) {
        let (lines, receiver) = mpsc::channel(LINES_MAX);
        (Self { lines, large_messages: Arc::new(Semaphore::new(LARGE_MESSAGES_MAX)) }, receiver)
    }

    /// Waits while the client reads slowly. Does nothing if the client has disconnected.
    pub(super) async fn send(&self, message: OutgoingMessage) {
        let _ = self.lines.send(message).await;
    }

    /// Sends a line of the bridge itself.
    pub(super) async fn send_line(&self, line: Bytes) {
        self.send(OutgoingMessage::new(line, None)).await;
    }

    pub(super) async fn large_message_permit(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        self.large_messages.clone().acquire_owned().await.ok()
    }

    /// Answers a request with an error. `id` is `None` if it could not be read.
    pub(super) async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        self.send_line(error.to_bytes(id)).await;
    }

    pub(super) async fn closed(&self) {
        self.lines.closed().await;
    }
}

pub(super) async fn write_lines(
    mut lines: mpsc::Receiver<OutgoingMessage>,
    writer: impl AsyncWrite + Unpin + Send,
) -> std::io::Result<()> {
    let mut writer = BufWriter::new(writer);
    while let Some(message) = lines.recv().await {
        writer.write_all(message.bytes()).await?;
        writer.write_all(b"\n").await?;
        if lines.is_empty() {
            writer.flush().await?;
        }
    }
    writer.flush().await
}
