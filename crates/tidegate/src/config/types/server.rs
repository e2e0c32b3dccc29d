//! Configuration of the server: address, transports, TLS and client certificates.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::quantities::{Size, Time};

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerConfig {
    /// Addresses, each with its own transports and TLS. Default: 127.0.0.1:7070.
    pub(crate) listen: Option<ListenConfig>,
    /// Address of Flight SQL: 127.0.0.1:7071. It uses server.tls. Beyond this machine, server.tls and auth are
    /// required. Default: none; Flight SQL is off.
    pub(crate) flight: Option<String>,
    /// TLS of addresses without their own. Default: none; the server accepts plain HTTP.
    pub(crate) tls: Option<TlsConfig>,
    /// Host names of this server, besides those of this machine. Default: none.
    pub(crate) allow_hosts: Vec<String>,
    /// Permitted web origins, besides those of this machine. Default: none.
    pub(crate) allow_origins: Vec<String>,
    /// Maximum size of a request body. Default: 4MiB.
    pub(crate) max_body: Option<Size>,
    /// Maximum size of an inline answer over HTTP+SSE, WebSocket and event streams. A larger one continues in a stored
    /// result. Common clients refuse messages above 1 MiB, and rows grow up to twofold in them. Default: 450KiB.
    pub(crate) max_event: Option<Size>,
    /// How long a session of HTTP+SSE waits for its client after its connection broke, at most 10m. Default: none; the
    /// session ends at once.
    pub(crate) sse_resume: Option<Time>,
    /// Number of threads on which calls run. Changes take effect at a restart. Default: one for each processor.
    pub(crate) threads: Option<u32>,
    /// Name for people. Default: none.
    pub(crate) title: Option<String>,
    /// Instructions for models. Default: the built-in instructions.
    pub(crate) instructions: Option<String>,
    /// Transports of addresses without their own. Default: all.
    pub(crate) transports: TransportsConfig,
    /// How long clients may cache lists of entries (MCP 2026-07-28).
    pub(crate) list_cache: ListCacheConfig,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListCacheConfig {
    /// Duration. Clients with a subscription receive changes earlier. Default: 60s.
    pub(crate) ttl: Option<Time>,
    /// Whether shared caches may store lists. Not allowed with auth. Default: true without auth, as far as all entries
    /// are open to all callers.
    pub(crate) public: Option<bool>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ListenConfig {
    /// One address: 127.0.0.1:7070.
    Address(String),
    /// Several addresses.
    Addresses(Vec<AddressConfig>),
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum AddressConfig {
    /// The address: 127.0.0.1:7070.
    Address(String),
    /// The address, with its transports and TLS.
    Options(AddressOptionsConfig),
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddressOptionsConfig {
    /// 127.0.0.1:7070.
    pub(crate) address: String,
    /// Transports of this address. Default: server.transports.
    pub(crate) transports: Option<TransportsConfig>,
    /// TLS of this address. Default: server.tls.
    pub(crate) tls: Option<TlsConfig>,
}

/// One address of the server, with the options that apply to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerAddress<'a> {
    pub(crate) address: &'a str,
    pub(crate) transports: TransportsConfig,
    pub(crate) tls: Option<&'a TlsConfig>,
}

const DEFAULT_LISTEN_ADDRESS: &str = "127.0.0.1:7070";

impl ServerConfig {
    /// The addresses to listen on. An empty list is rejected elsewhere.
    pub(crate) fn addresses(&self) -> Vec<ServerAddress<'_>> {
        let (transports, tls) = (self.transports, self.tls.as_ref());
        let with_defaults = |address| ServerAddress { address, transports, tls };
        match &self.listen {
            None => vec![with_defaults(DEFAULT_LISTEN_ADDRESS)],
            Some(ListenConfig::Address(address)) => vec![with_defaults(address)],
            Some(ListenConfig::Addresses(entries)) => {
                let addresses = entries.iter().map(|entry| match entry {
                    AddressConfig::Address(address) => with_defaults(address),
                    AddressConfig::Options(options) => ServerAddress {
                        address: &options.address,
                        transports: options.transports.unwrap_or(transports),
                        tls: options.tls.as_ref().or(tls),
                    },
                });
                addresses.collect()
            }
        }
    }

    /// The paths and entries of TLS in the configuration.
    pub(crate) fn tls_entries(&self) -> Vec<(String, &TlsConfig)> {
        let mut entries: Vec<_> = self.tls.iter().map(|tls| ("server.tls".to_owned(), tls)).collect();
        if let Some(ListenConfig::Addresses(addresses)) = &self.listen {
            for (index, address) in addresses.iter().enumerate() {
                if let AddressConfig::Options(AddressOptionsConfig { tls: Some(tls), .. }) = address {
                    entries.push((format!("server.listen[{index}].tls"), tls));
                }
            }
        }
        entries
    }
}

/// HTTP transports that are on.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TransportsConfig {
    /// Streamable HTTP at /mcp. Default: true.
    pub(crate) mcp: bool,
    /// HTTP+SSE of revision 2024-11-05 at /mcp/sse. Default: true.
    pub(crate) sse: bool,
    /// WebSocket at /mcp/ws. Default: true.
    pub(crate) ws: bool,
    /// REST at /rest. Default: true.
    pub(crate) rest: bool,
    /// The console at /, for browsers; only where rest is on. Default: true.
    pub(crate) console: bool,
    /// Prometheus metrics at /metrics. Default: true.
    pub(crate) metrics: bool,
}

impl Default for TransportsConfig {
    fn default() -> Self {
        Self { mcp: true, sse: true, ws: true, rest: true, console: true, metrics: true }
    }
}

impl TransportsConfig {
    /// The names of the transports that are on: `mcp, rest`.
    pub(crate) fn enabled_names(self) -> String {
        let Self { mcp, sse, ws, rest, console, metrics } = self;
        let all = [
            ("mcp", mcp),
            ("sse", sse),
            ("ws", ws),
            ("rest", rest),
            ("console", console && rest),
            ("metrics", metrics),
        ];
        all.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    }
}

/// TLS and client certificates. Changed files take effect without a restart.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsConfig {
    /// File of the certificate chain (PEM), leaf first.
    pub(crate) certificate: PathBuf,
    /// File of its private key (PEM).
    pub(crate) key: PathBuf,
    /// File of the authorities of client certificates (PEM). Default: none; client certificates are not requested.
    pub(crate) client_ca: Option<PathBuf>,
    /// required: the handshake fails without one. optional: callers may authenticate another way. Default: optional.
    pub(crate) client_certificates: Option<ClientCertificatesConfig>,
    /// File of revocation lists (PEM), one for each authority of client_ca. Clients of an authority without a list are
    /// refused. Default: none.
    pub(crate) client_crl: Option<PathBuf>,
    /// Oldest accepted version. Default: "1.2".
    #[serde(default)]
    pub(crate) min_version: TlsVersionConfig,
}

impl TlsConfig {
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca).chain(&self.client_crl)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ClientCertificatesConfig {
    Optional,
    Required,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum TlsVersionConfig {
    #[default]
    #[serde(rename = "1.2")]
    V1_2,
    #[serde(rename = "1.3")]
    V1_3,
}
