//! The options of a database that is reached over Flight SQL, and the URLs of its servers.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{CallerTokens, Error, ErrorKind};
use tidegate_sql::SqlDialect;
use tonic::transport::Uri;

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

/// The schemes, and whether they have TLS.
const SCHEMES: [(&str, bool); 5] =
    [("grpc", false), ("grpc+tcp", false), ("http", false), ("grpc+tls", true), ("https", true)];

/// A server: host, port, and whether TLS is used. It has no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeAddress {
    pub(super) has_tls: bool,
    /// `host:port`.
    authority: String,
}

impl NodeAddress {
    /// Parses `url`.
    ///
    /// # Errors
    /// When it is not a URL of a server, or TLS is missing for a server on another machine.
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        let invalid = |problem: &str| {
            // The text may have a password.
            let visible = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
            let message = format!("{visible:?} is not the URL of a Flight SQL server: {problem}");
            Error::new(ErrorKind::InvalidArguments, message)
                .with_hint("Write it as grpc+tls://host:port; grpc://127.0.0.1:port works on this machine only.")
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| invalid("it has no scheme"))?;
        let known = SCHEMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(scheme));
        let Some((_, has_tls)) = known else {
            return Err(invalid("its scheme is none of grpc+tls, grpc, grpc+tcp, https and http"));
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains('@') {
            return Err(invalid("credentials do not belong into a URL; use the key token"));
        }
        let uri: Uri = format!("http://{authority}/").parse().map_err(|_| invalid("it has no valid host and port"))?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| invalid("it has no host"))?;
        if uri.port_u16().is_none_or(|port| port == 0) {
            return Err(invalid("it has no port"));
        }
        if uri.path() != "/" || uri.query().is_some() || authority.contains(['/', '?', '#']) {
            return Err(invalid("it must end after the port"));
        }
        if !has_tls && !is_loopback(host) {
            return Err(invalid("without TLS, only servers on this machine are allowed; use grpc+tls"));
        }
        Ok(Self { has_tls: *has_tls, authority: authority.to_owned() })
    }

    /// Whether `url` is this server, as far as its text shows it. Servers often report the address that they listen on.
    pub(super) fn is_same_server(&self, url: &str) -> bool {
        let Some((_, rest)) = url.split_once("://") else { return false };
        let parse = |authority: &str| format!("http://{authority}/").parse::<Uri>().ok();
        let (Some(own), Some(other)) = (parse(&self.authority), parse(rest.trim_end_matches('/'))) else {
            return false;
        };
        let (Some(own_host), Some(other_host)) = (own.host(), other.host()) else { return false };
        let is_same_host = own_host.eq_ignore_ascii_case(other_host)
            || ["0.0.0.0", "[::]"].contains(&other_host)
            || is_loopback(own_host) && is_loopback(other_host);
        is_same_host && own.port_u16() == other.port_u16()
    }

    /// The address for HTTP/2.
    pub(super) fn http_url(&self) -> String {
        let scheme = if self.has_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "grpc+tls" } else { "grpc" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

/// The normal form of the URL of a server: `grpc+tls://host:port`, or `grpc://host:port` on this machine.
///
/// # Errors
/// When it is not a URL of a server, or TLS is missing for a server on another machine.
pub fn normalized_flight_url(url: &str) -> Result<String, Error> {
    NodeAddress::parse(url).map(|address| address.to_string())
}

fn is_loopback(host: &str) -> bool {
    let address: Result<IpAddr, _> = host.trim_start_matches('[').trim_end_matches(']').parse();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        for (url, expected) in [
            ("grpc+tls://oslo:7071", "grpc+tls://oslo:7071"),
            ("https://oslo:443/", "grpc+tls://oslo:443"),
            ("grpc://127.0.0.1:1", "grpc://127.0.0.1:1"),
            ("grpc+tcp://localhost:1", "grpc://localhost:1"),
            ("http://[::1]:1", "grpc://[::1]:1"),
        ] {
            assert_eq!(NodeAddress::parse(url).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn locations_of_the_same_server_are_recognized() {
        let address = NodeAddress::parse("grpc://127.0.0.1:7071").unwrap();
        for same in ["grpc://127.0.0.1:7071", "grpc+tcp://localhost:7071/", "grpc://0.0.0.0:7071"] {
            assert!(address.is_same_server(same), "{same}");
        }
        for other in ["grpc://127.0.0.1:7072", "grpc://oslo:7071", "127.0.0.1:7071", ""] {
            assert!(!address.is_same_server(other), "{other}");
        }
    }

    #[test]
    fn other_urls_are_refused_without_their_password() {
        for (url, problem) in [
            ("oslo:7071", "no scheme"),
            ("ftp://oslo:1", "scheme is none of"),
            ("grpc+tls://oslo", "no port"),
            ("grpc+tls://:1", "host"),
            ("grpc+tls://oslo:0", "no port"),
            ("grpc+tls://oslo:1/plant", "end after the port"),
            ("grpc+tls://oslo:1?a=b", "end after the port"),
            ("grpc+tls://ann:sesame@oslo:1", "credentials"),
            ("grpc://oslo:1", "without TLS"),
            ("grpc://10.0.0.1:1", "without TLS"),
            ("grpc://127.0.0.1.example:1", "without TLS"),
        ] {
            let error = NodeAddress::parse(url).unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains("sesame"), "{url}: {error}");
        }
    }
}
