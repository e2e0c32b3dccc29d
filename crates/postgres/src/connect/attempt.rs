//! One attempt: one address of one host, within the time that it may take.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::error::DbError;
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::cancel::Canceller;
use super::connected::Connected;
use super::error::Failure;
use super::host::{Address, Host};
use super::problem::Problem;
use super::startup::Startup;
use super::target::{SessionRole, Target};
use super::tls::Connector;
use super::tls_settings::TlsMode;

/// How long something that did not answer as PostgreSQL does may take to show what it is.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes of its answer that are looked at.
const PROBE_BYTES: usize = 2;
/// What a client sends to ask whether a server has TLS.
/// <https://www.postgresql.org/docs/current/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-SSLREQUEST>
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// One address of one host.
pub(super) struct Attempt<'a> {
    pub(super) target: &'a Target,
    pub(super) startup: &'a Startup<'a>,
    pub(super) host: &'a Host,
    pub(super) address: &'a Address,
    /// None where there is to be no TLS.
    pub(super) tls: Option<&'a MakeRustlsConnect>,
    pub(super) session_role: SessionRole,
}

/// Why a try failed, and whether the server spoke over TLS.
struct Refusal {
    problem: Problem,
    said: Option<String>,
    encrypted: bool,
}

impl Attempt<'_> {
    /// Connects, with and without TLS in the order that the mode has, within the time that an address may take.
    pub(super) async fn run(&self) -> Result<Connected, Failure> {
        let limit = self.target.connect_timeout;
        let outcome = timeout(limit, self.run_modes()).await;
        let refusal = match outcome {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(refusal)) => refusal,
            Err(_) => Refusal { problem: Problem::TimedOut(limit), said: None, encrypted: false },
        };
        let problem = if self.may_be_something_else(&refusal.problem) && self.is_something_else().await {
            Problem::NotPostgres
        } else {
            refusal.problem
        };
        Err(Failure {
            place: match self.address {
                Address::Network { name, address } if *name != address.to_string() => {
                    format!("{} ({address})", self.host)
                }
                _ => self.host.to_string(),
            },
            problem,
            said: refusal.said,
            password_source: self.host.password_source.clone(),
            tls_mode: self.target.tls.mode,
            encrypted: refusal.encrypted,
        })
    }

    async fn run_modes(&self) -> Result<Connected, Refusal> {
        let is_socket = matches!(self.address, Address::Socket(_));
        match self.target.tls.mode {
            _ if is_socket || self.tls.is_none() => self.open(SslMode::Disable).await,
            TlsMode::Disable => self.open(SslMode::Disable).await,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => self.open(SslMode::Require).await,
            TlsMode::Prefer => match self.open(SslMode::Prefer).await {
                Err(first) if first.encrypted && first.is_worth_a_try_without_tls() => {
                    self.open(SslMode::Disable).await.map_err(|_| first)
                }
                outcome => outcome,
            },
            TlsMode::Allow => match self.open(SslMode::Disable).await {
                Err(first) if first.is_worth_the_other_way() => {
                    let second = self.open(SslMode::Require).await;
                    second.map_err(|second| if second.problem.is_about_tls() { first } else { second })
                }
                outcome => outcome,
            },
        }
    }

    async fn open(&self, mode: SslMode) -> Result<Connected, Refusal> {
        let config = self.config(mode);
        let connector = match (self.tls, self.address) {
            (Some(tls), Address::Network { name, address }) => {
                Some(Connector::new(tls.clone(), name, &address.to_string(), self.target.tls.mode))
            }
            // No TLS is ever spoken over a socket.
            _ => None,
        };
        let was_encrypted = || connector.as_ref().is_some_and(Connector::was_used);
        let canceller = |client: &tokio_postgres::Client| {
            Canceller::new(client.cancel_token(), self.address, self.host.port, connector.clone())
        };
        let opened = match connector.clone() {
            Some(tls) => config.connect(tls).await.map(|(client, connection)| {
                let canceller = canceller(&client);
                Connected::start(client, connection, canceller, was_encrypted())
            }),
            None => config.connect(NoTls).await.map(|(client, connection)| {
                let canceller = canceller(&client);
                Connected::start(client, connection, canceller, false)
            }),
        };
        let refusal = |problem, said| Refusal { problem, said, encrypted: was_encrypted() };
        let connected = opened.map_err(|error| {
            let said = error.as_db_error().map(DbError::message).map(str::to_owned);
            refusal(Problem::of(&error), said)
        })?;
        match connected.has_role(self.session_role).await {
            Ok(true) => Ok(connected),
            Ok(false) => Err(refusal(Problem::WrongSession(self.session_role), None)),
            Err(error) => Err(refusal(Problem::of(&error), None)),
        }
    }

    fn config(&self, mode: SslMode) -> Config {
        let Target { user, database, channel_binding, connect_timeout, keepalive, tls, .. } = self.target;
        let mut config = Config::new();
        match self.address {
            Address::Network { name, address } => config.host(name).hostaddr(*address),
            Address::Socket(folder) => config.host_path(folder),
        };
        config.port(self.host.port).user(user).dbname(database);
        if let Some(password) = &self.host.password {
            config.password(password.expose());
        }
        config.application_name(self.target.application_name.as_deref().unwrap_or(self.startup.application_name));
        if let Some(options) = self.startup.options(self.target.options.as_deref()) {
            config.options(options);
        }
        config.ssl_mode(mode).channel_binding(*channel_binding).connect_timeout(*connect_timeout);
        if tls.direct && mode == SslMode::Require {
            config.ssl_negotiation(SslNegotiation::Direct);
        }
        config
            .keepalives(keepalive.enabled)
            .keepalives_idle(keepalive.idle)
            .keepalives_interval(keepalive.interval)
            .keepalives_retries(keepalive.count);
        if let Some(timeout) = keepalive.user_timeout {
            config.tcp_user_timeout(timeout);
        }
        config
    }

    fn may_be_something_else(&self, problem: &Problem) -> bool {
        matches!(
            problem,
            Problem::Closed | Problem::TlsNotOffered | Problem::TlsFailed(_) | Problem::ConnectionFailed(_)
        )
    }

    /// Asks whether TLS is there. Every PostgreSQL says S or N and then waits, or says E and why.
    async fn is_something_else(&self) -> bool {
        let Address::Network { address, .. } = self.address else { return false };
        let mut answer = Vec::new();
        let ask = async {
            let mut stream = TcpStream::connect((*address, self.host.port)).await?;
            stream.write_all(&TLS_REQUEST).await?;
            while answer.len() < PROBE_BYTES && stream.read_buf(&mut answer).await? > 0 {}
            std::io::Result::Ok(())
        };
        // Whatever ends it, what came until then is the answer.
        let _ = timeout(PROBE_TIMEOUT, ask).await;
        !matches!(answer.as_slice(), [] | [b'S' | b'N'] | [b'E', ..])
    }
}

impl Refusal {
    /// As `is_worth_the_other_way`, and where the connection broke: something between may not let TLS through.
    fn is_worth_a_try_without_tls(&self) -> bool {
        self.is_worth_the_other_way() || matches!(self.problem, Problem::Closed | Problem::ConnectionFailed(_))
    }

    /// Whether what was refused with TLS may be accepted without, or the other way round. A wrong password stays
    /// wrong, and a second try would count against the account.
    fn is_worth_the_other_way(&self) -> bool {
        self.problem.is_about_tls() || matches!(self.problem, Problem::RefusedByRules)
    }
}
