//! The address of a broker.

use std::fmt;
use std::str::FromStr;

const PLAIN_SCHEME: &str = "mqtt";
const TLS_SCHEME: &str = "mqtts";
const PLAIN_PORT: u16 = 1883;
const TLS_PORT: u16 = 8883;

/// The address of a broker: `mqtts://host:8883`, or `mqtt://host:1883` without TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    /// The name or the address of the host; an IPv6 address has no brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether the connection uses TLS.
    pub uses_tls: bool,
}

/// A text that is no address of a broker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write it as mqtts://host:8883, or mqtt://host:1883 without TLS")]
pub struct BrokerAddressError(String);

impl FromStr for BrokerAddress {
    type Err = BrokerAddressError;

    fn from_str(text: &str) -> Result<Self, BrokerAddressError> {
        // The text is not repeated: by mistake, it may have a password.
        let error = |reason: &str| BrokerAddressError(reason.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(|| error("the address has no scheme"))?;
        let uses_tls = match scheme {
            PLAIN_SCHEME => false,
            TLS_SCHEME => true,
            _ => return Err(error("the scheme of the address is neither mqtts nor mqtt")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains('@') {
            return Err(error("the address has credentials, which belong into username and password"));
        }
        if rest.contains(['/', '?', '#']) {
            return Err(error("the address has a path, which a broker does not have"));
        }
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(|| error("the bracket is not closed"))?;
                (host, after.strip_prefix(':').or_else(|| after.is_empty().then_some("")))
            }
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, Some("")),
            },
        };
        if host.is_empty() {
            return Err(error("the address has no host"));
        }
        let port = match port {
            Some("") => {
                if uses_tls {
                    TLS_PORT
                } else {
                    PLAIN_PORT
                }
            }
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| error("the port is no number from 1 to 65535"))?,
            None => return Err(error("the host is not followed by a port")),
        };
        Ok(Self { host: host.to_owned(), port, uses_tls })
    }
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.uses_tls { TLS_SCHEME } else { PLAIN_SCHEME };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}
