//! Certificates of all sorts, of a server that only has TLS.
//!
//! A client that completes the handshake receives the error that the server is starting up. The certificates lie in
//! `tests/certificates`, all for the one key there: `server`, `version1`, `expired` and `future` are
//! `authority_file`'s and for localhost; `own` is a server's that signed for itself; `client` is a client's.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig, ServerConnection, Stream};
use tidegate_postgres::connect::{CertificateFlaw, ConnectErrorKind};

use super::environment_fixture::EnvironmentFixture;

const AUTHORITY: &str = include_str!("../../certificates/authority.pem");
const SERVER: &str = include_str!("../../certificates/server.pem");
const VERSION1: &str = include_str!("../../certificates/version1.pem");
const EXPIRED: &str = include_str!("../../certificates/expired.pem");
const NOT_YET_VALID: &str = include_str!("../../certificates/future.pem");
const SELF_SIGNED: &str = include_str!("../../certificates/own.pem");
const CLIENT: &str = include_str!("../../certificates/client.pem");
const KEY: &str = include_str!("../../certificates/key.pem");

const STARTING_UP: &[u8] = b"E\x00\x00\x00\x2eSFATAL\0C57P03\0Mthe server is starting up\0\0";

/// How a server is.
#[derive(Clone, Copy, PartialEq)]
enum HandshakeKind {
    Usual,
    /// It demands a certificate of the client.
    Demanding,
    /// TLS from the first byte, and only with the application protocol of PostgreSQL.
    Direct,
}

/// Serves one connection with `certificate`.
fn spawn_server(certificate: &str, kind: HandshakeKind) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let key = provider.key_provider.load_private_key(PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.unwrap();
    let builder = if kind == HandshakeKind::Demanding {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(AUTHORITY.as_bytes()).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    // The usual function parses the certificate and would reject the old version.
    let certified = SingleCertAndKey::from(CertifiedKey::new(vec![certificate], key));
    let mut config = builder.with_cert_resolver(Arc::new(certified));
    if kind == HandshakeKind::Direct {
        config.alpn_protocols = vec![b"postgresql".to_vec()];
    }
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        if kind != HandshakeKind::Direct {
            socket.read_exact(&mut [0; 8]).unwrap();
            socket.write_all(b"S").unwrap();
        }
        let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = Stream::new(&mut tls, &mut socket);
        // A client that does not trust the certificate goes away here.
        let is_requested = stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0);
        if is_requested && (kind != HandshakeKind::Direct || stream.conn.alpn_protocol().is_some()) {
            stream.write_all(STARTING_UP).unwrap();
            stream.flush().unwrap();
        }
    });
    port
}

/// Connects to a server that shows `certificate`, by the name localhost, trusting `roots`.
async fn connect_to_server(certificate: &str, mode: &str, roots: &str, kind: HandshakeKind) -> ConnectErrorKind {
    let port = spawn_server(certificate, kind);
    let scene = EnvironmentFixture::new()
        .with_file("roots.pem", roots)
        .with_file(".postgresql/postgresql.crt", CLIENT)
        .with_file(".postgresql/postgresql.key", KEY);
    let mut text = format!("host=localhost hostaddr=127.0.0.1 port={port} user=reader sslmode={mode}");
    if !roots.is_empty() {
        text += &format!(" sslrootcert={}", scene.home().join("roots.pem").display());
    }
    let error = scene.parse_target(&text).connect("").await.unwrap_err();
    error.kind().clone()
}

#[tokio::test]
async fn valid_certificate_is_trusted() {
    for mode in ["require", "verify-ca", "verify-full"] {
        assert_eq!(
            connect_to_server(SERVER, mode, AUTHORITY, HandshakeKind::Usual).await,
            ConnectErrorKind::NotReady,
            "{mode}"
        );
    }
}

#[tokio::test]
async fn expired_and_future_certificates_are_rejected() {
    for mode in ["verify-ca", "verify-full"] {
        let expired = connect_to_server(EXPIRED, mode, AUTHORITY, HandshakeKind::Usual).await;
        assert_eq!(expired, ConnectErrorKind::Certificate(CertificateFlaw::Expired), "{mode}");
        let future = connect_to_server(NOT_YET_VALID, mode, AUTHORITY, HandshakeKind::Usual).await;
        assert_eq!(future, ConnectErrorKind::Certificate(CertificateFlaw::NotYetValid), "{mode}");
    }
    // Without root certificates, the validity period is not checked.
    assert_eq!(connect_to_server(EXPIRED, "require", "", HandshakeKind::Usual).await, ConnectErrorKind::NotReady);
}

#[tokio::test]
async fn self_signed_certificate_is_trusted_as_root() {
    assert_eq!(
        connect_to_server(SELF_SIGNED, "verify-full", SELF_SIGNED, HandshakeKind::Usual).await,
        ConnectErrorKind::NotReady
    );
    let connect_problem = connect_to_server(SELF_SIGNED, "verify-ca", AUTHORITY, HandshakeKind::Usual).await;
    assert!(matches!(connect_problem, ConnectErrorKind::Certificate(_)), "{connect_problem:?}");
    assert_eq!(connect_to_server(SELF_SIGNED, "require", "", HandshakeKind::Usual).await, ConnectErrorKind::NotReady);
}

#[tokio::test]
async fn version_1_certificate_is_rejected() {
    let connect_problem = connect_to_server(VERSION1, "verify-ca", AUTHORITY, HandshakeKind::Usual).await;
    assert_eq!(connect_problem, ConnectErrorKind::Certificate(CertificateFlaw::Unacceptable));
}

#[tokio::test]
async fn direct_tls_negotiation_works() {
    let direct = "verify-full sslnegotiation=direct";
    assert_eq!(connect_to_server(SERVER, direct, AUTHORITY, HandshakeKind::Direct).await, ConnectErrorKind::NotReady);
}

#[tokio::test]
async fn client_certificate_is_sent_on_request() {
    assert_eq!(
        connect_to_server(SERVER, "verify-full", AUTHORITY, HandshakeKind::Demanding).await,
        ConnectErrorKind::NotReady
    );
    let port = spawn_server(SERVER, HandshakeKind::Demanding);
    let without = EnvironmentFixture::new()
        .parse_target(&format!("host=localhost hostaddr=127.0.0.1 port={port} user=x sslmode=require"));
    let error = without.connect("").await.unwrap_err();
    assert!(matches!(error.kind(), ConnectErrorKind::TlsFailed(_) | ConnectErrorKind::Closed), "{error}");
}
