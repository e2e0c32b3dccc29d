//! The protection of a connection, in libpq's terms: its settings, the connector with certificates from the configured files,
//! and which server certificates are trusted. <https://www.postgresql.org/docs/current/libpq-ssl.html>
//!
//! The files are read again for each connection, so that a renewed certificate is used without a restart.
//!
//! Without root certificates, every certificate is trusted. Its handshake signature is verified all the same: channel
//! binding protects only if the server owns the certificate that it presents.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, fs};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion, version,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connection_string::{ConnectionStringError, Settings};
use super::environment::ConnectEnvironment;

/// The maximum size of a certificate or key file; the root certificates of a system take a tenth of it.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The message about a TLS file: the path, never the content.
fn file_error(subject: &str, path: &Path, reason: impl fmt::Display) -> String {
    format!("{subject} {}: {reason}", path.display())
}

/// Performs the TLS handshake for connections to one host, and records whether it was used.
#[derive(Clone)]
pub(super) struct TlsConnector {
    connect: MakeRustlsConnect,
    /// The name for the handshake. The name that the driver would pass may be invalid.
    name: String,
    used: Arc<AtomicBool>,
}

impl TlsConnector {
    pub(super) fn new(connect: MakeRustlsConnect, name: &str, address: &str, mode: TlsMode) -> Self {
        // A name that cannot occur in a certificate is an error only if the mode verifies it.
        let is_possible = mode == TlsMode::VerifyFull || ServerName::try_from(name).is_ok();
        let name = if is_possible { name } else { address };
        Self { connect, name: name.to_owned(), used: Arc::default() }
    }

    pub(super) fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }
}

type Inner<S> = <MakeRustlsConnect as MakeTlsConnect<S>>::TlsConnect;

impl<S> MakeTlsConnect<S> for TlsConnector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = <MakeRustlsConnect as MakeTlsConnect<S>>::Stream;
    type TlsConnect = TlsHandshake<Inner<S>>;
    type Error = <MakeRustlsConnect as MakeTlsConnect<S>>::Error;

    fn make_tls_connect(&mut self, _: &str) -> Result<Self::TlsConnect, Self::Error> {
        let inner = MakeTlsConnect::<S>::make_tls_connect(&mut self.connect, &self.name)?;
        Ok(TlsHandshake { inner, used: Arc::clone(&self.used) })
    }
}

pub(super) struct TlsHandshake<C> {
    inner: C,
    used: Arc<AtomicBool>,
}

impl<S, C: TlsConnect<S>> TlsConnect<S> for TlsHandshake<C> {
    type Stream = C::Stream;
    type Error = C::Error;
    type Future = C::Future;

    fn connect(self, stream: S) -> Self::Future {
        self.used.store(true, Ordering::Relaxed);
        self.inner.connect(stream)
    }
}

/// Loads the files that `settings` names. Blocks.
pub(super) fn load(settings: &TlsSettings) -> Result<MakeRustlsConnect, String> {
    let provider = aws_lc_rs::default_provider();
    let trust = CertificateVerifier {
        algorithms: provider.signature_verification_algorithms,
        roots: load_roots(settings)?,
        checks_name: settings.mode == TlsMode::VerifyFull,
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions(settings))
        .map_err(|error| format!("cannot prepare TLS with the versions: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust));
    let mut config = match load_client_certificate(settings)? {
        None => builder.with_no_client_auth(),
        Some((path, chain, key)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| file_error("cannot use the client certificate", &path, error))?,
    };
    config.enable_sni = settings.sends_name;
    config.resumption = Resumption::disabled();
    if settings.is_direct {
        config.alpn_protocols = vec![b"postgresql".to_vec()];
    }
    Ok(MakeRustlsConnect::new(config))
}

fn versions(settings: &TlsSettings) -> Vec<&'static SupportedProtocolVersion> {
    [(TlsVersion::V1_3, &version::TLS13), (TlsVersion::V1_2, &version::TLS12)]
        .into_iter()
        .filter(|(version, _)| (settings.version_min..=settings.version_max).contains(version))
        .map(|(_, version)| version)
        .collect()
}

fn load_roots(settings: &TlsSettings) -> Result<Option<TrustedRoots>, String> {
    let subject = "cannot use the root certificates";
    let unusable = |path: &Path, reason: &str| file_error(subject, path, reason);
    let file = match &settings.roots {
        RootCertificates::System => {
            let loaded = rustls_native_certs::load_native_certs();
            let reason = loaded.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
            let roots = TrustedRoots::new(loaded.certs);
            return roots.map(Some).ok_or_else(|| unusable(Path::new("of the system"), &reason));
        }
        RootCertificates::File(file) => file.as_ref(),
    };
    let path = match (file, file.and_then(TlsFile::existing)) {
        (_, Some(path)) => path,
        (Some(file), None) if settings.mode >= TlsMode::VerifyCa => {
            let reason = "the file does not exist; set sslrootcert to another file, or to system";
            return Err(unusable(&file.path, reason));
        }
        (None, _) if settings.mode >= TlsMode::VerifyCa => {
            return Err(unusable(Path::new(""), "no file is set; set sslrootcert to a file, or to system"));
        }
        _ => return Ok(None),
    };
    let roots = TrustedRoots::new(read_certificates(subject, path)?);
    roots.map(Some).ok_or_else(|| unusable(path, "it contains no certificate in PEM format"))
}

type ClientCertificate = (PathBuf, Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The client certificate and its key. A certificate without a key is an error, as in libpq.
fn load_client_certificate(settings: &TlsSettings) -> Result<Option<ClientCertificate>, String> {
    let Some(path) = settings.certificate.as_ref().and_then(TlsFile::existing) else { return Ok(None) };
    let subject = "cannot use the client certificate";
    let chain = read_certificates(subject, path)?;
    if chain.is_empty() {
        return Err(file_error(subject, path, "it contains no certificate in PEM format"));
    }
    let Some(TlsFile { path: key, .. }) = &settings.key else {
        return Err(file_error(subject, path, "it needs a private key; set sslkey to the key file"));
    };
    Ok(Some((path.to_owned(), chain, read_key(key)?)))
}

fn read_certificates(subject: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let content = read_file(subject, path)?;
    let certificates: Result<_, _> = CertificateDer::pem_slice_iter(&content).collect();
    // The message of the parser may quote the file.
    certificates.map_err(|_| file_error(subject, path, "it is not in PEM format"))
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let subject = "cannot use the private key";
    let unusable = |reason: &str| file_error(subject, path, reason);
    let content = read_file(subject, path)?;
    if is_open_to_others(path) {
        return Err(unusable(
            "users other than its owner may read it; its permissions must be 0600 or less, or 0640 or less if root \
             owns it",
        ));
    }
    PrivateKeyDer::from_pem_slice(&content).map_err(|_| unusable("it contains no unencrypted key in PEM format"))
}

fn read_file(subject: &str, path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => file_error(subject, path, "the file does not exist"),
        _ => file_error(subject, path, error),
    };
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err(file_error(subject, path, format!("it is not a regular file of at most {FILE_BYTES_MAX} bytes")));
    }
    fs::read(path).map_err(failed)
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = fs::metadata(path) else { return false };
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    metadata.mode() & forbidden != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

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
    roots: RootCertificates,
    certificate: Option<TlsFile>,
    pub(super) key: Option<TlsFile>,
    /// Whether the host name is sent to the server (SNI).
    sends_name: bool,
    version_min: TlsVersion,
    version_max: TlsVersion,
}

/// The trusted issuers of server certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RootCertificates {
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
    fn existing(&self) -> Option<&Path> {
        (!self.is_default || self.path.exists()).then_some(self.path.as_path())
    }
}

/// A TLS version; older versions are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TlsVersion {
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

/// The trusted issuers of a server certificate, and whether the certificate must match the host name.
#[derive(Debug)]
struct CertificateVerifier {
    algorithms: WebPkiSupportedAlgorithms,
    /// `None` trusts every certificate.
    roots: Option<TrustedRoots>,
    checks_name: bool,
}

#[derive(Debug)]
struct TrustedRoots {
    certificates: Vec<CertificateDer<'static>>,
    store: RootCertStore,
}

impl TrustedRoots {
    /// The usable ones among `certificates`; `None` if there are none.
    pub(super) fn new(certificates: Vec<CertificateDer<'static>>) -> Option<Self> {
        let mut store = RootCertStore::empty();
        let (usable, _) = store.add_parsable_certificates(certificates.iter().cloned());
        (usable > 0).then_some(Self { certificates, store })
    }

    /// Checks that `certificate` is issued by one of the roots, or is one of them. A self-signed certificate that the
    /// owner configured is trusted. The validity period is checked in both cases.
    fn check(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<(), Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let checked =
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.store, intermediates, now, algorithms.all);
        match checked {
            Err(error) if !is_about_dates(&error) && self.certificates.iter().any(|root| root == certificate) => Ok(()),
            checked => checked,
        }
    }
}

fn is_about_dates(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(
            CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. }
        )
    )
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            roots.check(certificate, intermediates, now, &self.algorithms)?;
        }
        if self.checks_name {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
