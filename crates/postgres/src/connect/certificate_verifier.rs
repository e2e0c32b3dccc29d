//! Which server certificates are trusted.
//!
//! Without root certificates any is; its handshake is checked all the same, because channel
//! binding is worth nothing if the server need not own the certificate that it shows.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Whom a server's certificate must come from, and whether it must be for the host's name.
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    pub(super) algorithms: WebPkiSupportedAlgorithms,
    /// None trusts anybody.
    pub(super) roots: Option<TrustedRoots>,
    pub(super) checks_name: bool,
}

/// Root certificates, as they came and as they are used.
#[derive(Debug)]
pub(super) struct TrustedRoots {
    certificates: Vec<CertificateDer<'static>>,
    store: RootCertStore,
}

impl TrustedRoots {
    /// The usable ones of `certificates`, if there are any.
    pub(super) fn new(certificates: Vec<CertificateDer<'static>>) -> Option<Self> {
        let mut store = RootCertStore::empty();
        let (usable, _) = store.add_parsable_certificates(certificates.iter().cloned());
        (usable > 0).then_some(Self { certificates, store })
    }

    /// Whether `certificate` comes from one of the roots, or is one: a server that signed for itself and whose owner
    /// gave us that very certificate is as trusted as can be. Its dates count in both cases.
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
