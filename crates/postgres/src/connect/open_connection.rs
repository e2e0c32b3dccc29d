//! An open connection: the client, the task that drives the connection, and properties of the server.

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
