//! How long the certificates of a server are good, for whoever has to renew them.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use rustls::pki_types::CertificateDer;

use super::{TlsError, TlsOptions, certificate, distinguished_name, pem_files};

/// How long one certificate of a server's chain is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateValidity {
    /// Whose it is, as RFC 4514 has it.
    pub subject: String,
    /// How that stands.
    pub state: ValidityState,
}

/// How the life of a certificate stands. Times are as RFC 3339 has them, of UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValidityState {
    /// It has not begun.
    NotYetValid {
        /// When it does.
        begins: String,
    },
    /// It goes on.
    Valid {
        /// Until when.
        ends: String,
        /// Whole days until then.
        days: u64,
    },
    /// It is over.
    Expired {
        /// Since when.
        ended: String,
    },
}

impl TlsOptions {
    /// How long each certificate of the server's chain is good, as that stands at `now`: its own first.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no certificates.
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
