//! Certificates of all sorts, of a server that only has TLS.
//!
//! Whoever completes its handshake is told that it is starting up. The certificates lie in
//! `tests/certificates`, all for the one key there: `server`, `version1`, `expired` and `future` are
//! `authority`'s and for localhost; `own` is a server's that signed for itself; `client` is a client's.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig, ServerConnection, Stream};
use tidegate_postgres::connect::{CertificateFlaw, Problem, Startup};

use super::scene::Scene;

const AUTHORITY: &str = include_str!("../../certificates/authority.pem");
const SERVER: &str = include_str!("../../certificates/server.pem");
const VERSION1: &str = include_str!("../../certificates/version1.pem");
const EXPIRED: &str = include_str!("../../certificates/expired.pem");
const FUTURE: &str = include_str!("../../certificates/future.pem");
const OWN: &str = include_str!("../../certificates/own.pem");
const CLIENT: &str = include_str!("../../certificates/client.pem");
const KEY: &str = include_str!("../../certificates/key.pem");

const STARTING_UP: &[u8] = b"E\x00\x00\x00\x2eSFATAL\0C57P03\0Mthe server is starting up\0\0";

/// How a server is.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Usual,
    /// It demands a certificate of the client.
    Demanding,
    /// It speaks TLS from the first byte on, and only with who says that PostgreSQL is meant.
    Direct,
}

/// Serves one connection with `certificate`.
fn serve(certificate: &str, kind: Kind) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let key = provider.key_provider.load_private_key(PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.unwrap();
    let builder = if kind == Kind::Demanding {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(AUTHORITY.as_bytes()).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    // The usual way to name a certificate looks at it, and would not take the old one.
    let certified = SingleCertAndKey::from(CertifiedKey::new(vec![certificate], key));
    let mut config = builder.with_cert_resolver(Arc::new(certified));
    if kind == Kind::Direct {
        config.alpn_protocols = vec![b"postgresql".to_vec()];
    }
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        if kind != Kind::Direct {
            socket.read_exact(&mut [0; 8]).unwrap();
            socket.write_all(b"S").unwrap();
        }
        let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = Stream::new(&mut tls, &mut socket);
        // A client that does not trust the certificate goes away here.
        let asked = stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0);
        if asked && (kind != Kind::Direct || stream.conn.alpn_protocol().is_some()) {
            stream.write_all(STARTING_UP).unwrap();
            stream.flush().unwrap();
        }
    });
    port
}

/// Connects to a server that shows `certificate`, by the name localhost, trusting `roots`.
async fn meet(certificate: &str, mode: &str, roots: &str, kind: Kind) -> Problem {
    let port = serve(certificate, kind);
    let scene = Scene::new()
        .file("roots.pem", roots)
        .file(".postgresql/postgresql.crt", CLIENT)
        .file(".postgresql/postgresql.key", KEY);
    let mut text = format!("host=localhost hostaddr=127.0.0.1 port={port} user=reader sslmode={mode}");
    if !roots.is_empty() {
        text += &format!(" sslrootcert={}", scene.home().join("roots.pem").display());
    }
    let error = scene.target(&text).connect(&Startup::default()).await.unwrap_err();
    error.problem().clone()
}

#[tokio::test]
async fn a_good_certificate_is_trusted() {
    for mode in ["require", "verify-ca", "verify-full"] {
        assert_eq!(meet(SERVER, mode, AUTHORITY, Kind::Usual).await, Problem::NotReady, "{mode}");
    }
}

#[tokio::test]
async fn a_certificate_counts_in_its_time_alone() {
    for mode in ["verify-ca", "verify-full"] {
        let expired = meet(EXPIRED, mode, AUTHORITY, Kind::Usual).await;
        assert_eq!(expired, Problem::Certificate(CertificateFlaw::Expired), "{mode}");
        let future = meet(FUTURE, mode, AUTHORITY, Kind::Usual).await;
        assert_eq!(future, Problem::Certificate(CertificateFlaw::NotYetValid), "{mode}");
    }
    // Who trusts anybody asks for no dates.
    assert_eq!(meet(EXPIRED, "require", "", Kind::Usual).await, Problem::NotReady);
}

#[tokio::test]
async fn a_certificate_that_signed_for_itself_is_trusted_by_who_has_it() {
    assert_eq!(meet(OWN, "verify-full", OWN, Kind::Usual).await, Problem::NotReady);
    let told = meet(OWN, "verify-ca", AUTHORITY, Kind::Usual).await;
    assert!(matches!(told, Problem::Certificate(_)), "{told:?}");
    assert_eq!(meet(OWN, "require", "", Kind::Usual).await, Problem::NotReady);
}

#[tokio::test]
async fn a_certificate_of_version_1_is_not_acceptable() {
    let told = meet(VERSION1, "verify-ca", AUTHORITY, Kind::Usual).await;
    assert_eq!(told, Problem::Certificate(CertificateFlaw::Unacceptable));
}

#[tokio::test]
async fn tls_may_begin_with_the_first_byte() {
    let direct = "verify-full sslnegotiation=direct";
    assert_eq!(meet(SERVER, direct, AUTHORITY, Kind::Direct).await, Problem::NotReady);
}

#[tokio::test]
async fn the_clients_certificate_is_shown_to_who_demands_it() {
    assert_eq!(meet(SERVER, "verify-full", AUTHORITY, Kind::Demanding).await, Problem::NotReady);
    let port = serve(SERVER, Kind::Demanding);
    let without = Scene::new().target(&format!("host=localhost hostaddr=127.0.0.1 port={port} user=x sslmode=require"));
    let error = without.connect(&Startup::default()).await.unwrap_err();
    assert!(matches!(error.problem(), Problem::TlsFailed(_) | Problem::Closed), "{error}");
}
