//! Cancels the running statement of a connection, through a second connection to the same address with the same
//! protection.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{CancelToken, NoTls};

use super::environment::socket_name;
use super::error::ConnectErrorKind;
use super::host::ResolvedAddress;
use super::tls::TlsConnector;

const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Cancels the running statement of one connection.
#[derive(Clone)]
pub struct Canceller {
    pub(super) token: CancelToken,
    /// The address of the connection: if a host has several addresses, only this server knows the connection.
    pub(super) address: ResolvedAddress,
    pub(super) port: u16,
    pub(super) connector: Option<TlsConnector>,
}

impl Canceller {
    /// Requests the server to cancel the running statement, and waits until the server has processed the request. A
    /// statement that has already ended is not affected, but the next statement on the same connection could be. Do not
    /// use the connection for anything else afterwards.
    ///
    /// # Errors
    /// Fails if the request could not be delivered in time. The server does not report whether there was a statement to
    /// cancel.
    pub async fn cancel(&self) -> Result<(), ConnectErrorKind> {
        timeout(CANCEL_TIMEOUT, self.send()).await.unwrap_or(Err(ConnectErrorKind::TimedOut(CANCEL_TIMEOUT)))
    }

    async fn send(&self) -> Result<(), ConnectErrorKind> {
        let (address, port) = match &self.address {
            ResolvedAddress::Network { address, .. } => (*address, self.port),
            ResolvedAddress::Socket(folder) => return self.send_to_socket(&folder.join(socket_name(self.port))).await,
        };
        let stream = TcpStream::connect((address, port)).await.map_err(|error| ConnectErrorKind::from_io(&error))?;
        match self.connector.clone() {
            Some(mut tls) => {
                let Ok(tls) = MakeTlsConnect::<OpenUntilClosed<TcpStream>>::make_tls_connect(&mut tls, "");
                self.send_over(stream, TlsUntilClosed(tls)).await
            }
            None => self.send_over(stream, NoTls).await,
        }
    }

    #[cfg(unix)]
    async fn send_to_socket(&self, path: &Path) -> Result<(), ConnectErrorKind> {
        let stream = tokio::net::UnixStream::connect(path).await.map_err(|error| ConnectErrorKind::from_io(&error))?;
        self.send_over(stream, NoTls).await
    }

    #[cfg(not(unix))]
    async fn send_to_socket(&self, _: &Path) -> Result<(), ConnectErrorKind> {
        Err(ConnectErrorKind::NoSocket)
    }

    async fn send_over<S, T>(&self, stream: S, tls: T) -> Result<(), ConnectErrorKind>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: TlsConnect<OpenUntilClosed<S>>,
    {
        let sent = self.token.cancel_query_raw(OpenUntilClosed(stream), tls).await;
        sent.map_err(|error| ConnectErrorKind::from_driver(&error))
    }
}

tidegate_core::impl_debug!(Canceller { address });

/// A stream whose shutdown waits until the other side closes the connection, as libpq does.
///
/// The driver shuts down the connection of a cancel request as soon as the request is sent. A server has read the
/// request by then. A pooler assumes that the client is gone and drops the request, or terminates, as PgBouncer 1.18
/// and 1.19 do.
struct OpenUntilClosed<S>(S);

impl<S: AsyncRead + Unpin> AsyncRead for OpenUntilClosed<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for OpenUntilClosed<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(context))?;
        let mut ignored = [0; 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut ignored);
            // A broken connection counts as closed: in both cases the server has processed the request.
            let read = ready!(self.as_mut().poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: TlsStream + Unpin> TlsStream for OpenUntilClosed<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.0.channel_binding()
    }
}

/// A TLS connector with such streams: TLS has a close message of its own.
struct TlsUntilClosed<T>(T);

impl<S, T> TlsConnect<S> for TlsUntilClosed<T>
where
    T: TlsConnect<S>,
    T::Future: Send + 'static,
{
    type Stream = OpenUntilClosed<T::Stream>;
    type Error = T::Error;
    type Future = BoxFuture<'static, Result<Self::Stream, Self::Error>>;

    fn connect(self, stream: S) -> Self::Future {
        let connected = self.0.connect(stream);
        Box::pin(async { connected.await.map(OpenUntilClosed) })
    }
}
