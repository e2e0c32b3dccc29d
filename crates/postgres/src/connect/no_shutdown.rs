//! A stream that is not shut down after its last byte was sent.
//!
//! The driver shuts down the connection of a cancel request as soon as the request is sent. A server has read the
//! request by then. A pooler assumes that the client is gone and drops the request, or terminates, as PgBouncer 1.18
//! and 1.19 do. Therefore the sender waits until the other side closes the connection, as libpq does.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// A stream that does not send the end of its data before it is dropped.
pub(super) struct NoShutdownStream<S>(pub(super) S);

impl<S: AsyncRead + Unpin> AsyncRead for NoShutdownStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for NoShutdownStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(context))?;
        Poll::Ready(Ok(()))
    }
}

impl<S: TlsStream + Unpin> TlsStream for NoShutdownStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.0.channel_binding()
    }
}

/// A TLS connector whose streams are not shut down either: TLS has its own close message.
pub(super) struct NoShutdownTls<T>(pub(super) T);

impl<S, T> TlsConnect<S> for NoShutdownTls<T>
where
    T: TlsConnect<S>,
    T::Future: Send + 'static,
{
    type Stream = NoShutdownStream<T::Stream>;
    type Error = T::Error;
    type Future = BoxFuture<'static, Result<Self::Stream, Self::Error>>;

    fn connect(self, stream: S) -> Self::Future {
        let connected = self.0.connect(stream);
        Box::pin(async { connected.await.map(NoShutdownStream) })
    }
}
