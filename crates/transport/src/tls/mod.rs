//! TLS: loads certificate, private key and client authorities from files, and reloads them while connections stay open.
//!
//! [RFC 8446](https://www.rfc-editor.org/rfc/rfc8446)

mod certificate;
mod distinguished_name;
mod peer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub use self::certificate::{CertificateValidity, ValidityState};
pub use self::peer::{TlsPeer, UntrustedCertificate};

const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// The protocol in ALPN, which both sides negotiate (RFC 7301).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplicationProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, for gRPC.
    Http2,
}

impl ApplicationProtocol {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }
}

/// TLS versions and files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// The certificate chain in PEM format, the server's own certificate first.
    pub certificate: PathBuf,
    /// The private key of the certificate (PEM: PKCS #8, PKCS #1 or SEC1).
    pub key: PathBuf,
    /// Accepted client certificates; `None` if the server requests none.
    pub clients: Option<ClientCertificateOptions>,
    /// The minimum TLS version.
    pub min_version: TlsVersion,
}

/// Which client certificates are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificateOptions {
    /// The trusted authorities (PEM).
    pub authorities: PathBuf,
    /// Whether a client certificate is required.
    pub are_required: bool,
    /// Revocation lists (PEM): one for each authority that issues client certificates.
    pub revocation_list: Option<PathBuf>,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
}

impl TlsVersion {
    fn and_newer(self) -> &'static [&'static SupportedProtocolVersion] {
        static ALL: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        match self {
            Self::V1_2 => &ALL,
            Self::V1_3 => &ALL[..1],
        }
    }
}

/// Why a TLS file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} {problem}", path.display())]
pub struct TlsError {
    path: PathBuf,
    problem: String,
}

impl TlsError {
    fn new(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: path.to_owned(), problem: problem.into() }
    }
}

/// A TLS configuration that can be reloaded. Open connections keep their parameters, but client certificates are always
/// verified against the newest files.
pub struct Tls(ArcSwap<TlsState>);

struct TlsState {
    acceptor: TlsAcceptor,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    requires_certificate: bool,
    protocol: ApplicationProtocol,
    generation: u64,
}

impl Tls {
    /// Loads the files of `options`, for HTTP/1.1.
    ///
    /// # Errors
    /// When a file cannot be read, or has invalid content.
    pub fn load(options: &TlsOptions) -> Result<Arc<Self>, TlsError> {
        Self::load_for(options, ApplicationProtocol::Http1)
    }

    /// Loads the files of `options`, for connections with `protocol`.
    ///
    /// # Errors
    /// As [`Tls::load`].
    pub fn load_for(options: &TlsOptions, protocol: ApplicationProtocol) -> Result<Arc<Self>, TlsError> {
        Ok(Arc::new(Self(ArcSwap::from_pointee(TlsState::load(options, protocol, 1)?))))
    }

    /// Reloads the files of `options`. Client certificates that are no longer trusted become invalid immediately, also
    /// on open connections.
    ///
    /// # Errors
    /// As [`Tls::load`]; then nothing has changed.
    pub fn reload(&self, options: &TlsOptions) -> Result<(), TlsError> {
        let current = self.0.load();
        let next = TlsState::load(options, current.protocol, current.generation + 1)?;
        self.0.store(Arc::new(next));
        Ok(())
    }

    /// Performs the handshake with a client. The [`TlsPeer`] holds the certificate of the client.
    ///
    /// # Errors
    /// When the handshake fails or takes too long.
    pub async fn accept<S>(self: &Arc<Self>, stream: S) -> io::Result<(TlsStream<S>, Arc<TlsPeer>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let state = self.0.load_full();
        let too_slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long");
        let handshake = tokio::time::timeout(HANDSHAKE_WITHIN, state.acceptor.accept(stream)).await;
        let stream = handshake.map_err(too_slow)??;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
        let peer = TlsPeer::new(self.clone(), state.generation, chain)?;
        Ok((stream, Arc::new(peer)))
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tls").field(&self.0.load().generation).finish()
    }
}

impl TlsState {
    fn load(options: &TlsOptions, protocol: ApplicationProtocol, number: u64) -> Result<Self, TlsError> {
        let TlsOptions { certificate, key, clients, min_version } = options;
        let chain = certificate::read_certificates(certificate)?;
        let private = certificate::read_private_key(key)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(min_version.and_newer())
            .map_err(|error| TlsError::new(certificate, format!("cannot be used: {error}")))?;
        let verifier = clients.as_ref().map(build_verifier).transpose()?;
        let builder = match &verifier {
            Some(verifier) => builder.with_client_cert_verifier(verifier.clone()),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, private).map_err(|error| {
            let problem = match error {
                rustls::Error::InconsistentKeys(_) => format!("does not match the private key {}", key.display()),
                error => format!("and its key {} cannot be used: {error}", key.display()),
            };
            TlsError::new(certificate, problem)
        })?;
        config.alpn_protocols = vec![protocol.name().to_vec()];
        let requires_certificate = clients.as_ref().is_some_and(|clients| clients.are_required);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { acceptor, verifier, requires_certificate, protocol, generation: number })
    }

    /// Whether `chain` leads to a trusted authority without a revoked certificate.
    fn trusts(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((first, others)) = chain.split_first() else { return false };
        let now = rustls::pki_types::UnixTime::now();
        self.verifier.as_ref().is_some_and(|verifier| verifier.verify_client_cert(first, others, now).is_ok())
    }
}

fn build_verifier(options: &ClientCertificateOptions) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let ClientCertificateOptions { authorities, are_required, revocation_list: revoked } = options;
    let mut roots = RootCertStore::empty();
    for authority in certificate::read_certificates(authorities)? {
        let added = roots.add(authority);
        added.map_err(|error| TlsError::new(authorities, format!("contains an invalid authority: {error}")))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    if !are_required {
        builder = builder.allow_unauthenticated();
    }
    if let Some(revoked) = revoked {
        builder = builder.with_crls(certificate::read_revocation_lists(revoked)?);
    }
    let path = revoked.as_ref().unwrap_or(authorities);
    builder.build().map_err(|error| TlsError::new(path, format!("cannot be used: {error}")))
}
