//! An open connection: the client, the task that drives the connection, and properties of the server.
//!
//! Its running statement is cancelled through a second connection to the same address with the same protection.

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::DbError;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{AsyncMessage, CancelToken, Client, Connection, NoTls, SimpleQueryMessage};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::environment::socket_name;
use super::error::ConnectErrorKind;
use super::tls::TlsConnector;
use super::{ResolvedAddress, SessionRole};

/// The time limit for outstanding answers and the Terminate message after the connection is dropped.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of notices in the queue of a subscriber; further notices are lost.
const NOTICES_MAX: usize = 1000;

type NoticeSender = Arc<Mutex<Option<mpsc::Sender<DbError>>>>;

/// An open, authenticated connection. When it is dropped, it sends Terminate and closes. A running statement may take
/// one more second before it is cancelled.
pub struct OpenConnection {
    client: Client,
    server_version: u32,
    canceller: Canceller,
    notice_sender: NoticeSender,
    task: JoinHandle<()>,
    notifications: watch::Receiver<u64>,
    /// Signals to the task that the connection was dropped.
    shutdown: DropGuard,
}

impl OpenConnection {
    pub(super) fn start<S, T>(client: Client, connection: Connection<S, T>, canceller: Canceller) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let server_version = parse_version(connection.parameter("server_version").unwrap_or_default());
        let unneeded = CancellationToken::new();
        let notice_sender = NoticeSender::default();
        let (count, notifications) = watch::channel(0);
        let driver = drive_connection(connection, unneeded.clone(), canceller.clone(), notice_sender.clone(), count);
        let task = tokio::spawn(driver);
        let shutdown = unneeded.drop_guard();
        Self { client, server_version, canceller, notice_sender, task, notifications, shutdown }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The version of the server as in `server_version_num`: 150008 for 15.8; 0 if unknown.
    pub fn server_version(&self) -> u32 {
        self.server_version
    }

    /// Waits for a notification. Several notifications that arrive before count as one. Returns false after the
    /// connection has ended.
    pub async fn wait_for_notification(&mut self) -> bool {
        self.notifications.changed().await.is_ok()
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed() || self.task.is_finished()
    }

    /// The handle that cancels the running statement of the connection.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Subscribes to the notices of the server (`NOTICE` and similar), in order. Each notice arrives before the end of
    /// the answer that it belongs to. A new subscription replaces the previous one.
    pub fn subscribe_notices(&self) -> mpsc::Receiver<DbError> {
        let (sender, receiver) = mpsc::channel(NOTICES_MAX);
        *self.notice_sender.lock() = Some(sender);
        receiver
    }

    /// Sends Terminate and waits until the connection has ended. This takes at most three seconds: one for outstanding
    /// answers, two for cancelling the running statement.
    pub async fn close(self) {
        let Self { client, task, shutdown: unneeded, .. } = self;
        drop(client);
        drop(unneeded);
        // The task has its own time limit; a panic was logged where it happened.
        let _ = task.await;
    }

    pub(super) async fn matches_session_role(&self, role: SessionRole) -> Result<bool, tokio_postgres::Error> {
        let (query, expected) = match role {
            SessionRole::Any | SessionRole::PreferStandby => return Ok(true),
            SessionRole::ReadWrite => (TRANSACTION_READ_ONLY_SQL, "off"),
            SessionRole::ReadOnly => (TRANSACTION_READ_ONLY_SQL, "on"),
            SessionRole::Primary => (IS_STANDBY_SQL, "f"),
            SessionRole::Standby => (IS_STANDBY_SQL, "t"),
        };
        let messages = self.client.simple_query(query).await?;
        Ok(messages.iter().any(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0) == Some(expected),
            _ => false,
        }))
    }
}

tidegate_core::impl_debug!(OpenConnection { server_version });

const TRANSACTION_READ_ONLY_SQL: &str = "SHOW transaction_read_only";
const IS_STANDBY_SQL: &str = "SELECT pg_catalog.pg_is_in_recovery()";

/// Drives the connection until it ends, or until it is dropped and the time for termination is over.
///
/// A server that computes does not notice that its client is gone, and the driver reads an answer up to its last row.
/// Therefore a statement that is still running then is cancelled.
async fn drive_connection<S, T>(
    mut connection: Connection<S, T>,
    unneeded: CancellationToken,
    canceller: Canceller,
    notice_sender: NoticeSender,
    notification_count: watch::Sender<u64>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut end = pin!(async {
        loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                // A notice may contain data of any user.
                Some(Ok(AsyncMessage::Notice(notice))) => {
                    tracing::debug!(severity = notice.severity(), code = notice.code().code(), "postgres notice");
                    if let Some(listener) = notice_sender.lock().as_ref() {
                        // Does not wait for room; excess notices are lost.
                        let _ = listener.try_send(notice);
                    }
                }
                Some(Ok(AsyncMessage::Notification(_))) => notification_count.send_modify(|count| *count += 1),
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    let code = error.code().map(|code| code.code().to_owned());
                    tracing::debug!(%error, code, "postgres connection ended");
                    return;
                }
                None => return,
            }
        }
    });
    tokio::select! {
        () = &mut end => return,
        () = unneeded.cancelled() => {}
    }
    if timeout(TERMINATE_TIMEOUT, end).await.is_ok() {
        return;
    }
    match canceller.cancel().await {
        Ok(()) => tracing::debug!("postgres connection dropped; its running statement was cancelled"),
        Err(error) => tracing::debug!(%error, "postgres connection dropped while a statement was running"),
    }
}

/// Parses the version that the server reports: `15.8 (Debian 15.8-1)`, `18beta1`, `9.6.24`.
fn parse_version(text: &str) -> u32 {
    let digits = text.split(|character: char| !character.is_ascii_digit() && character != '.').next();
    let mut parts = digits.unwrap_or_default().split('.').map(|part| part.parse::<u32>().unwrap_or(0).min(9999));
    let mut next = || parts.next().unwrap_or(0);
    let (major, second, third) = (next(), next(), next());
    // Before version 10, the major version consisted of two numbers.
    if major >= 10 { major * 10_000 + second } else { major * 10_000 + second * 100 + third }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_write_them() {
        let read = parse_version;
        assert_eq!(read("15.8 (Debian 15.8-0+deb12u1)"), 150_008);
        assert_eq!(read("18beta1"), 180_000);
        assert_eq!(read("9.6.24"), 90_624);
        assert_eq!(read("13.0.0"), 130_000);
        assert_eq!(read("nothing"), 0);
        assert_eq!(read(""), 0);
    }
}
