//! The protection of a connection, in libpq's terms.
//! <https://www.postgresql.org/docs/current/libpq-ssl.html>

use std::path::PathBuf;

use super::environment::ConnectEnvironment;
use super::settings::Settings;
use super::target_error::TargetError;

/// The TLS mode of a connection (`sslmode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsMode {
    /// No TLS.
    Disable,
    /// TLS only if the server requires it.
    Allow,
    /// TLS if the server offers it.
    Prefer,
    /// TLS is required. The certificate is verified only if a file of root certificates exists.
    Require,
    /// TLS is required, and the certificate must have a trusted issuer.
    VerifyCa,
    /// TLS is required, and the certificate must have a trusted issuer and match the host name.
    VerifyFull,
}

impl TlsMode {
    const NAMES: [(&'static str, Self); 6] = [
        ("disable", Self::Disable),
        ("allow", Self::Allow),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    /// The name in a connection string.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// The protection of a connection.
#[derive(Debug, Clone)]
pub(super) struct TlsSettings {
    pub(super) mode: TlsMode,
    /// Whether TLS begins with the first byte, without negotiation.
    pub(super) is_direct: bool,
    pub(super) roots: RootCertificates,
    /// The client certificate.
    pub(super) certificate: ClientFile,
    /// The private key of the client.
    pub(super) key: ClientFile,
    /// Whether the host name is sent to the server (SNI).
    pub(super) sends_name: bool,
    pub(super) version_min: TlsVersion,
    pub(super) version_max: TlsVersion,
}

/// The trusted issuers of server certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RootCertificates {
    /// The root certificates of the operating system.
    System,
    /// The authorities in this file, which must exist.
    File(PathBuf),
    /// The authorities in this file, if it exists.
    FileIfPresent(PathBuf),
    /// No root certificates.
    None,
}

/// A file of the client certificate or its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClientFile {
    /// It was configured and must exist.
    Named(PathBuf),
    /// The default path, used if the file exists.
    IfPresent(PathBuf),
    /// No file.
    None,
}

/// A TLS version; older versions are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TlsVersion {
    V1_2,
    V1_3,
}

impl TlsSettings {
    pub(super) fn from_settings(
        settings: &Settings,
        connect_environment: &ConnectEnvironment<'_>,
    ) -> Result<Self, TargetError> {
        let of_home = |name: &str| connect_environment.home.as_ref().map(|home| home.join(".postgresql").join(name));
        let roots = match settings.text("sslrootcert") {
            Some("system") => RootCertificates::System,
            Some(path) => RootCertificates::File(path.into()),
            None => of_home("root.crt").map_or(RootCertificates::None, RootCertificates::FileIfPresent),
        };
        let client_file = |keyword, name| match settings.text(keyword) {
            Some(path) => ClientFile::Named(path.into()),
            None => of_home(name).map_or(ClientFile::None, ClientFile::IfPresent),
        };
        let by_default = if roots == RootCertificates::System { TlsMode::VerifyFull } else { TlsMode::Prefer };
        let versions = [("TLSv1.2", TlsVersion::V1_2), ("TLSv1.3", TlsVersion::V1_3)];
        let read = Self {
            mode: settings.choose("sslmode", &TlsMode::NAMES)?.unwrap_or(by_default),
            is_direct: settings.choose("sslnegotiation", &[("postgres", false), ("direct", true)])?.unwrap_or(false),
            roots,
            certificate: client_file("sslcert", "postgresql.crt"),
            key: client_file("sslkey", "postgresql.key"),
            sends_name: settings.choose("sslsni", &[("0", false), ("1", true)])?.unwrap_or(true),
            version_min: settings.choose("ssl_min_protocol_version", &versions)?.unwrap_or(TlsVersion::V1_2),
            version_max: settings.choose("ssl_max_protocol_version", &versions)?.unwrap_or(TlsVersion::V1_3),
        };
        read.check()
    }

    fn check(self) -> Result<Self, TargetError> {
        if self.roots == RootCertificates::System && self.mode != TlsMode::VerifyFull {
            return Err(TargetError::Contradiction(
                "sslrootcert=system requires sslmode=verify-full, because public authorities issue certificates to \
                 anyone",
            ));
        }
        if self.is_direct && self.mode < TlsMode::Require {
            return Err(TargetError::Contradiction(
                "sslnegotiation=direct requires sslmode=require or stronger, because it never falls back to a \
                 connection without TLS",
            ));
        }
        if self.version_min > self.version_max {
            return Err(TargetError::Contradiction("ssl_min_protocol_version is above ssl_max_protocol_version"));
        }
        Ok(self)
    }
}
