//! Decides which server certificates are trusted.
//!
//! Without root certificates, every certificate is trusted. Its handshake signature is verified all the same: channel
//! binding protects only if the server owns the certificate that it presents.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// The trusted issuers of a server certificate, and whether the certificate must match the host name.
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    pub(super) algorithms: WebPkiSupportedAlgorithms,
    /// `None` trusts every certificate.
    pub(super) roots: Option<TrustedRoots>,
    pub(super) checks_name: bool,
}

#[derive(Debug)]
pub(super) struct TrustedRoots {
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
