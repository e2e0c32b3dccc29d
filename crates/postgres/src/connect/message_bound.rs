//! A stream of messages of the server, each of bounded size.
//!
//! The driver collects a message until it is complete, and a row may have a gigabyte. This stream reads the length in
//! the header of each message. In place of a message that is too large, the driver receives an error of the server and
//! the end of the stream: the statement fails with that error, and the connection is dropped.
//! <https://www.postgresql.org/docs/current/protocol-message-formats.html>

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// The default of the maximum size of one message of the server, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

const HEADER_BYTES: usize = 5;
const READY_FOR_QUERY: u8 = b'Z';
const DATA_ROW: u8 = b'D';

pub(super) struct BoundedMessages<S> {
    stream: S,
    message_bytes_max: usize,
    /// The beginning of a header whose end has not arrived. It is held back, since the whole message may be replaced.
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// The bytes of the current message that have not arrived.
    bytes_left: usize,
    /// Bytes for the driver that come before those of the stream.
    ready: Bytes,
    has_ended: bool,
    is_authenticated: bool,
}

impl<S> BoundedMessages<S> {
    /// With `negotiates_tls`, the first byte is the answer to a request of TLS, which is no message.
    pub(super) fn new(stream: S, message_bytes_max: usize, negotiates_tls: bool) -> Self {
        Self {
            stream,
            message_bytes_max,
            header: [0; HEADER_BYTES],
            header_bytes: 0,
            bytes_left: usize::from(negotiates_tls),
            ready: Bytes::new(),
            has_ended: false,
            is_authenticated: false,
        }
    }

    /// The number of bytes at the beginning of `arrived` that the driver may receive.
    fn check_arrived(&mut self, arrived: &[u8]) -> io::Result<usize> {
        let mut position = 0;
        loop {
            let of_message = self.bytes_left.min(arrived.len() - position);
            self.bytes_left -= of_message;
            position += of_message;
            let rest = &arrived[position..];
            let Some(header) = rest.first_chunk::<HEADER_BYTES>() else {
                self.header[..rest.len()].copy_from_slice(rest);
                self.header_bytes = rest.len();
                return Ok(position);
            };
            if !self.begin_message(*header)? {
                return Ok(position);
            }
            position += HEADER_BYTES;
        }
    }

    /// Begins the message of `header`. Returns whether it is small enough; otherwise the error takes its place.
    fn begin_message(&mut self, [kind, length @ ..]: [u8; HEADER_BYTES]) -> io::Result<bool> {
        // The length counts itself, but not the byte of the kind.
        let length = u32::from_be_bytes(length) as usize;
        if length <= self.message_bytes_max {
            self.bytes_left = length.saturating_sub(4);
            self.is_authenticated |= kind == READY_FOR_QUERY;
            return Ok(true);
        }
        if !self.is_authenticated {
            // Until then, the messages of PostgreSQL are short.
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the server does not use the protocol of PostgreSQL",
            ));
        }
        let subject = if kind == DATA_ROW { "row" } else { "message" };
        self.ready = error_response(&format!(
            "the server sent a {subject} of {length} bytes; the limit is {} bytes (max_message_bytes)",
            self.message_bytes_max
        ));
        self.has_ended = true;
        Ok(false)
    }
}

/// An error of the server in its wire format, with the SQLSTATE of a program limit.
fn error_response(message: &str) -> Bytes {
    let hint = "Select less of long values, such as left(column, 10000), or fewer columns.";
    let mut fields = BytesMut::new();
    for (field, value) in [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', "54000"), (b'M', message), (b'H', hint)] {
        fields.put_u8(field);
        fields.put_slice(value.as_bytes());
        fields.put_u8(0);
    }
    fields.put_u8(0);
    let mut response = BytesMut::with_capacity(HEADER_BYTES + fields.len());
    response.put_u8(b'E');
    response.put_u32(fields.len() as u32 + 4);
    response.put(fields);
    response.freeze()
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedMessages<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.ready.has_remaining() {
                let count = this.ready.len().min(into.remaining());
                into.put_slice(&this.ready.split_to(count));
                return Poll::Ready(Ok(()));
            }
            if this.has_ended {
                return Poll::Ready(Ok(()));
            }
            if this.header_bytes > 0 {
                let mut rest = ReadBuf::new(&mut this.header[this.header_bytes..]);
                ready!(Pin::new(&mut this.stream).poll_read(context, &mut rest))?;
                let count = rest.filled().len();
                this.header_bytes += count;
                if count == 0 || this.header_bytes == HEADER_BYTES {
                    let arrived = std::mem::take(&mut this.header_bytes);
                    if count == 0 || this.begin_message(this.header)? {
                        this.ready = Bytes::copy_from_slice(&this.header[..arrived]);
                        this.has_ended = count == 0;
                    }
                }
                continue;
            }
            let start = into.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(context, into))?;
            let arrived = into.filled().len() - start;
            let passed = this.check_arrived(&into.filled()[start..]);
            into.set_filled(start + *passed.as_ref().unwrap_or(&0));
            let passed = passed?;
            // Without new bytes, the stream would seem to have ended.
            if passed > 0 || arrived == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedMessages<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: TlsStream + Unpin> TlsStream for BoundedMessages<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

/// A TLS connector whose streams have bounded messages: those inside of TLS, instead of those below it.
pub(super) struct BoundedTls<T> {
    pub(super) connector: T,
    pub(super) message_bytes_max: usize,
}

impl<S, T> TlsConnect<BoundedMessages<S>> for BoundedTls<T>
where
    T: TlsConnect<S>,
    T::Future: Send + 'static,
{
    type Stream = BoundedMessages<T::Stream>;
    type Error = T::Error;
    type Future = BoxFuture<'static, Result<Self::Stream, Self::Error>>;

    fn connect(self, stream: BoundedMessages<S>) -> Self::Future {
        let Self { connector, message_bytes_max } = self;
        let connected = connector.connect(stream.stream);
        Box::pin(async move { Ok(BoundedMessages::new(connected.await?, message_bytes_max, false)) })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&[kind][..], &length, body].concat()
    }

    /// What the driver receives if `sent` arrives in pieces of `piece` bytes.
    async fn received(sent: &[u8], piece: usize, negotiates_tls: bool) -> io::Result<Vec<u8>> {
        let (mut server, client) = tokio::io::duplex(1 << 16);
        let mut bounded = BoundedMessages::new(client, 20, negotiates_tls);
        let write = async {
            for piece in sent.chunks(piece) {
                server.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            drop(server);
        };
        let mut all = Vec::new();
        let read = bounded.read_to_end(&mut all);
        let (read, ()) = tokio::join!(read, write);
        read.map(|_| all)
    }

    #[tokio::test]
    async fn passes_messages_that_are_small_enough() {
        let sent = [message(b'Z', b"I"), message(b'D', &[7; 16]), message(b'D', b""), message(b'C', b"x")].concat();
        for piece in [1, 2, 3, 5, 7, 100] {
            assert_eq!(received(&sent, piece, false).await.unwrap(), sent, "{piece}");
            let answered = [b"N", sent.as_slice()].concat();
            assert_eq!(received(&answered, piece, true).await.unwrap(), answered, "{piece}");
        }
        let cut = &sent[..sent.len() - 3];
        assert_eq!(received(cut, 3, false).await.unwrap(), cut);
    }

    #[tokio::test]
    async fn replaces_a_message_that_is_too_large_by_an_error() {
        let before = [message(b'Z', b"I"), message(b'D', &[7; 16])].concat();
        let sent = [before.as_slice(), &message(b'D', &[7; 17]), &message(b'D', b"later")].concat();
        for piece in [1, 2, 3, 5, 7, 100] {
            let all = received(&sent, piece, false).await.unwrap();
            let (passed, error) = all.split_at(before.len());
            assert_eq!(passed, before, "{piece}");
            assert_eq!(error[0], b'E');
            let text = String::from_utf8_lossy(error);
            assert!(text.contains("a row of 21 bytes; the limit is 20 bytes") && !text.contains("later"), "{text}");
        }
    }

    #[tokio::test]
    async fn large_message_of_another_protocol_is_an_error() {
        let error = received(b"HTTP/1.1 400 Bad Request", 100, false).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
