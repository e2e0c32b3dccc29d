//! TLS, and the certificates of clients.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

/// TLS, and the certificates of clients. The files are read again when they change, without a restart.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsEntry {
    /// The certificate (PEM), followed by those that lead from it to a root; relative to this file.
    pub(crate) certificate: PathBuf,
    /// The private key of the certificate (PEM), relative to this file.
    pub(crate) key: PathBuf,
    /// The authorities whose clients' certificates are taken (PEM), relative to this file; without it none are wanted.
    pub(crate) client_ca: Option<PathBuf>,
    /// Whether clients must show a certificate: optional (unless said) or required.
    pub(crate) client_certificates: Option<ClientCertificatesEntry>,
    /// What the authorities have revoked (PEM), relative to this file: a list of each authority.
    pub(crate) client_crl: Option<PathBuf>,
    /// The oldest version that is spoken: "1.2" (unless said) or "1.3".
    #[serde(default)]
    pub(crate) min_version: TlsVersionEntry,
}

impl TlsEntry {
    /// The files that it names.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca).chain(&self.client_crl)
    }
}

/// Whether clients must show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ClientCertificatesEntry {
    Optional,
    Required,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum TlsVersionEntry {
    #[default]
    #[serde(rename = "1.2")]
    V1_2,
    #[serde(rename = "1.3")]
    V1_3,
}
