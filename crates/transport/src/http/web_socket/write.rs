//! Writes messages as text messages, long ones in fragments with pings and pongs between them.

use bytes::Bytes;
use futures::{Sink, SinkExt};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::activity::Liveness;
use crate::outbox::{Outbox, OutgoingMessage};

/// Maximum size of a fragment in bytes; longer messages are split.
pub(super) const FRAGMENT_BYTES_MAX: usize = 64 * 1024;

/// Writes the messages of `outbox`, and a ping for each item of `pings`, until the connection ends.
pub(super) async fn write_messages(
    mut outbox: Outbox,
    mut pings: mpsc::Receiver<()>,
    mut sink: impl Sink<Message, Error = Error> + Unpin,
    liveness: &Liveness,
) -> Result<(), Error> {
    loop {
        tokio::select! {
            biased;
            Some(()) = pings.recv() => sink.send(Message::Ping(Bytes::new())).await?,
            message = outbox.next() => {
                let Some(message) = message else { return Ok(()) };
                liveness.set_writing(true);
                write_message(&mut sink, message, &mut pings).await?;
                if outbox.is_empty() {
                    sink.flush().await?;
                }
                liveness.set_writing(false);
            }
        }
    }
}

async fn write_message(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    mut message: OutgoingMessage,
    pings: &mut mpsc::Receiver<()>,
) -> Result<(), Error> {
    let mut opcode = Data::Text;
    // The last fragment is marked as the last, so each fragment waits until the next one exists.
    let mut waiting: Option<Bytes> = None;
    while let Some(mut piece) = message.next().await? {
        while !piece.is_empty() {
            let fragment = piece.split_to(piece.len().min(FRAGMENT_BYTES_MAX));
            if let Some(fragment) = waiting.replace(fragment) {
                sink.feed(fragment_frame(fragment, opcode, false)).await?;
                opcode = Data::Continue;
            }
            if pings.try_recv().is_ok() {
                sink.send(Message::Ping(Bytes::new())).await?;
            }
        }
    }
    sink.feed(fragment_frame(waiting.unwrap_or_default(), opcode, true)).await
}

fn fragment_frame(bytes: Bytes, opcode: Data, is_last: bool) -> Message {
    Message::Frame(Frame::message(bytes, OpCode::Data(opcode), is_last))
}
