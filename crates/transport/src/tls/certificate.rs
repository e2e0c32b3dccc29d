//! Parses a client certificate into the attributes of its holder.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use tidegate_core::ClientCertificate;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use super::distinguished_name;

/// Maximum number of alternative names, and of bytes in each. Others are ignored.
const ALTERNATIVE_NAMES_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 1024;

/// The attributes of the first certificate of `chain`. Its expiry is the earliest one in the chain. `None` if a
/// certificate cannot be parsed.
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
