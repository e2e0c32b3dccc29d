//! Configuration of TLS and client certificates.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

/// TLS and client certificates. Changed files take effect without a restart.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsEntry {
    /// File of the certificate chain (PEM), leaf first; relative to this file. Required.
    pub(crate) certificate: PathBuf,
    /// File of the private key of the certificate (PEM), relative to this file. Required.
    pub(crate) key: PathBuf,
    /// File of the authorities of client certificates (PEM), relative to this file. Default: none; client certificates
    /// are not requested.
    pub(crate) client_ca: Option<PathBuf>,
    /// Whether clients need a certificate. optional: clients without one may authenticate another way. required: the
    /// handshake fails without one. Default: optional.
    pub(crate) client_certificates: Option<ClientCertificatesEntry>,
    /// File of revocation lists (PEM), relative to this file: one list for each authority of client_ca. Clients of an
    /// authority without a list are refused. Default: none.
    pub(crate) client_crl: Option<PathBuf>,
    /// Oldest TLS version that is accepted: "1.2" or "1.3". Default: "1.2".
    #[serde(default)]
    pub(crate) min_version: TlsVersionEntry,
}

impl TlsEntry {
    /// The files that the entry names.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca).chain(&self.client_crl)
    }
}

/// Whether clients need a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ClientCertificatesEntry {
    Optional,
    Required,
}

/// A TLS version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum TlsVersionEntry {
    #[default]
    #[serde(rename = "1.2")]
    V1_2,
    #[serde(rename = "1.3")]
    V1_3,
}
