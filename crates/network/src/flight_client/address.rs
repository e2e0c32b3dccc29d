//! The URL of a server.

use std::fmt;
use std::net::IpAddr;

use tidegate_core::{Error, ErrorKind};
use tonic::transport::Uri;

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
