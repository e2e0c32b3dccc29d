//! Validity periods of the server certificates, so that operators know when to renew them.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use rustls::pki_types::CertificateDer;

use super::{TlsError, TlsOptions, certificate, distinguished_name, pem_files};

/// The validity of one certificate of the server's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateValidity {
    /// The subject of the certificate, in the form of RFC 4514.
    pub subject: String,
    /// Its validity.
    pub state: ValidityState,
}

/// The validity of a certificate. Times are UTC in the form of RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValidityState {
    /// The certificate is not valid yet.
    NotYetValid {
        /// The start of its validity.
        begins: String,
    },
    /// The certificate is valid.
    Valid {
        /// The end of its validity.
        ends: String,
        /// Whole days until then.
        days: u64,
    },
    /// The certificate has expired.
    Expired {
        /// The end of its validity.
        ended: String,
    },
}

impl TlsOptions {
    /// The validity of each certificate of the server's chain at `now`, the server's own first.
    ///
    /// # Errors
    /// When the file cannot be read, or contains no certificates.
    pub fn certificate_validity(&self, now: SystemTime) -> Result<Vec<CertificateValidity>, TlsError> {
        let unreadable = || TlsError::invalid(&self.certificate, "contains a certificate that cannot be parsed");
        let now = DateTime::<Utc>::from(now);
        let chain = pem_files::read_certificates(&self.certificate)?;
        chain.iter().map(|one| read_validity(one, now).ok_or_else(unreadable)).collect()
    }
}

fn read_validity(der: &CertificateDer<'_>, now: DateTime<Utc>) -> Option<CertificateValidity> {
    let certificate = certificate::parse_certificate(der)?;
    let validity = certificate.validity();
    let begins = DateTime::from_timestamp(validity.not_before.timestamp(), 0)?;
    let ends = DateTime::from_timestamp(validity.not_after.timestamp(), 0)?;
    let text = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let state = match u64::try_from((ends - now).num_days()) {
        _ if now < begins => ValidityState::NotYetValid { begins: text(begins) },
        Ok(days) if now <= ends => ValidityState::Valid { ends: text(ends), days },
        _ => ValidityState::Expired { ended: text(ends) },
    };
    Some(CertificateValidity { subject: distinguished_name::format_name(certificate.subject()), state })
}
