//! Where the server is: a URL that may be shown, because nothing secret is let into the part that is.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;
use thiserror::Error;

/// The address of a running MCP server. Shown without its query, which may hold a key.
#[derive(Clone)]
pub struct ServerAddress {
    url: Url,
    transport: BridgeTransport,
}

/// What carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BridgeTransport {
    Http,
    WebSocket,
}

/// Why a text is no address. It is not repeated: it may hold a password.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ServerAddressError {
    /// It cannot be read.
    #[error("not a valid URL ({0}); expected a URL such as http://127.0.0.1:7070/mcp")]
    NotAUrl(String),
    /// It holds a user name or password.
    #[error(
        "the URL contains a user name or a password, which process lists and logs would show; \
         authenticate with --bearer, or with TIDEGATE_BEARER in the environment"
    )]
    HoldsCredentials,
    /// Its scheme is of another protocol.
    #[error("unsupported scheme {0:?}; use http, https, ws or wss")]
    OtherScheme(String),
    /// It names nothing to connect to.
    #[error("the URL has no host; expected a URL such as http://127.0.0.1:7070/mcp")]
    NoHost,
}

impl ServerAddress {
    /// Reads a URL of the scheme http, https, ws or wss.
    ///
    /// # Errors
    /// When it is no such URL, or holds credentials.
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

    /// Whether what is sent can be read on its way: it is not encrypted and leaves this machine.
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

    /// Where a Tidegate has its MCP for this carrier.
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
