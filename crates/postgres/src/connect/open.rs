//! Connects to a target: tries its hosts and their addresses in order. One attempt is one address of one host, with a time
//! limit, and a socket with the keepalive of its settings.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::net::{TcpStream, lookup_host};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

#[cfg(unix)]
use super::environment::socket_name;
use super::error::{AttemptError, ConnectError, ConnectErrorKind};
use super::message_bound::{BoundedMessages, BoundedTls};
use super::open_connection::{Canceller, OpenConnection};
use super::tls::{TlsConnector, TlsMode};
use super::{ConnectTarget, Host, HostLocation, ResolvedAddress, SessionRole, tls};

const ADDRESSES_MAX: usize = 8;

impl ConnectTarget {
    /// Opens a connection and checks that its session has the requested role. The session is named `application_name` in
    /// `pg_stat_activity` and in the server's log, unless the target sets a name. Spawns the task of the connection on
    /// the current runtime.
    ///
    /// # Errors
    /// Fails if no host accepts the connection; each address has a time limit. As in libpq, no further host is tried
    /// after a host that rejects the password or the database.
    pub async fn connect(&self, application_name: &str) -> Result<OpenConnection, ConnectError> {
        let mut failures = Vec::new();
        let tls = match self.load_tls().await {
            Ok(tls) => tls,
            Err(kind) => {
                failures.extend(self.hosts.first().map(|host| AttemptError::new(self, host, kind)));
                return Err(ConnectError::new(self, failures));
            }
        };
        // For `prefer-standby`, all hosts are first tried for a standby.
        let roles = match self.session_role {
            SessionRole::PreferStandby => vec![SessionRole::Standby, SessionRole::Any],
            role => vec![role],
        };
        for session_role in roles {
            // An unmet preference is not an error.
            failures.retain(|error: &AttemptError| !matches!(error.kind, ConnectErrorKind::WrongSession(_)));
            let mut hosts: Vec<&Host> = self.hosts.iter().collect();
            self.shuffle(&mut hosts);
            for host in hosts {
                match self.connect_to(host, application_name, tls.as_ref(), session_role).await {
                    Ok(connected) => return Ok(connected),
                    Err(of_host) => failures.extend(of_host),
                }
                if failures.last().is_some_and(|error| error.kind.is_final()) {
                    return Err(ConnectError::new(self, failures));
                }
            }
        }
        Err(ConnectError::new(self, failures))
    }

    async fn connect_to(
        &self,
        host: &Host,
        application_name: &str,
        tls: Option<&MakeRustlsConnect>,
        session_role: SessionRole,
    ) -> Result<OpenConnection, Vec<AttemptError>> {
        let at = |name: &String, address| ResolvedAddress::Network { name: name.clone(), address };
        let addresses: Vec<ResolvedAddress> = match &host.location {
            HostLocation::Socket(folder) => vec![ResolvedAddress::Socket(folder.clone())],
            HostLocation::Network { name, address: Some(address) } => vec![at(name, *address)],
            HostLocation::Network { name, address: None } => match self.resolve_host(name, host.port).await {
                Ok(addresses) => addresses.into_iter().map(|address| at(name, address)).collect(),
                Err(kind) => return Err(vec![AttemptError::new(self, host, kind)]),
            },
        };
        let mut failures = Vec::new();
        for address in &addresses {
            let attempt = ConnectAttempt { target: self, application_name, host, address, tls, session_role };
            match attempt.run().await {
                Ok(connected) => return Ok(connected),
                Err(error) => failures.push(error),
            }
            if failures.last().is_some_and(|error| error.kind.is_final()) {
                break;
            }
        }
        Err(failures)
    }

    async fn resolve_host(&self, name: &str, port: u16) -> Result<Vec<IpAddr>, ConnectErrorKind> {
        let resolved = timeout(self.connect_timeout, lookup_host((name, port))).await;
        let resolved = resolved.map_err(|_| ConnectErrorKind::TimedOut(self.connect_timeout))?.map_err(|error| {
            tracing::debug!(%error, "a host name has no address");
            ConnectErrorKind::HostNotFound
        })?;
        let mut addresses: Vec<IpAddr> = resolved.map(|address| address.ip()).collect();
        addresses.dedup();
        self.shuffle(&mut addresses);
        addresses.truncate(ADDRESSES_MAX);
        if addresses.is_empty() { Err(ConnectErrorKind::HostNotFound) } else { Ok(addresses) }
    }

    /// Loads the TLS files, if a host is reached over TCP and may use TLS.
    async fn load_tls(&self) -> Result<Option<MakeRustlsConnect>, ConnectErrorKind> {
        let is_network = |host: &Host| matches!(host.location, HostLocation::Network { .. });
        if self.tls.mode == TlsMode::Disable || !self.hosts.iter().any(is_network) {
            return Ok(None);
        }
        let settings = self.tls.clone();
        match spawn_blocking(move || tls::load(&settings)).await {
            Ok(Ok(connect)) => Ok(Some(connect)),
            Ok(Err(error)) => Err(ConnectErrorKind::TlsFiles(error)),
            Err(error) => Err(ConnectErrorKind::TlsFiles(error.to_string())),
        }
    }

    fn shuffle<T>(&self, members: &mut [T]) {
        if !self.shuffles_hosts {
            return;
        }
        for last in (1..members.len()).rev() {
            // The hash maps of the standard library are seeded randomly, which is enough to distribute load.
            let random = RandomState::new().build_hasher().finish();
            members.swap(last, (random % (last as u64 + 1)) as usize);
        }
    }
}

/// How long the probe waits for an answer of a server that did not answer like PostgreSQL.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
const PROBE_BYTES: usize = 2;
/// The SSLRequest message, by which a client requests TLS.
/// <https://www.postgresql.org/docs/current/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-SSLREQUEST>
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A connection attempt at one address of one host.
struct ConnectAttempt<'a> {
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

/// Connects to `address` over TCP. The time limit is that of the caller.
async fn connect_tcp(address: IpAddr, port: u16, config: &Config) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((address, port)).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    #[cfg(target_os = "linux")]
    if let Some(timeout) = config.get_tcp_user_timeout() {
        socket.set_tcp_user_timeout(Some(*timeout))?;
    }
    if config.get_keepalives() {
        socket.set_tcp_keepalive(&tcp_keepalive(config))?;
    }
    Ok(stream)
}

fn tcp_keepalive(config: &Config) -> TcpKeepalive {
    let mut keepalive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    if let Some(interval) = config.get_keepalives_interval() {
        keepalive = keepalive.with_interval(interval);
    }
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    if let Some(retries) = config.get_keepalives_retries() {
        keepalive = keepalive.with_retries(retries);
    }
    keepalive
}
