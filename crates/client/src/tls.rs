//! TLS of a client: the authorities that it trusts, and the errors that another attempt does not mend.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::ClientBuilder;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{CertificateError, ClientConfig, RootCertStore};

/// The authorities that a client trusts instead of those of the system. A server may be its own authority.
#[derive(Debug, Clone)]
pub struct TrustedAuthorities(Arc<ClientConfig>);

/// Why a file contains no authorities.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the certificates of {}: {reason}", .file.display())]
pub struct AuthoritiesError {
    file: PathBuf,
    reason: String,
}

impl TrustedAuthorities {
    /// Reads their certificates, in PEM format.
    ///
    /// # Errors
    /// When the file cannot be read, or contains no certificates.
    pub fn read(file: &Path) -> Result<Self, AuthoritiesError> {
        let unusable = |reason: &dyn Display| AuthoritiesError { file: file.to_owned(), reason: reason.to_string() };
        let bytes = std::fs::read(file).map_err(|error| unusable(&error))?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&bytes) {
            // The message of the parser may quote the file.
            let certificate = certificate.map_err(|_| unusable(&"it is not in PEM format"))?;
            roots.add(certificate).map_err(|error| unusable(&error))?;
        }
        if roots.is_empty() {
            return Err(unusable(&"it contains no certificate in PEM format"));
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn apply(&self, builder: ClientBuilder) -> ClientBuilder {
        builder.tls_backend_preconfigured(ClientConfig::clone(&self.0))
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        self.0.clone()
    }
}

/// Why TLS with the server fails, if another attempt would fail too.
pub(crate) fn permanent_tls_error(error: &(dyn Error + 'static)) -> Option<String> {
    find_tls_error(error).map(explain)
}

fn find_tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(error);
    }
    // An I/O error does not have the error in it as its source.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => find_tls_error(inner),
        None => find_tls_error(error.source()?),
    }
}

fn explain(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(flaw) => explain_flaw(flaw),
        rustls::Error::InvalidMessage(_) => {
            "the server does not use TLS at this address; its URL begins with http:// or ws://".to_owned()
        }
        other => format!("the server refuses TLS: {other}"),
    }
}

fn explain_flaw(flaw: &CertificateError) -> String {
    match flaw {
        CertificateError::UnknownIssuer => {
            "the certificate of the server is signed by no known authority; --ca FILE names the certificate of its \
             authority, or its own if it is self-signed"
                .to_owned()
        }
        // The library has no variant of its own for it.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "the certificate of the server is one of an authority; create it with basicConstraints=critical,CA:FALSE"
                .to_owned()
        }
        other => format!("the certificate of the server is not valid: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_certificates_are_found_within_others() {
        let tls = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let nested = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, tls));
        assert!(permanent_tls_error(&nested).is_some_and(|reason| reason.contains("--ca FILE")));
        let lost = io::Error::other(io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(permanent_tls_error(&lost), None);
    }

    #[test]
    fn files_without_certificates_are_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            std::fs::write(file.path(), text).unwrap();
            let error = TrustedAuthorities::read(file.path()).unwrap_err().to_string();
            assert!(error.starts_with("cannot use the certificates of /"), "{error}");
        }
        assert!(TrustedAuthorities::read(Path::new("no/such.pem")).is_err());
    }
}
