//! The URL of the server. Its text form contains no secrets.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;
use thiserror::Error;

/// The URL of a running MCP server. It is displayed without its query, which may contain a key.
#[derive(Clone)]
pub struct ServerAddress {
    url: Url,
    transport: BridgeTransport,
}

/// The transport of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BridgeTransport {
    Http,
    WebSocket,
}

/// Why a text is not a valid server URL. The error does not repeat the text, which may contain a password.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ServerAddressError {
    /// The text is not a URL.
    #[error("not a valid URL ({0}); expected a URL such as http://127.0.0.1:7070/mcp")]
    NotAUrl(String),
    /// The URL contains a user name or a password.
    #[error(
        "the URL contains a user name or a password, which process lists and logs would show; \
         authenticate with --bearer, or with TIDEGATE_BEARER in the environment"
    )]
    HoldsCredentials,
    /// The scheme is not supported.
    #[error("unsupported scheme {0:?}; use http, https, ws or wss")]
    OtherScheme(String),
    /// The URL has no host.
    #[error("the URL has no host; expected a URL such as http://127.0.0.1:7070/mcp")]
    NoHost,
}

impl ServerAddress {
    /// Parses a URL with the scheme http, https, ws or wss.
    ///
    /// # Errors
    /// When it is not such a URL, or contains credentials.
    pub fn parse(text: &str) -> Result<Self, ServerAddressError> {
        let url = Url::parse(text.trim()).map_err(|error| ServerAddressError::NotAUrl(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ServerAddressError::HoldsCredentials);
        }
        let carrier = match url.scheme() {
            "http" | "https" => BridgeTransport::Http,
            "ws" | "wss" => BridgeTransport::WebSocket,
            other => return Err(ServerAddressError::OtherScheme(other.to_owned())),
        };
        if url.host_str().is_none_or(str::is_empty) {
            return Err(ServerAddressError::NoHost);
        }
        Ok(Self { url, transport: carrier })
    }

    /// Whether messages are sent unencrypted to another machine.
    pub fn is_sent_unencrypted(&self) -> bool {
        matches!(self.url.scheme(), "http" | "ws") && !self.is_loopback()
    }

    fn is_loopback(&self) -> bool {
        let host = self.host();
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// The host without the brackets of an IPv6 address.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default().trim_matches(['[', ']'])
    }

    pub(super) fn port(&self) -> u16 {
        let default = if matches!(self.url.scheme(), "http" | "ws") { 80 } else { 443 };
        self.url.port().unwrap_or(default)
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn transport(&self) -> BridgeTransport {
        self.transport
    }

    /// The default path of Tidegate for this transport.
    pub(super) fn default_path(&self) -> &'static str {
        match self.transport {
            BridgeTransport::Http => "/mcp",
            BridgeTransport::WebSocket => "/mcp/ws",
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        f.write_str(url.as_str())
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_redacts_secrets() {
        let address = ServerAddress::parse("https://data.example.com/mcp?key=secret#secret").unwrap();
        assert_eq!(address.to_string(), "https://data.example.com/mcp");
        assert_eq!(format!("{address:?}"), "https://data.example.com/mcp");
        for text in ["http://anna:secret@localhost/mcp", "http://:secret@localhost/mcp", "http://se%cret@[::1"] {
            let refused = ServerAddress::parse(text).unwrap_err();
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
    }

    #[test]
    fn rejects_urls_of_other_schemes() {
        let refused = |text: &str| ServerAddress::parse(text).unwrap_err();
        assert_eq!(refused("ftp://localhost/mcp"), ServerAddressError::OtherScheme("ftp".to_owned()));
        assert_eq!(refused("localhost:7070"), ServerAddressError::OtherScheme("localhost".to_owned()));
        assert_eq!(refused("http://a@localhost/mcp"), ServerAddressError::HoldsCredentials);
        assert!(matches!(refused("/mcp"), ServerAddressError::NotAUrl(_)));
        assert!(matches!(refused("http://"), ServerAddressError::NotAUrl(_)));
    }

    #[test]
    fn detects_unencrypted_remote_addresses() {
        let is_in_the_clear = |text: &str| ServerAddress::parse(text).unwrap().is_sent_unencrypted();
        assert!(is_in_the_clear("http://data.example.com/mcp"));
        assert!(is_in_the_clear("ws://10.0.0.1/mcp/ws"));
        assert!(is_in_the_clear("http://localhost.example.com/mcp"));
        for local in ["http://localhost:7070/mcp", "http://127.0.0.9/mcp", "ws://[::1]:1/mcp", "https://example.com/"] {
            assert!(!is_in_the_clear(local), "{local}");
        }
    }
}
