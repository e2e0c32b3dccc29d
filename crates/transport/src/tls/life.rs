//! How long the certificates of a server are good, for whoever has to renew them.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use rustls::pki_types::CertificateDer;

use super::{TlsError, TlsOptions, certificate, files, name};

/// How long one certificate of a server's chain is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateLife {
    /// Whose it is, as RFC 4514 has it.
    pub subject: String,
    /// How that stands.
    pub state: LifeState,
}

/// How the life of a certificate stands. Times are as RFC 3339 has them, of UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LifeState {
    /// It has not begun.
    NotYet {
        /// When it does.
        begins: String,
    },
    /// It goes on.
    Good {
        /// Until when.
        ends: String,
        /// Whole days until then.
        days: u64,
    },
    /// It is over.
    Over {
        /// Since when.
        ended: String,
    },
}

impl TlsOptions {
    /// How long each certificate of the server's chain is good, as that stands at `now`: its own first.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no certificates.
    pub fn lives(&self, now: SystemTime) -> Result<Vec<CertificateLife>, TlsError> {
        let unreadable = || TlsError::wrong(&self.certificate, "holds a certificate that cannot be read");
        let now = DateTime::<Utc>::from(now);
        let chain = files::certificates(&self.certificate)?;
        chain.iter().map(|one| life(one, now).ok_or_else(unreadable)).collect()
    }
}

fn life(der: &CertificateDer<'_>, now: DateTime<Utc>) -> Option<CertificateLife> {
    let certificate = certificate::parsed(der)?;
    let validity = certificate.validity();
    let begins = DateTime::from_timestamp(validity.not_before.timestamp(), 0)?;
    let ends = DateTime::from_timestamp(validity.not_after.timestamp(), 0)?;
    let text = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let state = match u64::try_from((ends - now).num_days()) {
        _ if now < begins => LifeState::NotYet { begins: text(begins) },
        Ok(days) if now <= ends => LifeState::Good { ends: text(ends), days },
        _ => LifeState::Over { ended: text(ends) },
    };
    Some(CertificateLife { subject: name::text(certificate.subject()), state })
}
