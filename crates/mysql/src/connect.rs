//! Opens connections: with or without TLS, each with the settings of a session. One more connection ends statements.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error as MySqlError, Opts};
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::{Connector, RecentConnectError};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::connection_string::{MySqlTarget, TlsMode};
use crate::error;
use crate::options::MySqlOptions;
use crate::session::{MySqlSession, SessionAccess};

/// How long a request to end a statement may take.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than any connection is idle for the driver: it would look up the time of the server otherwise, for a pool of its
/// own.
const WAIT_TIMEOUT_SECONDS: usize = 1 << 20;

pub(crate) struct MySqlConnector {
    /// Tried first. `None` without TLS.
    encrypted: Option<Opts>,
    /// `None` if TLS is required.
    plain: Option<Opts>,
    connect_timeout: Duration,
    address: String,
    options: Arc<MySqlOptions>,
    access: SessionAccess,
    database: Arc<str>,
    last_error: RecentConnectError,
    /// Each session has a clone.
    sessions: Arc<()>,
    /// The connection that ends statements of others; opened when the first one has to end.
    control: Mutex<Option<Conn>>,
}

impl Connector for MySqlConnector {
    type Connection = MySqlSession;

    async fn connect(&self) -> Result<MySqlSession, Error> {
        self.open().await
    }

    fn is_closed(&self, session: &MySqlSession) -> bool {
        session.connection.is_disconnected()
    }

    fn open_connections(&self) -> usize {
        Arc::strong_count(&self.sessions) - 1
    }
}

/// What a request to end ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KillTarget {
    /// The statement that runs on a connection.
    Query,
    /// A connection.
    Connection,
}

impl MySqlConnector {
    pub(crate) fn new(
        database: Arc<str>,
        target: &MySqlTarget,
        options: Arc<MySqlOptions>,
        access: SessionAccess,
    ) -> Self {
        let driver_options = target
            .options
            .clone()
            .max_allowed_packet(Some(options.message_bytes_max))
            .wait_timeout(Some(WAIT_TIMEOUT_SECONDS))
            .connect_attribute("program_name", format!("tidegate/{database}"));
        let plain = Opts::from(driver_options.clone());
        let mode = if plain.socket().is_some() { TlsMode::Disabled } else { target.tls.mode };
        let encrypted = (mode != TlsMode::Disabled).then(|| {
            let authorities = if mode == TlsMode::VerifyIdentity { system_authorities() } else { Vec::new() };
            Opts::from(driver_options.ssl_opts(target.tls.to_options(authorities)))
        });
        Self {
            encrypted,
            plain: matches!(mode, TlsMode::Disabled | TlsMode::Preferred).then_some(plain),
            connect_timeout: target.connect_timeout,
            address: target.address.clone(),
            options,
            access,
            database,
            last_error: RecentConnectError::default(),
            sessions: Arc::default(),
            control: Mutex::default(),
        }
    }

    pub(crate) async fn open(&self) -> Result<MySqlSession, Error> {
        if let Some(error) = self.last_error.get() {
            return Err(error);
        }
        let opened = async {
            let connection = self.connect_to_server().await?;
            MySqlSession::open(connection, &self.options, self.access, self.sessions.clone()).await
        };
        let error = match timeout(self.connect_timeout, opened).await {
            Ok(Ok(session)) => return Ok(session),
            Ok(Err(error)) => self.connect_error(&error),
            Err(_) => self.timeout_error(),
        };
        tracing::warn!(database = %self.database, "{}", error.detail().unwrap_or_else(|| error.message()));
        self.last_error.set(&error);
        Err(error)
    }

    pub(crate) fn options(&self) -> &Arc<MySqlOptions> {
        &self.options
    }

    /// The error of a session that cannot be one of a caller.
    pub(crate) fn identity_error(&self, error: &MySqlError, role: Option<&str>) -> Error {
        match role {
            Some(role) => error::role_error(error, &self.database, role),
            None => error::internal_statement_error(error, &self.database),
        }
    }

    /// Checks that the server answers, with a connection of its own.
    pub(crate) async fn check_reachable(&self) -> Result<(), Error> {
        let answered = async { self.connect_to_server().await?.ping().await };
        match timeout(self.connect_timeout, answered).await {
            Ok(Ok(())) => Ok(()),
            // The server answers, and calls may have connections.
            Ok(Err(MySqlError::Server(error))) if is_too_many_connections(error.code) => Ok(()),
            Ok(Err(error)) => Err(self.connect_error(&error)),
            Err(_) => Err(self.timeout_error()),
        }
    }

    async fn connect_to_server(&self) -> Result<Conn, MySqlError> {
        match (&self.encrypted, &self.plain) {
            (Some(encrypted), Some(plain)) => match Conn::new(encrypted.clone()).await {
                Err(MySqlError::Driver(DriverError::NoClientSslFlagFromServer)) => Conn::new(plain.clone()).await,
                connected => connected,
            },
            (Some(options), None) | (None, Some(options)) => Conn::new(options.clone()).await,
            (None, None) => Err(DriverError::ConnectionClosed.into()),
        }
    }

    /// Ends what runs on the connection `id`. Returns whether the server has received the request.
    pub(crate) async fn kill(&self, target: KillTarget, id: u32) -> bool {
        let target = match target {
            KillTarget::Query => "QUERY",
            KillTarget::Connection => "CONNECTION",
        };
        let sent = timeout(KILL_TIMEOUT, self.run_on_control(format!("KILL {target} {id}"))).await;
        let is_sent = matches!(sent, Ok(Ok(()) | Err(MySqlError::Server(_))));
        if !is_sent {
            tracing::warn!(database = %self.database, "a cancellation did not reach the server");
        }
        is_sent
    }

    /// Runs `sql` on the connection that ends statements. If it was lost while it was idle, another one is opened.
    async fn run_on_control(&self, sql: String) -> Result<(), MySqlError> {
        let mut control = self.control.lock().await;
        if let Some(mut connection) = control.take()
            && let outcome @ (Ok(()) | Err(MySqlError::Server(_))) = connection.query_drop(sql.as_str()).await
        {
            *control = Some(connection);
            return outcome;
        }
        let mut connection = self.connect_to_server().await?;
        let outcome = connection.query_drop(sql.as_str()).await;
        *control = Some(connection);
        outcome
    }

    /// Closes the connection that ends statements.
    pub(crate) async fn close(&self) {
        self.control.lock().await.take();
    }

    fn timeout_error(&self) -> Error {
        let seconds = self.connect_timeout.as_secs();
        self.unavailable(format!("{} did not answer within {seconds} s", self.address))
    }

    fn connect_error(&self, error: &MySqlError) -> Error {
        match error {
            MySqlError::Server(server) => {
                let outer = error::statement_error(error, &self.database);
                let is_login = matches!(server.code, 1044 | 1045 | 1049 | 1698);
                if is_login { outer.mark_configuration_fault() } else { outer }
            }
            MySqlError::Driver(DriverError::NoClientSslFlagFromServer) => {
                self.unavailable(format!("{} has no TLS, which ssl-mode requires", self.address))
            }
            other => self.unavailable(format!("{} cannot be reached: {other}", self.address)),
        }
    }

    fn unavailable(&self, detail: String) -> Error {
        Error::new(ErrorKind::Unavailable, format!("the database {} cannot be reached", self.database))
            .with_detail(format!("database {}: {detail}", self.database))
    }
}

fn is_too_many_connections(code: u16) -> bool {
    matches!(code, 1040 | 1203 | 1226)
}

/// The authorities that the system trusts, as DER.
fn system_authorities() -> Vec<Vec<u8>> {
    let loaded = rustls_native_certs::load_native_certs();
    loaded.certs.into_iter().map(|certificate| certificate.to_vec()).collect()
}
