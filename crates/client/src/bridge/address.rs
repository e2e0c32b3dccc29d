//! The URL of the server. Its text form contains no secrets.

use std::fmt;

use reqwest::Url;

use crate::address::{self, AddressError};

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

impl ServerAddress {
    /// Parses a URL with the scheme http, https, ws or wss.
    ///
    /// # Errors
    /// When it is not such a URL, or contains credentials.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let url = address::parse_url(text, &["http", "https", "ws", "wss"], "http://127.0.0.1:7070/mcp")?;
        let transport = if url.scheme().starts_with("ws") { BridgeTransport::WebSocket } else { BridgeTransport::Http };
        Ok(Self { url, transport })
    }

    /// Whether messages leave this machine unencrypted.
    pub fn is_sent_unencrypted(&self) -> bool {
        address::is_sent_unencrypted(&self.url)
    }

    pub(super) fn host(&self) -> &str {
        address::host(&self.url)
    }

    pub(super) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
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
    }
}
