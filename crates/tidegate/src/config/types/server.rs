//! Configuration of the server: address, transports, TLS and client certificates.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::quantities::{Size, Time};

/// Address, TLS, transports and name of the server.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerConfig {
    /// Address to listen on. Default: 127.0.0.1:7070.
    pub(crate) listen: Option<String>,
    /// TLS and client certificates. Default: none; the server accepts plain HTTP.
    pub(crate) tls: Option<TlsConfig>,
    /// Host names of this server that requests may use, in addition to those of this machine. Default: none.
    pub(crate) allow_hosts: Vec<String>,
    /// Origins of web pages that may call, in addition to those of this machine. Default: none.
    pub(crate) allow_origins: Vec<String>,
    /// Maximum size of a request body, in bytes. Default: 4MiB.
    pub(crate) max_body: Option<Size>,
    /// Name of the server for people. Default: none.
    pub(crate) title: Option<String>,
    /// Instructions that a model receives when it connects. Default: the built-in instructions.
    pub(crate) instructions: Option<String>,
    /// Transports that are on. Default: all.
    pub(crate) transports: TransportsConfig,
    /// How long clients may cache the lists of tools, resources and prompts (MCP 2026-07-28). Since: 0.2.0.
    pub(crate) list_cache: ListCacheConfig,
}

/// How long clients may cache lists.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListCacheConfig {
    /// Duration for which clients may cache a list. Clients with a subscription learn of changes earlier. Default: 60s.
    /// Since: 0.2.0.
    pub(crate) ttl: Option<Time>,
    /// Whether shared caches may store lists. Not allowed together with auth. Default: true without auth, as far as all
    /// entries are open to all callers. Since: 0.2.0.
    pub(crate) public: Option<bool>,
}

/// HTTP transports, each of which can be switched off.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TransportsConfig {
    /// MCP over Streamable HTTP at /mcp. Default: true.
    pub(crate) mcp: bool,
    /// MCP over HTTP+SSE of revision 2024-11-05 at /mcp/sse. Default: true.
    pub(crate) sse: bool,
    /// MCP over WebSocket at /mcp/ws. Default: true.
    pub(crate) ws: bool,
    /// REST at /rest. Default: true.
    pub(crate) rest: bool,
    /// Prometheus metrics at /metrics. Default: true.
    pub(crate) metrics: bool,
}

impl Default for TransportsConfig {
    fn default() -> Self {
        Self { mcp: true, sse: true, ws: true, rest: true, metrics: true }
    }
}

/// TLS and client certificates. Changed files take effect without a restart.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsConfig {
    /// File of the certificate chain (PEM), leaf first; relative to this file. Required.
    pub(crate) certificate: PathBuf,
    /// File of the private key of the certificate (PEM), relative to this file. Required.
    pub(crate) key: PathBuf,
    /// File of the authorities of client certificates (PEM), relative to this file. Default: none; client certificates
    /// are not requested.
    pub(crate) client_ca: Option<PathBuf>,
    /// Whether clients need a certificate. optional: clients without one may authenticate another way. required: the
    /// handshake fails without one. Default: optional.
    pub(crate) client_certificates: Option<ClientCertificatesConfig>,
    /// File of revocation lists (PEM), relative to this file: one list for each authority of client_ca. Clients of an
    /// authority without a list are refused. Default: none.
    pub(crate) client_crl: Option<PathBuf>,
    /// Oldest TLS version that is accepted: "1.2" or "1.3". Default: "1.2".
    #[serde(default)]
    pub(crate) min_version: TlsVersionConfig,
}

impl TlsConfig {
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca).chain(&self.client_crl)
    }
}

/// Whether clients need a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ClientCertificatesConfig {
    Optional,
    Required,
}

/// A TLS version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum TlsVersionConfig {
    #[default]
    #[serde(rename = "1.2")]
    V1_2,
    #[serde(rename = "1.3")]
    V1_3,
}
