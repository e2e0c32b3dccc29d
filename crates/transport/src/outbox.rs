//! Outgoing messages: a bounded queue between the open requests of a connection and the writer.
//!
//! On a connection that all calls share, a message cannot be interrupted. An answer that is written while it is
//! produced would block all other answers for as long as its query runs. It is therefore stored until it is complete:
//! in memory while it is small, in an unnamed temporary file beyond that. The exception is an answer to the only open
//! request of a connection over HTTP+SSE: nothing waits for it.

use std::io;

use bytes::{Bytes, BytesMut};
use tidegate_core::{Error, ErrorKind};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

#[derive(Debug)]
pub(crate) enum OutgoingMessage {
    /// A short message.
    Whole(Bytes),
    /// A message that was spooled until it was complete.
    Spooled(Spool),
    /// A message that is written while it is produced.
    Live(LiveMessage),
}

impl OutgoingMessage {
    pub(crate) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        match self {
            Self::Whole(bytes) => Ok(Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty())),
            Self::Spooled(spool) => spool.next().await,
            Self::Live(message) => message.next().await,
        }
    }
}

/// The number of pieces between the call and the writer; the call waits while there are more.
const LIVE_PIECES_MAX: usize = 2;

/// The pieces of a message that is written while it is produced.
#[derive(Debug)]
pub(crate) struct LiveMessage(mpsc::Receiver<LivePiece>);

#[derive(Debug)]
enum LivePiece {
    Bytes(Bytes),
    /// Without it, the message is incomplete.
    End,
}

impl LiveMessage {
    /// Cancel-safe.
    async fn next(&mut self) -> std::io::Result<Option<Bytes>> {
        match self.0.recv().await {
            Some(LivePiece::Bytes(bytes)) => Ok(Some(bytes)),
            Some(LivePiece::End) => Ok(None),
            None => Err(std::io::Error::other("the answer ended early")),
        }
    }
}

/// Where the bytes of one answer go.
#[derive(Debug)]
pub(crate) enum AnswerSink {
    /// They are stored until the answer is complete.
    Spool(Spool),
    /// They are written while the answer is produced.
    Live(LiveSender),
}

#[derive(Debug)]
pub(crate) struct LiveSender(mpsc::Sender<LivePiece>);

impl AnswerSink {
    /// A sink whose message is written as soon as the messages before it.
    pub(crate) fn live() -> (Self, OutgoingMessage) {
        let (sender, pieces) = mpsc::channel(LIVE_PIECES_MAX);
        (Self::Live(LiveSender(sender)), OutgoingMessage::Live(LiveMessage(pieces)))
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }

    pub(crate) async fn push(&mut self, piece: Bytes) -> Result<(), SpoolError> {
        match self {
            Self::Spool(spool) => spool.push(piece).await,
            // An empty piece would end a chunked body.
            Self::Live(_) if piece.is_empty() => Ok(()),
            Self::Live(LiveSender(sender)) => {
                // An error means that the client disconnected; the reading side detects this by itself.
                let _ = sender.send(LivePiece::Bytes(piece)).await;
                Ok(())
            }
        }
    }

    /// Ends the message. Returns it if it is complete only now.
    pub(crate) async fn finish(self) -> Result<Option<OutgoingMessage>, SpoolError> {
        match self {
            Self::Spool(mut spool) => {
                spool.finish().await?;
                Ok(Some(OutgoingMessage::Spooled(spool)))
            }
            Self::Live(LiveSender(sender)) => {
                let _ = sender.send(LivePiece::End).await;
                Ok(None)
            }
        }
    }
}

pub(crate) struct Outbox {
    messages: mpsc::Receiver<OutgoingMessage>,
    /// The open requests; closed when the connection accepts no more.
    tasks: TaskTracker,
}

impl Outbox {
    pub(crate) fn new(messages: mpsc::Receiver<OutgoingMessage>, tasks: TaskTracker) -> Self {
        Self { messages, tasks }
    }

    /// The next message; `None` once no more requests are accepted and all open ones are answered.
    pub(crate) async fn next(&mut self) -> Option<OutgoingMessage> {
        tokio::select! {
            biased;
            message = self.messages.recv() => message,
            () = self.tasks.wait() => {
                self.messages.close();
                self.messages.recv().await
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

/// Threshold in bytes. Larger answers go to a file, and are read from it in pieces of this size.
const MEMORY_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SpoolError {
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
    #[error("cannot store the answer on disk: {0}")]
    Io(#[from] io::Error),
}

impl SpoolError {
    /// The error for the client. The cause of a disk failure is its detail, for the log.
    pub(crate) fn to_error(&self) -> Error {
        let (kind, message) = match self {
            Self::TooLarge(_) => return Error::new(ErrorKind::TooLarge, self.to_string()),
            Self::Io(error) => (error.kind(), "the node cannot buffer the answer: its temporary folder"),
        };
        let reason = match kind {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                "has no space left"
            }
            _ => "cannot be written",
        };
        Error::new(ErrorKind::Unavailable, format!("{message} {reason}"))
            .with_hint(
                "Request less, try again later, or use Streamable HTTP, which sends answers without storing them.",
            )
            .with_detail(self.to_string())
    }
}

#[derive(Debug)]
pub(crate) struct Spool {
    bytes_max: u64,
    written_bytes: u64,
    memory: Vec<u8>,
    file: Option<File>,
    is_read: bool,
}

impl Spool {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, written_bytes: 0, memory: Vec::new(), file: None, is_read: false }
    }

    pub(crate) async fn push(&mut self, piece: Bytes) -> Result<(), SpoolError> {
        self.written_bytes += piece.len() as u64;
        if self.written_bytes > self.bytes_max {
            return Err(SpoolError::TooLarge(self.bytes_max));
        }
        self.memory.extend_from_slice(&piece);
        if self.memory.len() > MEMORY_BYTES_MAX {
            self.flush_to_file().await?;
        }
        Ok(())
    }

    /// Waits until everything is written, so that a full disk is noticed before the answer begins.
    pub(crate) async fn finish(&mut self) -> Result<(), SpoolError> {
        if let Some(file) = &mut self.file {
            file.flush().await?;
        }
        Ok(())
    }

    pub(crate) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if let Some(file) = &mut self.file {
            if !std::mem::replace(&mut self.is_read, true) {
                file.rewind().await?;
            }
            let mut piece = BytesMut::with_capacity(MEMORY_BYTES_MAX);
            if file.read_buf(&mut piece).await? > 0 {
                return Ok(Some(piece.freeze()));
            }
            self.file = None;
        }
        let rest = std::mem::take(&mut self.memory);
        Ok((!rest.is_empty()).then(|| rest.into()))
    }

    async fn flush_to_file(&mut self) -> Result<(), SpoolError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::from_std(tempfile::tempfile()?)),
        };
        file.write_all(&self.memory).await?;
        self.memory.clear();
        Ok(())
    }
}
