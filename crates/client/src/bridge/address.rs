//! The URL of the server. Its text form contains no secrets.

use std::fmt;

use reqwest::Url;

use crate::address::{self, AddressError};

/// The URL of a running MCP server. It is displayed without its query, which may contain a key.
#[derive(Clone)]
pub struct ServerAddress {
    url: Url,
}

impl ServerAddress {
    /// Parses a URL with the scheme http, https, ws or wss.
    ///
    /// # Errors
    /// When it is not such a URL, or contains credentials.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let url = address::parse_url(text, &["http", "https", "ws", "wss"], "http://127.0.0.1:7070/mcp")?;
        Ok(Self { url })
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

    pub(super) fn is_web_socket(&self) -> bool {
        self.url.scheme().starts_with("ws")
    }

    pub(super) fn default_path(&self) -> &'static str {
        if self.is_web_socket() { "/mcp/ws" } else { "/mcp" }
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
