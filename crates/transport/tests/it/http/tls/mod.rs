//! Connections over TLS, client certificates, and changes of the files of both.

pub(crate) mod authority;

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use rustls::{SupportedProtocolVersion, version};
use serde_json::json;
use tidegate_core::{
    AuthMethod, AuthenticationError, Authenticator, ClientCertificate, Credentials, Grants, Principal,
};
use tidegate_transport::http::HttpOptions;
use tidegate_transport::tls::{CertificateValidity, Tls, TlsOptions, TlsVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use self::authority::{Authority, Files, Identity, connect};
use super::Server;
use super::request::Post;
use super::web_socket::Socket;
use super::wire::Connection;

const BOTH: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];

/// Accepts client certificates under their subject, and `key`.
struct Certificates;

#[async_trait]
impl Authenticator for Certificates {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        let (subject, proof) = match (credentials.bearer, credentials.certificate) {
            (Some("key"), _) => ("ann", AuthMethod::Key),
            (Some(_), _) => return Err(AuthenticationError::Invalid),
            (None, Some(ClientCertificate { subject, .. })) => (subject.as_str(), AuthMethod::Certificate),
            (None, None) => return Err(AuthenticationError::Missing),
        };
        Ok(Arc::new(Principal::new(subject, proof, Arc::new(Grants::everything()))))
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn enforces_authentication(&self) -> bool {
        true
    }
}

async fn server(options: &TlsOptions) -> (Server, Arc<Tls>) {
    let tls = Tls::load(options).unwrap();
    let options =
        HttpOptions { tls: Some(tls.clone()), authenticator: Arc::new(Certificates), ..HttpOptions::default() };
    (Server::with(options).await, tls)
}

/// A connection that is open.
async fn open(server: &Server, authority: &Authority, identity: Option<&Identity>) -> Connection {
    Connection::over(connect(server.address, authority, identity, &BOTH).await.unwrap())
}

/// Whether the server accepts a client; with TLS 1.3 this is known only after reading.
async fn is_accepted(server: &Server, authority: &Authority, identity: Option<&Identity>) -> bool {
    let Ok(mut stream) = connect(server.address, authority, identity, &BOTH).await else { return false };
    let written = stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let mut answer = [0; 12];
    written.is_ok() && stream.read_exact(&mut answer).await.is_ok() && answer == *b"HTTP/1.1 200"
}

fn list() -> Vec<u8> {
    Post::modern("tools/list", json!({})).bytes()
}

fn list_with(bearer: &str) -> Vec<u8> {
    Post::modern("tools/list", json!({})).with("Authorization", &format!("Bearer {bearer}")).bytes()
}

#[tokio::test]
async fn requests_come_over_tls_and_never_without() {
    let authority = Authority::new("roots");
    let files = Files::of(&authority.server());
    let (server, _) = server(&files.options()).await;
    let mut connection = open(&server, &authority, None).await;
    let answer = connection.ask(&list_with("key")).await;
    assert_eq!(answer.summary(), "200");
    assert_eq!(answer.header("strict-transport-security"), Some("max-age=31536000"));
    assert_eq!(connection.ask(&list()).await.head.status, 401);
    let stream = connect(server.address, &authority, None, &BOTH).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    // A WebSocket over TLS too.
    let headers = [("Authorization", "Bearer key")];
    let mut socket = Socket::opened(stream, "/mcp/ws", &headers).await.unwrap();
    socket.send(json!(1), "tools/list", json!({})).await;
    assert!(socket.hear().await.unwrap()["result"].is_object());
    let mut plain = server.connect().await;
    plain.send(&list()).await;
    assert!(plain.is_closed_after_noise().await);
}

#[tokio::test]
async fn old_versions_are_refused_if_configured() {
    let authority = Authority::new("roots");
    let files = Files::of(&authority.server());
    let (open_server, _) = server(&files.options()).await;
    assert!(connect(open_server.address, &authority, None, &[&version::TLS12]).await.is_ok());
    let (strict, _) = server(&TlsOptions { min_version: TlsVersion::V1_3, ..files.options() }).await;
    assert!(connect(strict.address, &authority, None, &[&version::TLS12]).await.is_err());
    assert!(is_accepted(&strict, &authority, None).await);
}

#[tokio::test]
async fn a_certificate_of_a_client_says_who_it_is() {
    struct Seen(parking_lot::Mutex<Option<ClientCertificate>>);
    #[async_trait]
    impl Authenticator for Seen {
        async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
            *self.0.lock() = credentials.certificate.cloned();
            Ok(Principal::process_user())
        }

        fn local_principal(&self) -> Arc<Principal> {
            Principal::process_user()
        }

        fn enforces_authentication(&self) -> bool {
            true
        }
    }
    let (roots, clients) = (Authority::new("roots"), Authority::new("clients"));
    let files = Files::of(&roots.server());
    let tls = Some(Tls::load(&files.options_with(&clients, false, None)).unwrap());
    let seen = Arc::new(Seen(parking_lot::Mutex::default()));
    let server = Server::with(HttpOptions { tls, authenticator: seen.clone(), ..HttpOptions::default() }).await;
    assert_eq!(open(&server, &roots, None).await.ask(&list()).await.summary(), "200");
    assert_eq!(*seen.0.lock(), None);
    let robot = clients.client("robot", 7);
    assert_eq!(open(&server, &roots, Some(&robot)).await.ask(&list()).await.summary(), "200");
    let certificate = seen.0.lock().take().unwrap();
    assert_eq!(certificate.subject, "CN=robot,O=Example\\, Inc.");
    let names = ["dns:client.example", "ip:10.0.0.1", "uri:spiffe://example/robot", "email:a@example.com"];
    assert_eq!(certificate.alternative_names, names);
    assert_eq!(certificate.sha256.len(), 64);
}

#[tokio::test]
async fn accepts_only_certificates_of_the_authority() {
    let (roots, clients, others) = (Authority::new("roots"), Authority::new("clients"), Authority::new("clients"));
    let files = Files::of(&roots.server());
    let revoked = clients.revoked(&[7]);
    let (optional, _) = server(&files.options_with(&clients, false, Some(&revoked))).await;
    let (required, _) = server(&files.options_with(&clients, true, Some(&revoked))).await;
    let visible = [
        ("none", None),
        ("good", Some(clients.client("a", 8))),
        ("revoked", Some(clients.client("a", 7))),
        ("of others", Some(others.client("a", 8))),
        ("expired", Some(clients.expired_client())),
        ("a server's", Some(clients.server())),
    ];
    let mut table = String::new();
    for (subject, identity) in &visible {
        let accepted = (
            is_accepted(&optional, &roots, identity.as_ref()).await,
            is_accepted(&required, &roots, identity.as_ref()).await,
        );
        table.push_str(&format!("{subject:12} optional: {}, required: {}\n", accepted.0, accepted.1));
    }
    insta::assert_snapshot!(table, @r"
    none         optional: true, required: false
    good         optional: true, required: true
    revoked      optional: false, required: false
    of others    optional: false, required: false
    expired      optional: false, required: false
    a server's   optional: false, required: false
    ");
}

#[tokio::test]
async fn reload_applies_to_open_connections() {
    let (roots, clients, others) = (Authority::new("roots"), Authority::new("clients"), Authority::new("others"));
    let files = Files::of(&roots.server());
    let (server, tls) = server(&files.options_with(&clients, false, Some(&clients.revoked(&[])))).await;
    let mut seven = open(&server, &roots, Some(&clients.client("seven", 7))).await;
    let mut eight = open(&server, &roots, Some(&clients.client("eight", 8))).await;
    let mut none = open(&server, &roots, None).await;
    assert_eq!(seven.ask(&list()).await.summary(), "200");
    assert_eq!(eight.ask(&list()).await.summary(), "200");
    // An unreadable list changes nothing.
    let broken = files.options_with(&clients, false, Some("no list"));
    assert!(tls.reload(&broken).is_err());
    assert_eq!(seven.ask(&list()).await.summary(), "200");
    tls.reload(&files.options_with(&clients, false, Some(&clients.revoked(&[7])))).unwrap();
    assert_eq!(seven.ask(&list()).await.summary(), "401 -32600 the key or token is not valid");
    // Not even a key helps: a new connection would fail.
    assert_eq!(seven.ask(&list_with("key")).await.head.status, 401);
    assert_eq!(eight.ask(&list()).await.summary(), "200");
    assert_eq!(none.ask(&list_with("key")).await.summary(), "200");
    tls.reload(&files.options_with(&clients, true, Some(&clients.revoked(&[])))).unwrap();
    assert_eq!(seven.ask(&list()).await.summary(), "200");
    assert_eq!(none.ask(&list_with("key")).await.head.status, 401);
    tls.reload(&files.options_with(&others, true, None)).unwrap();
    assert_eq!(eight.ask(&list()).await.head.status, 401);
    // If the server requests no certificates, they are ignored.
    tls.reload(&files.options()).unwrap();
    assert_eq!(eight.ask(&list()).await.head.status, 401);
    assert_eq!(eight.ask(&list_with("key")).await.summary(), "200");
}

#[tokio::test]
async fn reload_replaces_the_server_certificate() {
    let (before, after) = (Authority::new("before"), Authority::new("after"));
    let files = Files::of(&before.server());
    let (server, tls) = server(&files.options()).await;
    let mut old = open(&server, &before, None).await;
    let next = after.server();
    files.put("cert.pem", &next.certificate);
    // A partial change is not applied.
    let error = tls.reload(&files.options()).unwrap_err().to_string();
    assert!(error.contains("cert.pem does not match the private key") && error.contains("key.pem"), "{error}");
    assert!(is_accepted(&server, &before, None).await);
    files.put("key.pem", &next.key);
    tls.reload(&files.options()).unwrap();
    assert!(is_accepted(&server, &after, None).await && !is_accepted(&server, &before, None).await);
    assert_eq!(old.ask(&list_with("key")).await.summary(), "200");
}

#[test]
fn reports_invalid_files() {
    let (roots, clients) = (Authority::new("roots"), Authority::new("clients"));
    let identity = roots.server();
    let mut message = String::new();
    let cases: [(&str, &str, &str, &str); 6] = [
        (&identity.certificate, &identity.key, "", ""),
        ("", &identity.key, &clients.pem, ""),
        (&identity.certificate, "", &clients.pem, ""),
        (&identity.certificate, &roots.server().key, &clients.pem, ""),
        (&identity.certificate, &identity.key, "-----BEGIN CERTIFICATE-----\nAA=\n", ""),
        (&identity.certificate, &identity.key, &clients.pem, &clients.pem),
    ];
    for (certificate, key, authorities, revoked) in cases {
        let files = Files::of(&identity);
        let certificate = files.put("cert.pem", certificate);
        files.put("key.pem", key);
        let mut options = files.options_with(&clients, false, Some(revoked).filter(|revoked| !revoked.is_empty()));
        files.put("clients.pem", authorities);
        let folder = certificate.parent().unwrap().display().to_string();
        message.push_str(&Tls::load(&options).unwrap_err().to_string().replace(&folder, "FOLDER"));
        message.push('\n');
        options.key = folder.into();
        assert!(Tls::load(&options).is_err());
    }
    insta::assert_snapshot!(message, @r"
    FOLDER/clients.pem does not contain a certificate in PEM format (-----BEGIN CERTIFICATE-----)
    FOLDER/cert.pem does not contain a certificate in PEM format (-----BEGIN CERTIFICATE-----)
    FOLDER/key.pem does not contain a key in PEM format (-----BEGIN PRIVATE KEY-----)
    FOLDER/cert.pem does not match the private key FOLDER/key.pem
    FOLDER/clients.pem is not a valid PEM file with a certificate
    FOLDER/revoked.pem does not contain a list of revoked certificates in PEM format (-----BEGIN X509 CRL-----)
    ");
}

#[test]
fn reports_certificate_validity() {
    let roots = Authority::new("roots");
    let identity = roots.server_of_years(2026, 2027);
    let files = Files::of(&identity);
    files.put("cert.pem", &format!("{}{}", identity.certificate, roots.server_of_years(2020, 2026).certificate));
    let mut message = String::new();
    // The ends of 2024 and 2025, and the beginnings of December 2026 and 2027.
    for seconds in [1_735_689_599, 1_767_225_599, 1_796_083_200, 1_827_619_200] {
        let now = UNIX_EPOCH + Duration::from_secs(seconds);
        for CertificateValidity { subject, state } in files.options().certificate_validity(now).unwrap() {
            message.push_str(&format!("{seconds} {subject}: {state:?}\n"));
        }
    }
    insta::assert_snapshot!(message, @r#"
    1735689599 CN=localhost: NotYetValid { begins: "2026-01-01T00:00:00Z" }
    1735689599 CN=localhost: Valid { ends: "2026-01-01T00:00:00Z", days: 365 }
    1767225599 CN=localhost: NotYetValid { begins: "2026-01-01T00:00:00Z" }
    1767225599 CN=localhost: Valid { ends: "2026-01-01T00:00:00Z", days: 0 }
    1796083200 CN=localhost: Valid { ends: "2027-01-01T00:00:00Z", days: 31 }
    1796083200 CN=localhost: Expired { ended: "2026-01-01T00:00:00Z" }
    1827619200 CN=localhost: Expired { ended: "2027-01-01T00:00:00Z" }
    1827619200 CN=localhost: Expired { ended: "2026-01-01T00:00:00Z" }
    "#);
    files.put("cert.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let error = files.options().certificate_validity(UNIX_EPOCH).unwrap_err().to_string();
    assert!(error.ends_with("cert.pem contains a certificate that cannot be parsed"), "{error}");
}
