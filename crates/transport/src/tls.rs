//! TLS: loads certificate, private key and client authorities from files, and reloads them while connections stay open. A
//! client certificate becomes the attributes of its holder, with distinguished names as text: `CN=ann,O=Example`.
//!
//! [RFC 8446](https://www.rfc-editor.org/rfc/rfc8446), [RFC 7468](https://www.rfc-editor.org/rfc/rfc7468) for the files,
//! [RFC 4514](https://www.rfc-editor.org/rfc/rfc4514) for the names

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use chrono::{DateTime, SecondsFormat, Utc};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use sha2::{Digest, Sha256};
use tidegate_core::ClientCertificate;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// The protocol in ALPN, which both sides negotiate (RFC 7301).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplicationProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, for gRPC.
    Http2,
}

impl ApplicationProtocol {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }
}

/// TLS versions and files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// The certificate chain in PEM format, the server's own certificate first.
    pub certificate: PathBuf,
    /// The private key of the certificate (PEM: PKCS #8, PKCS #1 or SEC1).
    pub key: PathBuf,
    /// Accepted client certificates; `None` if the server requests none.
    pub clients: Option<ClientCertificateOptions>,
    /// The minimum TLS version.
    pub min_version: TlsVersion,
}

/// Which client certificates are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificateOptions {
    /// The trusted authorities (PEM).
    pub authorities: PathBuf,
    /// Whether a client certificate is required.
    pub are_required: bool,
    /// Revocation lists (PEM): one for each authority that issues client certificates.
    pub revocation_list: Option<PathBuf>,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
}

impl TlsVersion {
    fn and_newer(self) -> &'static [&'static SupportedProtocolVersion] {
        static ALL: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        match self {
            Self::V1_2 => &ALL,
            Self::V1_3 => &ALL[..1],
        }
    }
}

/// Why a TLS file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} {problem}", path.display())]
pub struct TlsError {
    path: PathBuf,
    problem: String,
}

impl TlsError {
    fn new(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: path.to_owned(), problem: problem.into() }
    }
}

/// A TLS configuration that can be reloaded. Open connections keep their parameters, but client certificates are always
/// verified against the newest files.
pub struct Tls(ArcSwap<TlsState>);

struct TlsState {
    acceptor: TlsAcceptor,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    requires_certificate: bool,
    protocol: ApplicationProtocol,
    generation: u64,
}

impl Tls {
    /// Loads the files of `options`, for HTTP/1.1.
    ///
    /// # Errors
    /// When a file cannot be read, or has invalid content.
    pub fn load(options: &TlsOptions) -> Result<Arc<Self>, TlsError> {
        Self::load_for(options, ApplicationProtocol::Http1)
    }

    /// Loads the files of `options`, for connections with `protocol`.
    ///
    /// # Errors
    /// As [`Tls::load`].
    pub fn load_for(options: &TlsOptions, protocol: ApplicationProtocol) -> Result<Arc<Self>, TlsError> {
        Ok(Arc::new(Self(ArcSwap::from_pointee(TlsState::load(options, protocol, 1)?))))
    }

    /// Reloads the files of `options`. Client certificates that are no longer trusted become invalid immediately, also
    /// on open connections.
    ///
    /// # Errors
    /// As [`Tls::load`]; then nothing has changed.
    pub fn reload(&self, options: &TlsOptions) -> Result<(), TlsError> {
        let current = self.0.load();
        let next = TlsState::load(options, current.protocol, current.generation + 1)?;
        self.0.store(Arc::new(next));
        Ok(())
    }

    /// Performs the handshake with a client. The [`TlsPeer`] holds the certificate of the client.
    ///
    /// # Errors
    /// When the handshake fails or takes too long.
    pub async fn accept<S>(self: &Arc<Self>, stream: S) -> io::Result<(TlsStream<S>, Arc<TlsPeer>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let state = self.0.load_full();
        let too_slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long");
        let handshake = tokio::time::timeout(HANDSHAKE_WITHIN, state.acceptor.accept(stream)).await;
        let stream = handshake.map_err(too_slow)??;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
        let peer = TlsPeer::new(self.clone(), state.generation, chain)?;
        Ok((stream, Arc::new(peer)))
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tls").field(&self.0.load().generation).finish()
    }
}

impl TlsState {
    fn load(options: &TlsOptions, protocol: ApplicationProtocol, number: u64) -> Result<Self, TlsError> {
        let TlsOptions { certificate, key, clients, min_version } = options;
        let chain = read_certificates(certificate)?;
        let private = read_private_key(key)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(min_version.and_newer())
            .map_err(|error| TlsError::new(certificate, format!("cannot be used: {error}")))?;
        let verifier = clients.as_ref().map(build_verifier).transpose()?;
        let builder = match &verifier {
            Some(verifier) => builder.with_client_cert_verifier(verifier.clone()),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, private).map_err(|error| {
            let problem = match error {
                rustls::Error::InconsistentKeys(_) => format!("does not match the private key {}", key.display()),
                error => format!("and its key {} cannot be used: {error}", key.display()),
            };
            TlsError::new(certificate, problem)
        })?;
        config.alpn_protocols = vec![protocol.name().to_vec()];
        let requires_certificate = clients.as_ref().is_some_and(|clients| clients.are_required);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { acceptor, verifier, requires_certificate, protocol, generation: number })
    }

    /// Whether `chain` leads to a trusted authority without a revoked certificate.
    fn trusts(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((first, others)) = chain.split_first() else { return false };
        let now = rustls::pki_types::UnixTime::now();
        self.verifier.as_ref().is_some_and(|verifier| verifier.verify_client_cert(first, others, now).is_ok())
    }
}

fn build_verifier(options: &ClientCertificateOptions) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let ClientCertificateOptions { authorities, are_required, revocation_list: revoked } = options;
    let mut roots = RootCertStore::empty();
    for authority in read_certificates(authorities)? {
        let added = roots.add(authority);
        added.map_err(|error| TlsError::new(authorities, format!("contains an invalid authority: {error}")))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    if !are_required {
        builder = builder.allow_unauthenticated();
    }
    if let Some(revoked) = revoked {
        builder = builder.with_crls(read_revocation_lists(revoked)?);
    }
    let path = revoked.as_ref().unwrap_or(authorities);
    builder.build().map_err(|error| TlsError::new(path, format!("cannot be used: {error}")))
}

/// The client of a TLS connection.
pub struct TlsPeer {
    tls: Arc<Tls>,
    presented: Option<PeerCertificate>,
}

struct PeerCertificate {
    certificate: ClientCertificate,
    chain: Vec<CertificateDer<'static>>,
    /// The last verification: twice the number of the load of the files, plus one if the chain was trusted.
    last_check: AtomicU64,
}

/// The certificate is no longer trusted, or is missing although now required: a new connection would fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntrustedCertificate;

impl TlsPeer {
    /// A client that presented `chain`, its own certificate first, under load `number` of the files.
    fn new(tls: Arc<Tls>, number: u64, chain: Vec<CertificateDer<'static>>) -> io::Result<Self> {
        if chain.is_empty() {
            return Ok(Self { tls, presented: None });
        }
        let certificate = parse_chain(&chain)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the client's certificate cannot be parsed"))?;
        let checked = AtomicU64::new(encode_check(number, true));
        Ok(Self { tls, presented: Some(PeerCertificate { certificate, chain, last_check: checked }) })
    }

    /// The certificate that the client presented, if it did and the server requests certificates.
    ///
    /// # Errors
    /// When a new connection of the client would fail.
    pub fn certificate(&self) -> Result<Option<&ClientCertificate>, UntrustedCertificate> {
        let state = self.tls.0.load();
        let Some(peer_certificate) = &self.presented else {
            return if state.requires_certificate { Err(UntrustedCertificate) } else { Ok(None) };
        };
        if state.verifier.is_none() {
            // The server no longer requests certificates.
            return Ok(None);
        }
        let is_trusted = match peer_certificate.last_check.load(Ordering::Relaxed) {
            known if known == encode_check(state.generation, true) => true,
            known if known == encode_check(state.generation, false) => false,
            _ => {
                let is_trusted = state.trusts(&peer_certificate.chain);
                peer_certificate.last_check.store(encode_check(state.generation, is_trusted), Ordering::Relaxed);
                is_trusted
            }
        };
        if is_trusted { Ok(Some(&peer_certificate.certificate)) } else { Err(UntrustedCertificate) }
    }
}

fn encode_check(number: u64, is_trusted: bool) -> u64 {
    number * 2 + u64::from(is_trusted)
}

/// Maximum number of alternative names, and of bytes in each. Others are ignored.
const ALTERNATIVE_NAMES_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 1024;

/// The attributes of the first certificate of `chain` with the earliest expiry; `None` if one cannot be parsed.
fn parse_chain(chain: &[CertificateDer<'_>]) -> Option<ClientCertificate> {
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
        subject: format_name(certificate.subject()),
        alternative_names,
        sha256: hex::encode(Sha256::digest(first)),
        expires: expires.into_iter().min()?,
    })
}

fn parse_certificate<'a>(der: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
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
    Some(CertificateValidity { subject: format_name(certificate.subject()), state })
}

const BYTES_MAX: u64 = 16 * 1024 * 1024;

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    read_items(path, "a certificate", "BEGIN CERTIFICATE")
}

fn read_revocation_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    read_items(path, "a list of revoked certificates", "BEGIN X509 CRL")
}

fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
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

/// Attribute types with short names, by object identifier: those of the RFC, and two that common tools write too.
const TYPES: [(&str, &str); 11] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "STREET"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("2.5.4.5", "serialNumber"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// `name` as text: its parts from the last to the first, as the RFC specifies.
fn format_name(name: &X509Name<'_>) -> String {
    let mut parts: Vec<String> =
        name.iter_rdn().map(|part| part.iter().map(format_attribute).collect::<Vec<_>>().join("+")).collect();
    parts.reverse();
    parts.join(",")
}

fn format_attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let identifier = attribute.attr_type().to_id_string();
    let short_name = TYPES.iter().find(|(known, _)| *known == identifier).map(|(_, name)| *name);
    let name = short_name.unwrap_or(&identifier);
    match attribute.as_str() {
        Ok(value) if short_name.is_some() => format!("{name}={}", escape_value(value)),
        // A value without a short name, or one that is not text, is written as its bytes.
        _ => format!("{name}=#{}", encode_hex(attribute)),
    }
}

/// `value` with a backslash before characters that would end it or have another meaning.
fn escape_value(value: &str) -> String {
    let last = value.chars().count().saturating_sub(1);
    let mut text = String::with_capacity(value.len());
    for (position, character) in value.chars().enumerate() {
        let is_edge = (position == 0 && " #".contains(character)) || (position == last && character == ' ');
        if character.is_control() {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                let _ = write!(text, "\\{byte:02X}");
            }
            continue;
        }
        if is_edge || "\"+,;<>\\".contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

fn encode_hex(attribute: &AttributeTypeAndValue<'_>) -> String {
    let value = attribute.attr_value();
    let content = value.data;
    let mut bytes = vec![u8::try_from(value.tag().0).unwrap_or_default() | (u8::from(value.header.constructed()) << 5)];
    let length = content.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    match content.len() {
        0..=127 => bytes.push(content.len() as u8),
        // The length has at most eight bytes.
        _ => {
            bytes.push(0x80 | length.len() as u8);
            bytes.extend(length);
        }
    }
    bytes.extend_from_slice(content);
    hex::encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_special_characters() {
        let values = ["Example, Inc.", " a ", "#1", "a+b=c;<d>\"\\", "Grüße", "a\nb\0", " ", ""];
        let escaped = values.map(escape_value).join("|");
        insta::assert_snapshot!(escaped, @r#"Example\, Inc.|\ a\ |\#1|a\+b=c\;\<d\>\"\\|Grüße|a\0Ab\00|\ |"#);
    }
}
