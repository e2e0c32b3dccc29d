//! Certificates: reads the PEM files of TLS ([RFC 7468](https://www.rfc-editor.org/rfc/rfc7468)), parses a client
//! certificate into the attributes of its holder, and determines the validity of those of the server.

use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat, Utc};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use tidegate_core::ClientCertificate;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use super::{TlsError, TlsOptions, distinguished_name};

/// Maximum number of alternative names, and of bytes in each. Others are ignored.
const ALTERNATIVE_NAMES_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 1024;

/// The attributes of the first certificate of `chain` with the earliest expiry; `None` if one cannot be parsed.
pub(super) fn parse_chain(chain: &[CertificateDer<'_>]) -> Option<ClientCertificate> {
    let first = chain.first()?;
    let certificate = parse_certificate(first)?;
    let expires =
        chain.iter().map(|one| parse_certificate(one).map(|one| expiry_time(&one))).collect::<Option<Vec<_>>>()?;
    let alternative_names = match certificate.subject_alternative_name().ok()? {
        Some(names) => {
            names.value.general_names.iter().filter_map(format_alternative_name).take(ALTERNATIVE_NAMES_MAX).collect()
        }
        None => Vec::new(),
    };
    Some(ClientCertificate {
        subject: distinguished_name::format_name(certificate.subject()),
        alternative_names,
        sha256: hex::encode(Sha256::digest(first)),
        expires: expires.into_iter().min()?,
    })
}

pub(super) fn parse_certificate<'a>(der: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    X509Certificate::from_der(der).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, certificate)| certificate)
}

fn expiry_time(certificate: &X509Certificate<'_>) -> SystemTime {
    let seconds = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// An alternative name with its type as prefix; `None` for types that do not identify a client.
fn format_alternative_name(name: &GeneralName<'_>) -> Option<String> {
    let text = match name {
        GeneralName::DNSName(host) => format!("dns:{}", host.to_ascii_lowercase()),
        GeneralName::RFC822Name(address) => format!("email:{address}"),
        GeneralName::URI(uri) => format!("uri:{uri}"),
        GeneralName::IPAddress(bytes) => format!("ip:{}", parse_ip_address(bytes)?),
        _ => return None,
    };
    let is_plain = text.len() <= NAME_BYTES_MAX && !text.chars().any(char::is_control);
    is_plain.then_some(text)
}

fn parse_ip_address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).into()),
        16 => <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into()),
        _ => None,
    }
}

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
        let unreadable = || TlsError::new(&self.certificate, "contains a certificate that cannot be parsed");
        let now = DateTime::<Utc>::from(now);
        let chain = read_certificates(&self.certificate)?;
        chain.iter().map(|one| read_validity(one, now).ok_or_else(unreadable)).collect()
    }
}

fn read_validity(der: &CertificateDer<'_>, now: DateTime<Utc>) -> Option<CertificateValidity> {
    let certificate = parse_certificate(der)?;
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

const BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(super) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    read_items(path, "a certificate", "BEGIN CERTIFICATE")
}

pub(super) fn read_revocation_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    read_items(path, "a list of revoked certificates", "BEGIN X509 CRL")
}

pub(super) fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read_file(path)?;
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| TlsError::new(path, describe_pem_error(&error, "a key", "BEGIN PRIVATE KEY")))
}

fn read_items<T: PemObject>(path: &Path, subject: &str, label: &str) -> Result<Vec<T>, TlsError> {
    let bytes = read_file(path)?;
    let all: Result<Vec<T>, pem::Error> = T::pem_slice_iter(&bytes).collect();
    let all = all.map_err(|error| TlsError::new(path, describe_pem_error(&error, subject, label)))?;
    if all.is_empty() {
        return Err(TlsError::new(path, describe_pem_error(&pem::Error::NoItemsFound, subject, label)));
    }
    Ok(all)
}

fn describe_pem_error(error: &pem::Error, subject: &str, label: &str) -> String {
    match error {
        pem::Error::NoItemsFound => format!("does not contain {subject} in PEM format (-----{label}-----)"),
        // Other errors quote the file, which may contain a key.
        _ => format!("is not a valid PEM file with {subject}"),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |error| TlsError::new(path, format!("cannot be read: {error}"));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(TlsError::new(path, format!("is larger than {BYTES_MAX} bytes")));
    }
    Ok(bytes)
}
