//! Outgoing messages: a bounded queue between the open requests of a connection and the writer.

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::spool::Spool;

/// An outgoing message.
#[derive(Debug)]
pub(crate) enum OutgoingMessage {
    /// A short message.
    Whole(Bytes),
    /// A message that was spooled until it was complete.
    Spooled(Spool),
}

impl OutgoingMessage {
    /// The next bytes of the message; `None` at its end.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Bytes>> {
        match self {
            Self::Whole(bytes) => Ok(Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty())),
            Self::Spooled(spool) => spool.next().await,
        }
    }
}

/// The receiving end of the outgoing queue of one connection.
pub(crate) struct Outbox {
    messages: mpsc::Receiver<OutgoingMessage>,
    /// The open requests; closed when the connection accepts no more.
    tasks: TaskTracker,
}

impl Outbox {
    /// Receives the messages of all holders of the sender, until `tasks` has ended.
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

    /// Whether the queue is empty now.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}
