//! Writing: messages become text messages, long ones in fragments, between which pings and pongs have their place.

use bytes::Bytes;
use futures::{Sink, SinkExt};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::liveness::Liveness;
use crate::outbox::{Outbox, OutgoingMessage};

/// Longer messages go out in fragments of that size.
pub(super) const FRAGMENT_BYTES_MAX: usize = 64 * 1024;

/// Writes what comes out of `outbox`, and a ping whenever one is asked for, until the conversation ends.
///
/// # Errors
/// When the connection breaks, or the disk that kept an answer.
pub(super) async fn write_messages(
    mut outbox: Outbox,
    mut pings: mpsc::Receiver<()>,
    sink: impl Sink<Message, Error = Error> + Unpin,
    liveness: &Liveness,
) -> Result<(), Error> {
    let mut writer = FrameWriter { sink };
    loop {
        tokio::select! {
            biased;
            Some(()) = pings.recv() => writer.ping().await?,
            message = outbox.next() => {
                let Some(message) = message else { return Ok(()) };
                liveness.set_writing(true);
                writer.write_message(message, &mut pings).await?;
                if outbox.is_empty() {
                    writer.sink.flush().await?;
                }
                liveness.set_writing(false);
            }
        }
    }
}

struct FrameWriter<S> {
    sink: S,
}

impl<S: Sink<Message, Error = Error> + Unpin> FrameWriter<S> {
    async fn ping(&mut self) -> Result<(), Error> {
        self.sink.send(Message::Ping(Bytes::new())).await
    }

    async fn write_message(
        &mut self,
        mut message: OutgoingMessage,
        pings: &mut mpsc::Receiver<()>,
    ) -> Result<(), Error> {
        let mut opcode = Data::Text;
        // The last fragment says that it is the last, so each waits until the next one is there.
        let mut waiting: Option<Bytes> = None;
        while let Some(mut piece) = message.next().await? {
            while !piece.is_empty() {
                let fragment = piece.split_to(piece.len().min(FRAGMENT_BYTES_MAX));
                if let Some(fragment) = waiting.replace(fragment) {
                    self.write_fragment(fragment, opcode, false).await?;
                    opcode = Data::Continue;
                }
                if pings.try_recv().is_ok() {
                    self.ping().await?;
                }
            }
        }
        self.write_fragment(waiting.unwrap_or_default(), opcode, true).await
    }

    async fn write_fragment(&mut self, bytes: Bytes, opcode: Data, is_last: bool) -> Result<(), Error> {
        let frame = Frame::message(bytes, OpCode::Data(opcode), is_last);
        self.sink.feed(Message::Frame(frame)).await
    }
}
