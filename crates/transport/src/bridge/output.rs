//! What the client is told: whole lines, in the order in which they are complete.

use bytes::Bytes;
use tidegate_mcp::{RequestId, RpcError};
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;

use crate::spool::Spool;

/// Messages that wait for the output; more of them make their calls wait.
const LINES_MAX: usize = 64;

/// A message on its way to the client, without a line feed.
#[derive(Debug)]
pub(super) enum Line {
    Whole(Bytes),
    Spooled(Spool),
}

/// Where every part of the bridge puts what the client must hear.
#[derive(Debug, Clone)]
pub(super) struct Output(mpsc::Sender<Line>);

impl Output {
    /// An output, and what [`write_lines`] takes from it.
    pub(super) fn new() -> (Self, mpsc::Receiver<Line>) {
        let (sender, receiver) = mpsc::channel(LINES_MAX);
        (Self(sender), receiver)
    }

    /// Waits while the client is slow to read. A client that hung up hears nothing.
    pub(super) async fn send(&self, line: Line) {
        let _ = self.0.send(line).await;
    }

    /// Answers a request with an error; none when its id could not be read.
    pub(super) async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        self.send(Line::Whole(error.to_bytes(id))).await;
    }

    /// Resolves when the client hung up.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Writes lines until the last [`Output`] is gone.
pub(super) async fn write_lines(
    mut lines: mpsc::Receiver<Line>,
    writer: impl AsyncWrite + Unpin + Send,
) -> std::io::Result<()> {
    let mut writer = BufWriter::new(writer);
    while let Some(line) = lines.recv().await {
        match line {
            Line::Whole(bytes) => writer.write_all(&bytes).await?,
            Line::Spooled(mut spool) => {
                while let Some(piece) = spool.next().await? {
                    writer.write_all(&piece).await?;
                }
            }
        }
        writer.write_all(b"\n").await?;
        if lines.is_empty() {
            writer.flush().await?;
        }
    }
    writer.flush().await
}
