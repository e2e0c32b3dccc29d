//! Messages on their way out: a bounded queue between the open requests of a conversation and the one who writes.

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::spool::Spool;

/// A message on its way out.
#[derive(Debug)]
pub(crate) enum OutgoingMessage {
    /// A short one.
    Whole(Bytes),
    /// One that was kept until it was complete.
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

/// Where the messages of one conversation come out, one by one.
pub(crate) struct Outbox {
    messages: mpsc::Receiver<OutgoingMessage>,
    /// The open requests; closed when no more are taken.
    tasks: TaskTracker,
}

impl Outbox {
    /// Takes what the holders of the sender and `tasks` say.
    pub(crate) fn new(messages: mpsc::Receiver<OutgoingMessage>, tasks: TaskTracker) -> Self {
        Self { messages, tasks }
    }

    /// The next message; `None` once no more requests are taken and all that were have been answered.
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

    /// Whether nothing waits to be written now.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}
