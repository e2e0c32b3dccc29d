//! The options of a database that is reached over Flight SQL.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::CallerTokens;
use tidegate_sql::SqlDialect;

/// The default of [`FlightSqlOptions::timeout`].
const TIMEOUT: Duration = Duration::from_secs(20);

/// How a server of Flight SQL is reached, and which database there is meant.
#[derive(Clone)]
pub struct FlightSqlOptions {
    /// The URLs: first the server, then its replicas. `grpc+tls://host:port`, or `grpc://host:port` on this machine.
    pub urls: Vec<String>,
    /// The database there (a catalog, in the terms of Flight SQL); `None` for the default of the server.
    pub database: Option<String>,
    /// The SQL dialect of the database.
    pub dialect: SqlDialect,
    /// How requests are authenticated.
    pub credential: NodeCredential,
    /// The name of the server in the tokens of [`NodeCredential::CallerTokens`]; the name of the database if `None`.
    pub audience: Option<String>,
    /// The authorities and the client certificate of TLS.
    pub tls: FlightTls,
    /// The time within which the first row, or the end, of an answer must arrive, and within which other requests end.
    /// Later, the time limit of the call applies. All replicas together have this time, as long as none accepts the
    /// request.
    pub timeout: Duration,
}

impl FlightSqlOptions {
    /// The default options for the server at `urls`, of which all but the first are replicas.
    pub fn new(urls: Vec<String>) -> Self {
        Self {
            urls,
            database: None,
            dialect: SqlDialect::DataFusion,
            credential: NodeCredential::None,
            audience: None,
            tls: FlightTls::default(),
            timeout: TIMEOUT,
        }
    }
}

/// How requests to a server are authenticated.
#[derive(Clone, Default)]
pub enum NodeCredential {
    /// Not at all, or by the client certificate.
    #[default]
    None,
    /// By one key or token for all callers.
    Token(String),
    /// By a token that names the caller of each request.
    CallerTokens(Arc<dyn CallerTokens>),
}

impl fmt::Debug for NodeCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Token(_) => "Token(***)",
            Self::CallerTokens(_) => "CallerTokens",
        })
    }
}

/// The TLS of a client. All values are PEM.
#[derive(Clone, Default)]
pub struct FlightTls {
    /// The authorities that sign certificates of servers; `None` for those of the system.
    pub authorities: Option<String>,
    /// The certificate chain of this client and its private key.
    pub certificate: Option<(String, String)>,
}

impl fmt::Debug for FlightTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlightTls")
            .field("authorities", &self.authorities.is_some())
            .field("certificate", &self.certificate.is_some())
            .finish()
    }
}
