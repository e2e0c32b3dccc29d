//! Certificates for tests: authorities, servers, clients, and revocation lists.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SanType,
    SerialNumber, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tidegate_transport::tls::{ClientCertificateOptions, TlsOptions, TlsVersion};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// An authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = named(&[(DnType::CommonName, name)]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    pub(crate) fn server(&self) -> Identity {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params)
    }

    /// A server certificate that is valid from the beginning of year `from` to the beginning of year `until`.
    pub(crate) fn server_of_years(&self, from: i32, until: i32) -> Identity {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name = named(&[(DnType::CommonName, "localhost")]);
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        self.sign(&params)
    }

    /// A client certificate with the serial number `serial`.
    pub(crate) fn client(&self, name: &str, serial: u64) -> Identity {
        let mut params = CertificateParams::new(vec!["Client.example".to_owned(), "10.0.0.1".to_owned()]).unwrap();
        params.distinguished_name = named(&[(DnType::OrganizationName, "Example, Inc."), (DnType::CommonName, name)]);
        params.subject_alt_names.push(SanType::URI("spiffe://example/robot".try_into().unwrap()));
        params.subject_alt_names.push(SanType::Rfc822Name("a@example.com".try_into().unwrap()));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.serial_number = Some(SerialNumber::from(serial));
        self.sign(&params)
    }

    /// An expired client certificate.
    pub(crate) fn expired_client(&self) -> Identity {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_after = date_time_ymd(2020, 1, 1);
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity { certificate, key: key.serialize_pem() }
    }

    /// The revocation list with `serials`.
    pub(crate) fn revoked(&self, serials: &[u64]) -> String {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2026, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2026, 1, 1),
            next_update: date_time_ymd(2096, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

fn named(parts: &[(DnType, &str)]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for (kind, value) in parts {
        name.push(kind.clone(), *value);
    }
    name
}

/// A folder with the files of a server.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn of(server: &Identity) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.put("cert.pem", &server.certificate);
        files.put("key.pem", &server.key);
        files
    }

    pub(crate) fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Options that request no client certificates.
    pub(crate) fn options(&self) -> TlsOptions {
        let path = |name| self.0.path().join(name);
        TlsOptions {
            certificate: path("cert.pem"),
            key: path("key.pem"),
            clients: None,
            min_version: TlsVersion::default(),
        }
    }

    /// Options that accept client certificates of `authority`.
    pub(crate) fn options_with(&self, authority: &Authority, are_required: bool, revoked: Option<&str>) -> TlsOptions {
        let authorities = self.put("clients.pem", &authority.pem);
        let revoked = revoked.map(|revoked| self.put("revoked.pem", revoked));
        TlsOptions {
            clients: Some(ClientCertificateOptions { authorities, are_required, revocation_list: revoked }),
            ..self.options()
        }
    }
}

/// A connection to `address` of a client that trusts `authority`.
pub(crate) async fn connect(
    address: std::net::SocketAddr,
    authority: &Authority,
    identity: Option<&Identity>,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    let builder = builder.with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(Identity { certificate, key }) => {
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}
