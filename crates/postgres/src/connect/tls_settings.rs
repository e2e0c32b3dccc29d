//! How a connection is protected, as libpq names it.
//! <https://www.postgresql.org/docs/current/libpq-ssl.html>

use std::path::PathBuf;

use super::environment::ConnectEnvironment;
use super::settings::Settings;
use super::target_error::TargetError;

/// How much TLS a connection must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsMode {
    /// None.
    Disable,
    /// Only if the server wants it.
    Allow,
    /// Where the server can.
    Prefer,
    /// Always, whoever the server is; checked against root certificates that are there.
    Require,
    /// Always, and the server's certificate comes from a trusted authority.
    VerifyCa,
    /// Always, and the server's certificate comes from a trusted authority and is for the host's name.
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

    /// As it stands in a connection string.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// How a connection is protected.
#[derive(Debug, Clone)]
pub(super) struct TlsSettings {
    pub(super) mode: TlsMode,
    /// Whether TLS begins with the first byte, without asking the server.
    pub(super) is_direct: bool,
    pub(super) roots: RootCertificates,
    /// The client's certificate.
    pub(super) certificate: ClientFile,
    /// The client's private key.
    pub(super) key: ClientFile,
    /// Whether the server is told the name that is wanted.
    pub(super) sends_name: bool,
    pub(super) version_min: TlsVersion,
    pub(super) version_max: TlsVersion,
}

/// Whom the server's certificate must come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RootCertificates {
    /// Whomever the system trusts.
    System,
    /// An authority in this file, which must be there.
    File(PathBuf),
    /// An authority in this file, if it exists.
    FileIfPresent(PathBuf),
    /// There are no roots.
    None,
}

/// A file of the client's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClientFile {
    /// It was named and must be there.
    Named(PathBuf),
    /// It is where it lies by default, if it exists.
    IfPresent(PathBuf),
    /// There is none.
    None,
}

/// A version of TLS; older ones are spoken by nobody here.
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
                "sslrootcert=system trusts so many authorities that only the name tells servers apart: it needs sslmode=verify-full",
            ));
        }
        if self.is_direct && self.mode < TlsMode::Require {
            return Err(TargetError::Contradiction(
                "sslnegotiation=direct cannot go back to a connection without TLS, so it needs sslmode=require or more",
            ));
        }
        if self.version_min > self.version_max {
            return Err(TargetError::Contradiction("ssl_min_protocol_version is above ssl_max_protocol_version"));
        }
        Ok(self)
    }
}
