//! One connection attempt: one address of one host, with a time limit.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::cancel::Canceller;
#[cfg(unix)]
use super::environment::socket_name;
use super::error::{AttemptError, ConnectErrorKind};
use super::host::{Host, ResolvedAddress};
use super::message_bound::{BoundedMessages, BoundedTls};
use super::open_connection::OpenConnection;
use super::socket::connect_tcp;
use super::target::{ConnectTarget, SessionRole};
use super::tls::TlsConnector;
use super::tls_settings::TlsMode;

/// How long the probe waits for an answer of a server that did not answer like PostgreSQL.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
const PROBE_BYTES: usize = 2;
/// The SSLRequest message, by which a client requests TLS.
/// <https://www.postgresql.org/docs/current/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-SSLREQUEST>
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A connection attempt at one address of one host.
pub(super) struct ConnectAttempt<'a> {
    pub(super) target: &'a ConnectTarget,
    pub(super) application_name: &'a str,
    pub(super) host: &'a Host,
    pub(super) address: &'a ResolvedAddress,
    /// `None` disables TLS.
    pub(super) tls: Option<&'a MakeRustlsConnect>,
    pub(super) session_role: SessionRole,
}

impl ConnectAttempt<'_> {
    /// Connects with and without TLS, in the order that `sslmode` sets, within the time limit of an address.
    pub(super) async fn run(&self) -> Result<OpenConnection, AttemptError> {
        let limit = self.target.connect_timeout;
        let outcome = timeout(limit, self.try_tls_modes()).await;
        let mut error = match outcome.unwrap_or_else(|_| Err(self.error(ConnectErrorKind::TimedOut(limit)))) {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        if may_not_be_postgres(&error.kind) && self.probe_is_not_postgres().await {
            error.kind = ConnectErrorKind::NotPostgres;
        }
        if let ResolvedAddress::Network { name, address } = self.address
            && *name != address.to_string()
        {
            error.location = format!("{} ({address})", self.host);
        }
        Err(error)
    }

    fn error(&self, kind: ConnectErrorKind) -> AttemptError {
        AttemptError::new(self.target, self.host, kind)
    }

    async fn try_tls_modes(&self) -> Result<OpenConnection, AttemptError> {
        let is_socket = matches!(self.address, ResolvedAddress::Socket(_));
        match self.target.tls.mode {
            _ if is_socket || self.tls.is_none() => self.open(SslMode::Disable).await,
            TlsMode::Disable => self.open(SslMode::Disable).await,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => self.open(SslMode::Require).await,
            TlsMode::Prefer => match self.open(SslMode::Prefer).await {
                Err(first) if first.encrypted && may_succeed_without_tls(&first.kind) => {
                    self.open(SslMode::Disable).await.map_err(|_| first)
                }
                outcome => outcome,
            },
            TlsMode::Allow => match self.open(SslMode::Disable).await {
                Err(first) if may_succeed_with_other_tls_mode(&first.kind) => {
                    let second = self.open(SslMode::Require).await;
                    second.map_err(|second| if second.kind.is_about_tls() { first } else { second })
                }
                outcome => outcome,
            },
        }
    }

    async fn open(&self, mode: SslMode) -> Result<OpenConnection, AttemptError> {
        let config = self.config(mode);
        let connector = match (self.tls, self.address) {
            (Some(tls), ResolvedAddress::Network { name, address }) => {
                Some(TlsConnector::new(tls.clone(), name, &address.to_string(), self.target.tls.mode))
            }
            // Unix sockets never use TLS.
            _ => None,
        };
        let was_encrypted = || connector.as_ref().is_some_and(TlsConnector::was_used);
        let connected = match self.address {
            ResolvedAddress::Network { address, .. } => match connect_tcp(*address, self.host.port, &config).await {
                Ok(stream) => self.start(stream, &config, connector.clone()).await,
                Err(error) => return Err(self.error(ConnectErrorKind::from_io(&error))),
            },
            #[cfg(unix)]
            ResolvedAddress::Socket(folder) => {
                match UnixStream::connect(folder.join(socket_name(self.host.port))).await {
                    Ok(stream) => self.start(stream, &config, connector.clone()).await,
                    Err(error) => return Err(self.error(ConnectErrorKind::from_io(&error))),
                }
            }
            #[cfg(not(unix))]
            ResolvedAddress::Socket(_) => return Err(self.error(ConnectErrorKind::NoSocket)),
        };
        let failed = |kind| AttemptError { encrypted: was_encrypted(), ..self.error(kind) };
        let connection = connected.map_err(|error| {
            let server_message = error.as_db_error().map(|error| error.message().to_owned());
            AttemptError { server_message, ..failed(ConnectErrorKind::from_driver(&error)) }
        })?;
        match connection.matches_session_role(self.session_role).await {
            Ok(true) => Ok(connection),
            Ok(false) => Err(failed(ConnectErrorKind::WrongSession(self.session_role))),
            Err(error) => Err(failed(ConnectErrorKind::from_driver(&error))),
        }
    }

    /// Authenticates on `stream`, with TLS as in `config` if there is a connector.
    async fn start<S>(
        &self,
        stream: S,
        config: &Config,
        connector: Option<TlsConnector>,
    ) -> Result<OpenConnection, tokio_postgres::Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let message_bytes_max = self.target.message_bytes_max;
        let canceller = |client: &Client, connector| Canceller {
            token: client.cancel_token(),
            address: self.address.clone(),
            port: self.host.port,
            connector,
        };
        let Some(mut tls) = connector.clone() else {
            let stream = BoundedMessages::new(stream, message_bytes_max, false);
            let (client, connection) = config.connect_raw(stream, NoTls).await?;
            let canceller = canceller(&client, None);
            return Ok(OpenConnection::start(client, connection, canceller));
        };
        let negotiates_tls =
            config.get_ssl_mode() != SslMode::Disable && config.get_ssl_negotiation() == SslNegotiation::Postgres;
        let stream = BoundedMessages::new(stream, message_bytes_max, negotiates_tls);
        let Ok(handshake) = MakeTlsConnect::<S>::make_tls_connect(&mut tls, "");
        let tls = BoundedTls { connector: handshake, message_bytes_max };
        let (client, connection) = config.connect_raw(stream, tls).await?;
        let canceller = canceller(&client, connector);
        Ok(OpenConnection::start(client, connection, canceller))
    }

    /// The settings of the driver; it receives an open stream, so they contain no address.
    fn config(&self, mode: SslMode) -> Config {
        let mut config = self.host.config.clone();
        config.ssl_mode(mode);
        if mode != SslMode::Require {
            config.ssl_negotiation(SslNegotiation::Postgres);
        }
        if config.get_application_name().is_none() {
            config.application_name(self.application_name);
        }
        config
    }

    /// Sends an SSLRequest. A PostgreSQL server answers S or N and then waits, or answers E with an error.
    async fn probe_is_not_postgres(&self) -> bool {
        let ResolvedAddress::Network { address, .. } = self.address else { return false };
        let mut answer = Vec::new();
        let probe = async {
            let mut stream = TcpStream::connect((*address, self.host.port)).await?;
            stream.write_all(&TLS_REQUEST).await?;
            while answer.len() < PROBE_BYTES && stream.read_buf(&mut answer).await? > 0 {}
            std::io::Result::Ok(())
        };
        // However the probe ends, the bytes received so far are the answer.
        let _ = timeout(PROBE_TIMEOUT, probe).await;
        !matches!(answer.as_slice(), [] | [b'S' | b'N'] | [b'E', ..])
    }
}

fn may_not_be_postgres(kind: &ConnectErrorKind) -> bool {
    use ConnectErrorKind::{Closed, ConnectionFailed, TlsFailed, TlsNotOffered};
    matches!(kind, Closed | TlsNotOffered | TlsFailed(_) | ConnectionFailed(_))
}

/// Like `may_succeed_with_other_tls_mode`, and also for broken connections: a device in between may block TLS.
fn may_succeed_without_tls(kind: &ConnectErrorKind) -> bool {
    may_succeed_with_other_tls_mode(kind)
        || matches!(kind, ConnectErrorKind::Closed | ConnectErrorKind::ConnectionFailed(_))
}

/// Whether an attempt with the other TLS setting may succeed. A wrong password stays wrong, and a second attempt could
/// lock the account.
fn may_succeed_with_other_tls_mode(kind: &ConnectErrorKind) -> bool {
    kind.is_about_tls() || matches!(kind, ConnectErrorKind::RefusedByRules)
}
