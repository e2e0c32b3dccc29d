//! An open connection: the client, the task that moves its bytes, and what is known about the server.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::DbError;
use tokio_postgres::{AsyncMessage, Client, Connection, SimpleQueryMessage};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::cancel::Canceller;
use super::target::SessionRole;

/// How long a connection that nobody needs any more may take for outstanding answers and its goodbye.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(1);

/// Remarks of the server that wait for whoever listens to them; further ones are lost.
const NOTICES_MAX: usize = 1000;

/// Where the server's remarks go beside the log.
type NoticeSender = Arc<Mutex<Option<mpsc::Sender<DbError>>>>;

/// Where what the server says of itself goes.
struct MessageSinks {
    notice_sender: NoticeSender,
    notification_count: watch::Sender<u64>,
}

/// An open, authenticated connection. Dropped, it says goodbye to the server and ends; what it is busy with then may
/// take a second more before it is cancelled.
pub struct OpenConnection {
    client: Client,
    server_version: ServerVersion,
    encrypted: bool,
    canceller: Canceller,
    notice_sender: NoticeSender,
    task: JoinHandle<()>,
    /// How many notifications have come.
    notifications: watch::Receiver<u64>,
    /// Tells the task that nobody needs the connection any more.
    shutdown: DropGuard,
}

impl OpenConnection {
    /// Spawns the task that moves the connection's bytes.
    pub(super) fn start<S, T>(
        client: Client,
        connection: Connection<S, T>,
        canceller: Canceller,
        encrypted: bool,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let server_version = ServerVersion::parse(connection.parameter("server_version").unwrap_or_default());
        let unneeded = CancellationToken::new();
        let notice_sender = NoticeSender::default();
        let (notified, notifications) = watch::channel(0);
        let message_sinks = MessageSinks { notice_sender: notice_sender.clone(), notification_count: notified };
        let task = tokio::spawn(drive_connection(connection, unneeded.clone(), canceller.clone(), message_sinks));
        let shutdown = unneeded.drop_guard();
        Self { client, server_version, encrypted, canceller, notice_sender, task, notifications, shutdown }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The client, to begin a transaction with.
    pub fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The server's version.
    pub fn server_version(&self) -> ServerVersion {
        self.server_version
    }

    /// Whether it is protected by TLS.
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Waits for a notification; those that come meanwhile count as one. False when the connection has ended.
    pub(crate) async fn wait_for_notification(&mut self) -> bool {
        self.notifications.changed().await.is_ok()
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed() || self.task.is_finished()
    }

    /// What cancels the statement that the connection is busy with.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// What the server remarks from now on (`NOTICE` and its like), in order. Each is there before the answer that it
    /// belongs to has ended. Who listened before hears no more.
    pub(crate) fn subscribe_notices(&self) -> mpsc::Receiver<DbError> {
        let (sender, receiver) = mpsc::channel(NOTICES_MAX);
        *self.notice_sender.lock() = Some(sender);
        receiver
    }

    /// Says goodbye to the server and waits until the connection has ended, which takes three seconds at most: one
    /// for what is outstanding, two to cancel it.
    pub async fn close(self) {
        let Self { client, task, shutdown: unneeded, .. } = self;
        drop(client);
        drop(unneeded);
        // The task bounds itself; that it may have panicked was logged where it happened.
        let _ = task.await;
    }

    /// Whether the session is of the kind `role`.
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

impl fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected")
            .field("server_version", &self.server_version)
            .field("encrypted", &self.encrypted)
            .finish_non_exhaustive()
    }
}

const TRANSACTION_READ_ONLY_SQL: &str = "SHOW transaction_read_only";
const IS_STANDBY_SQL: &str = "SELECT pg_catalog.pg_is_in_recovery()";

/// Moves bytes until the connection ends, or until nobody needs it and it had its time to say goodbye.
///
/// A server that computes does not notice that nobody listens any more, and the driver reads an answer to its last row
/// even if nobody wants it: what is still outstanding then is cancelled.
async fn drive_connection<S, T>(
    mut connection: Connection<S, T>,
    unneeded: CancellationToken,
    canceller: Canceller,
    message_sinks: MessageSinks,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut end = pin!(async {
        loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                // What a notice says may be anybody's data.
                Some(Ok(AsyncMessage::Notice(notice))) => {
                    tracing::debug!(severity = notice.severity(), code = notice.code().code(), "postgres notice");
                    if let Some(listener) = message_sinks.notice_sender.lock().as_ref() {
                        // Nobody waits for room: what is too much is lost.
                        let _ = listener.try_send(notice);
                    }
                }
                Some(Ok(AsyncMessage::Notification(_))) => {
                    message_sinks.notification_count.send_modify(|count| *count += 1)
                }
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
        Ok(()) => tracing::debug!("postgres connection dropped, and what it was busy with cancelled"),
        Err(error) => tracing::debug!(%error, "postgres connection dropped while it was busy"),
    }
}

/// A server's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion(u32);

impl ServerVersion {
    /// As `server_version_num` has it: 150008 for 15.8; 0 if the server did not say.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Reads what the server says of itself: `15.8 (Debian 15.8-1)`, `18beta1`, `9.6.24`.
    fn parse(text: &str) -> Self {
        let digits = text.split(|character: char| !character.is_ascii_digit() && character != '.').next();
        let mut parts = digits.unwrap_or_default().split('.').map(|part| part.parse::<u32>().unwrap_or(0).min(9999));
        let mut next = || parts.next().unwrap_or(0);
        let (major, second, third) = (next(), next(), next());
        // Before version 10 two numbers made up the major version.
        Self(if major >= 10 { major * 10_000 + second } else { major * 10_000 + second * 100 + third })
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, rest) = (self.0 / 10_000, self.0 % 10_000);
        match major {
            0..10 => write!(f, "{major}.{}.{}", rest / 100, rest % 100),
            _ => write!(f, "{major}.{rest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_write_them() {
        let read = |text| ServerVersion::parse(text).number();
        assert_eq!(read("15.8 (Debian 15.8-0+deb12u1)"), 150_008);
        assert_eq!(read("18beta1"), 180_000);
        assert_eq!(read("9.6.24"), 90_624);
        assert_eq!(read("13.0.0"), 130_000);
        assert_eq!(read("nothing"), 0);
        assert_eq!(read(""), 0);
        assert!(ServerVersion::parse("17.4") > ServerVersion::parse("9.6.24"));
        assert_eq!(ServerVersion::parse("17.4").to_string(), "17.4");
        assert_eq!(ServerVersion::parse("9.6.24").to_string(), "9.6.24");
    }
}
