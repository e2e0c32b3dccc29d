//! The protection of a connection, in libpq's terms.
//! <https://www.postgresql.org/docs/current/libpq-ssl.html>

use std::path::{Path, PathBuf};

use super::environment::ConnectEnvironment;
use super::keyword::ConnectionStringError;
use super::settings::Settings;

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

#[derive(Debug, Clone)]
pub(super) struct TlsSettings {
    pub(super) mode: TlsMode,
    /// Whether TLS begins with the first byte, without negotiation.
    pub(super) is_direct: bool,
    pub(super) roots: RootCertificates,
    pub(super) certificate: Option<TlsFile>,
    pub(super) key: Option<TlsFile>,
    /// Whether the host name is sent to the server (SNI).
    pub(super) sends_name: bool,
    pub(super) version_min: TlsVersion,
    pub(super) version_max: TlsVersion,
}

/// The trusted issuers of server certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RootCertificates {
    System,
    /// The authorities in this file, if any.
    File(Option<TlsFile>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TlsFile {
    pub(super) path: PathBuf,
    /// Whether it is the default file, which is used only if it exists.
    is_default: bool,
}

impl TlsFile {
    /// The path, unless it is a default file that does not exist.
    pub(super) fn existing(&self) -> Option<&Path> {
        (!self.is_default || self.path.exists()).then_some(self.path.as_path())
    }
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
        environment: &ConnectEnvironment<'_>,
    ) -> Result<Self, ConnectionStringError> {
        let file = |keyword, default_name| {
            let of_home = || Some(environment.home.as_ref()?.join(".postgresql").join(default_name));
            match settings.text(keyword) {
                Some(path) => Some(TlsFile { path: path.into(), is_default: false }),
                None => of_home().map(|path| TlsFile { path, is_default: true }),
            }
        };
        let roots = match settings.text("sslrootcert") {
            Some("system") => RootCertificates::System,
            _ => RootCertificates::File(file("sslrootcert", "root.crt")),
        };
        let by_default = if roots == RootCertificates::System { TlsMode::VerifyFull } else { TlsMode::Prefer };
        let versions = [("TLSv1.2", TlsVersion::V1_2), ("TLSv1.3", TlsVersion::V1_3)];
        let read = Self {
            mode: settings.choose("sslmode", &TlsMode::NAMES)?.unwrap_or(by_default),
            is_direct: settings.choose("sslnegotiation", &[("postgres", false), ("direct", true)])?.unwrap_or(false),
            roots,
            certificate: file("sslcert", "postgresql.crt"),
            key: file("sslkey", "postgresql.key"),
            sends_name: settings.choose("sslsni", &[("0", false), ("1", true)])?.unwrap_or(true),
            version_min: settings.choose("ssl_min_protocol_version", &versions)?.unwrap_or(TlsVersion::V1_2),
            version_max: settings.choose("ssl_max_protocol_version", &versions)?.unwrap_or(TlsVersion::V1_3),
        };
        read.check()
    }

    fn check(self) -> Result<Self, ConnectionStringError> {
        if self.roots == RootCertificates::System && self.mode != TlsMode::VerifyFull {
            return Err(ConnectionStringError::new(
                "sslrootcert=system requires sslmode=verify-full, because public authorities issue certificates to \
                 anyone",
            ));
        }
        if self.is_direct && self.mode < TlsMode::Require {
            return Err(ConnectionStringError::new(
                "sslnegotiation=direct requires sslmode=require or stronger, because it never falls back to a \
                 connection without TLS",
            ));
        }
        if self.version_min > self.version_max {
            return Err(ConnectionStringError::new("ssl_min_protocol_version is above ssl_max_protocol_version"));
        }
        Ok(self)
    }
}
