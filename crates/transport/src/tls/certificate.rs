//! From the certificate of a client to what it says of its holder.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use tidegate_core::ClientCertificate;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use super::distinguished_name;

/// Of alternative names so many are read, each of so many bytes; the rest name nobody.
const ALTERNATIVE_NAMES_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 1024;

/// What the first certificate of `chain` says; it is good for as long as all of them are. None if it cannot be read.
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
        sha256: Sha256::digest(first).iter().map(|byte| format!("{byte:02x}")).collect(),
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

/// A name with its sort; none for sorts that nobody is known by.
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
