//! TLS of a client: the authorities that it trusts, and the errors of connections that another attempt does not mend.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::net::IpAddr;
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

/// Why a request to the server fails, if another attempt would fail too. A server that has answered before speaks HTTP.
pub(crate) fn permanent_request_error(error: &reqwest::Error, has_answered: bool) -> Option<String> {
    let missing_tls = || missing_tls_error(error).filter(|_| !has_answered);
    permanent_tls_error(error).filter(|_| error.is_connect()).or_else(missing_tls)
}

/// Why TLS with the server fails, if another attempt would fail too.
pub(crate) fn permanent_tls_error(error: &(dyn Error + 'static)) -> Option<String> {
    find_tls_error(error).map(explain)
}

/// The error of a request without TLS to a server that uses TLS: it answers with an alert instead of HTTP.
pub(crate) fn missing_tls_error(error: &(dyn Error + 'static)) -> Option<String> {
    // The libraries have no error of their own for it.
    let is_no_http = std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source())
        .any(|error| error.to_string().contains("invalid HTTP version"));
    is_no_http.then(|| {
        "the server does not answer in HTTP at this address; if it uses TLS, its URL begins with https:// or wss://"
            .to_owned()
    })
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
        // A bad signature, or one for another kind of key: an authority with the same name, often localhost, is known here.
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "the certificate of the server is signed by no known authority; --ca FILE names the certificate of its \
             authority, or its own if it is self-signed"
                .to_owned()
        }
        // The library has no variant of its own for it.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "the certificate of the server is one of an authority; create it with basicConstraints=critical,CA:FALSE"
                .to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => format!(
            "the certificate of the server expired {} ago; renew it there, or correct the clock of this machine",
            describe_time(time.as_secs().saturating_sub(not_after.as_secs()))
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "the certificate of the server is valid only in {}; correct the clock of this machine or of the server",
            describe_time(not_before.as_secs().saturating_sub(time.as_secs()))
        ),
        CertificateError::NotValidForNameContext { expected, presented } if presented.is_empty() => {
            let (kind, name) =
                (if expected.to_str().parse::<IpAddr>().is_ok() { "IP" } else { "DNS" }, expected.to_str());
            format!("the certificate of the server names no host; create it with subjectAltName={kind}:{name}")
        }
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "the certificate of the server is for {}, not for {}; use one of its names in the URL, or a certificate \
             that has this name too",
            presented.iter().map(|name| plain_name(name)).collect::<Vec<_>>().join(", "),
            expected.to_str()
        ),
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            "the certificate of the server has a signature that is no longer safe; create it with SHA-256".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the certificate of the server is not one for servers; create it with extendedKeyUsage=serverAuth"
                .to_owned()
        }
        other => format!(
            "the certificate of the server is not valid ({}); create it anew with subjectAltName, and name it by --ca FILE \
             if no known authority signs it",
            flaw_name(other)
        ),
    }
}

/// The name that the library gives a flaw, without its values.
fn flaw_name(flaw: &CertificateError) -> String {
    let text = match flaw {
        CertificateError::Other(inner) => inner.to_string(),
        flaw => format!("{flaw:?}"),
    };
    text.split([' ', '(']).next().unwrap_or_default().to_owned()
}

/// `name` as in a URL. The library writes `DnsName("a.example.com")`.
fn plain_name(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner);
    inner.trim_matches([')', '"'])
}

fn describe_time(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..120 => (seconds, "seconds"),
        120..7_200 => (seconds / 60, "minutes"),
        7_200..172_800 => (seconds / 3_600, "hours"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::pki_types::{ServerName, UnixTime};

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
    fn flaws_of_certificates_have_advice() {
        let time = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let (expected, now) = (ServerName::try_from("data.example.com").unwrap(), time(10_000_000));
        let presented = vec!["DnsName(\"localhost\")".to_owned(), "IpAddress(127.0.0.1)".to_owned()];
        let flaws = [
            CertificateError::BadSignature,
            CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                signature_algorithm_id: vec![1],
                public_key_algorithm_id: vec![2],
            },
            CertificateError::UnsupportedSignatureAlgorithmContext {
                signature_algorithm_id: vec![1],
                supported_algorithms: Vec::new(),
            },
            CertificateError::InvalidPurpose,
            CertificateError::BadEncoding,
            CertificateError::Other(rustls::OtherError(Arc::new(io::Error::other("UnsupportedCertVersion")))),
            CertificateError::ExpiredContext { time: now, not_after: time(10_000_000 - 259_200) },
            CertificateError::NotValidYetContext { time: now, not_before: time(10_000_090) },
            CertificateError::NotValidForNameContext { expected: expected.clone(), presented },
            CertificateError::NotValidForNameContext { expected, presented: Vec::new() },
        ];
        insta::assert_snapshot!(flaws.iter().map(explain_flaw).collect::<Vec<_>>().join("\n"), @"
        the certificate of the server is signed by no known authority; --ca FILE names the certificate of its authority, or its own if it is self-signed
        the certificate of the server is signed by no known authority; --ca FILE names the certificate of its authority, or its own if it is self-signed
        the certificate of the server has a signature that is no longer safe; create it with SHA-256
        the certificate of the server is not one for servers; create it with extendedKeyUsage=serverAuth
        the certificate of the server is not valid (BadEncoding); create it anew with subjectAltName, and name it by --ca FILE if no known authority signs it
        the certificate of the server is not valid (UnsupportedCertVersion); create it anew with subjectAltName, and name it by --ca FILE if no known authority signs it
        the certificate of the server expired 3 days ago; renew it there, or correct the clock of this machine
        the certificate of the server is valid only in 90 seconds; correct the clock of this machine or of the server
        the certificate of the server is for localhost, 127.0.0.1, not for data.example.com; use one of its names in the URL, or a certificate that has this name too
        the certificate of the server names no host; create it with subjectAltName=DNS:data.example.com
        ");
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
