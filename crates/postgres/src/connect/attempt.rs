//! One connection attempt: one address of one host, with a time limit.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::error::DbError;
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::cancel::Canceller;
use super::error::AttemptFailure;
use super::host::{Host, ResolvedAddress};
use super::open_connection::OpenConnection;
use super::problem::ConnectProblem;
use super::target::{ConnectTarget, SessionRole};
use super::tls::TlsConnector;
use super::tls_settings::TlsMode;

/// How long the probe waits for an answer of a server that did not answer like PostgreSQL.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of bytes of that answer that are examined.
const PROBE_BYTES: usize = 2;
/// The SSLRequest message, by which a client requests TLS.
/// <https://www.postgresql.org/docs/current/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-SSLREQUEST>
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// One address of one host.
pub(super) struct ConnectAttempt<'a> {
    pub(super) target: &'a ConnectTarget,
    pub(super) application_name: &'a str,
    pub(super) host: &'a Host,
    pub(super) address: &'a ResolvedAddress,
    /// `None` disables TLS.
    pub(super) tls: Option<&'a MakeRustlsConnect>,
    pub(super) session_role: SessionRole,
}

/// Why an attempt failed, and whether the connection used TLS.
struct AttemptRefusal {
    problem: ConnectProblem,
    server_message: Option<String>,
    encrypted: bool,
}

impl ConnectAttempt<'_> {
    /// Connects with and without TLS, in the order that `sslmode` sets, within the time limit of an address.
    pub(super) async fn run(&self) -> Result<OpenConnection, AttemptFailure> {
        let limit = self.target.connect_timeout;
        let outcome = timeout(limit, self.try_tls_modes()).await;
        let refusal = match outcome {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(refusal)) => refusal,
            Err(_) => {
                AttemptRefusal { problem: ConnectProblem::TimedOut(limit), server_message: None, encrypted: false }
            }
        };
        let problem = if self.may_not_be_postgres(&refusal.problem) && self.probe_is_not_postgres().await {
            ConnectProblem::NotPostgres
        } else {
            refusal.problem
        };
        Err(AttemptFailure {
            location: match self.address {
                ResolvedAddress::Network { name, address } if *name != address.to_string() => {
                    format!("{} ({address})", self.host)
                }
                _ => self.host.to_string(),
            },
            problem,
            server_message: refusal.server_message,
            password_source: self.host.password_source.clone(),
            tls_mode: self.target.tls.mode,
            encrypted: refusal.encrypted,
        })
    }

    async fn try_tls_modes(&self) -> Result<OpenConnection, AttemptRefusal> {
        let is_socket = matches!(self.address, ResolvedAddress::Socket(_));
        match self.target.tls.mode {
            _ if is_socket || self.tls.is_none() => self.open(SslMode::Disable).await,
            TlsMode::Disable => self.open(SslMode::Disable).await,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => self.open(SslMode::Require).await,
            TlsMode::Prefer => match self.open(SslMode::Prefer).await {
                Err(first) if first.encrypted && first.may_succeed_without_tls() => {
                    self.open(SslMode::Disable).await.map_err(|_| first)
                }
                outcome => outcome,
            },
            TlsMode::Allow => match self.open(SslMode::Disable).await {
                Err(first) if first.may_succeed_with_other_tls_mode() => {
                    let second = self.open(SslMode::Require).await;
                    second.map_err(|second| if second.problem.is_about_tls() { first } else { second })
                }
                outcome => outcome,
            },
        }
    }

    async fn open(&self, mode: SslMode) -> Result<OpenConnection, AttemptRefusal> {
        let config = self.config(mode);
        let connector = match (self.tls, self.address) {
            (Some(tls), ResolvedAddress::Network { name, address }) => {
                Some(TlsConnector::new(tls.clone(), name, &address.to_string(), self.target.tls.mode))
            }
            // Unix sockets never use TLS.
            _ => None,
        };
        let was_encrypted = || connector.as_ref().is_some_and(TlsConnector::was_used);
        let canceller = |client: &tokio_postgres::Client| {
            Canceller::new(client.cancel_token(), self.address, self.host.port, connector.clone())
        };
        let opened = match connector.clone() {
            Some(tls) => config.connect(tls).await.map(|(client, connection)| {
                let canceller = canceller(&client);
                OpenConnection::start(client, connection, canceller, was_encrypted())
            }),
            None => config.connect(NoTls).await.map(|(client, connection)| {
                let canceller = canceller(&client);
                OpenConnection::start(client, connection, canceller, false)
            }),
        };
        let refusal = |problem, text| AttemptRefusal { problem, server_message: text, encrypted: was_encrypted() };
        let connected = opened.map_err(|error| {
            let text = error.as_db_error().map(DbError::message).map(str::to_owned);
            refusal(ConnectProblem::from_driver(&error), text)
        })?;
        match connected.matches_session_role(self.session_role).await {
            Ok(true) => Ok(connected),
            Ok(false) => Err(refusal(ConnectProblem::WrongSession(self.session_role), None)),
            Err(error) => Err(refusal(ConnectProblem::from_driver(&error), None)),
        }
    }

    fn config(&self, mode: SslMode) -> Config {
        let mut config = self.host.config.clone();
        match self.address {
            ResolvedAddress::Network { name, address } => config.host(name).hostaddr(*address),
            ResolvedAddress::Socket(folder) => config.host_path(folder),
        };
        config.port(self.host.port).ssl_mode(mode);
        if mode != SslMode::Require {
            config.ssl_negotiation(SslNegotiation::Postgres);
        }
        if config.get_application_name().is_none() {
            config.application_name(self.application_name);
        }
        config
    }

    fn may_not_be_postgres(&self, problem: &ConnectProblem) -> bool {
        matches!(
            problem,
            ConnectProblem::Closed
                | ConnectProblem::TlsNotOffered
                | ConnectProblem::TlsFailed(_)
                | ConnectProblem::ConnectionFailed(_)
        )
    }

    /// Sends an SSLRequest. A PostgreSQL server answers S or N and then waits, or answers E with an error.
    async fn probe_is_not_postgres(&self) -> bool {
        let ResolvedAddress::Network { address, .. } = self.address else { return false };
        let mut answer = Vec::new();
        let ask = async {
            let mut stream = TcpStream::connect((*address, self.host.port)).await?;
            stream.write_all(&TLS_REQUEST).await?;
            while answer.len() < PROBE_BYTES && stream.read_buf(&mut answer).await? > 0 {}
            std::io::Result::Ok(())
        };
        // However the probe ends, the bytes received so far are the answer.
        let _ = timeout(PROBE_TIMEOUT, ask).await;
        !matches!(answer.as_slice(), [] | [b'S' | b'N'] | [b'E', ..])
    }
}

impl AttemptRefusal {
    /// Like `may_succeed_with_other_tls_mode`, and also for broken connections: a device in between may block TLS.
    fn may_succeed_without_tls(&self) -> bool {
        self.may_succeed_with_other_tls_mode()
            || matches!(self.problem, ConnectProblem::Closed | ConnectProblem::ConnectionFailed(_))
    }

    /// Whether an attempt with the other TLS setting may succeed. A wrong password stays wrong, and a second attempt
    /// could lock the account.
    fn may_succeed_with_other_tls_mode(&self) -> bool {
        self.problem.is_about_tls() || matches!(self.problem, ConnectProblem::RefusedByRules)
    }
}
