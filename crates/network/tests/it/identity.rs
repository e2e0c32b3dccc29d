//! The callers of a node as another one knows them, and TLS.

use std::path::PathBuf;
use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use futures::StreamExt;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::json;
use tidegate_auth::{
    AuthenticatorOptions, CallerTokenOptions, CallerTokenSigner, Clock, CredentialAuthenticator, Role, Secret,
    TokenAlgorithm, TokenKey, TokenOptions,
};
use tidegate_core::{AllowAll, AuthMethod, CallerTokens as _, Error, ErrorKind, Grants, Principal};
use tidegate_network::{FlightSqlDatabase, FlightSqlOptions, FlightTls, NodeCredential};
use tidegate_query::{Database, NodeDatabase};
use tidegate_testkit::token_signer::{SECRET, Signer};
use tidegate_transport::tls::{ApplicationProtocol, ClientCertificateOptions, Tls, TlsOptions, TlsVersion};

use crate::node::{TestNode, client_with, first_row, numbers, run};
use crate::tables::TestTables;

const ISSUER: &str = "https://asker.example";

fn caller(subject: &str, tenant: &str) -> Principal {
    Principal {
        tenant: Some(tenant.to_owned()),
        roles: ["analyst".to_owned()].into(),
        ..Principal::new(subject, AuthMethod::Key, Arc::new(Grants::default()))
    }
}

fn signer() -> NodeCredential {
    let options = CallerTokenOptions::new(ISSUER, Secret::new(SECRET), TokenAlgorithm::Hs256);
    NodeCredential::CallerTokens(Arc::new(CallerTokenSigner::new(options).unwrap()))
}

/// The authenticator of a node of the name `oslo`.
fn authenticator() -> Arc<CredentialAuthenticator> {
    let key = TokenKey::Secret(Secret::new(SECRET));
    let tokens = TokenOptions::new(key, ISSUER, vec!["oslo".to_owned()], vec![TokenAlgorithm::Hs256]);
    let claims = json!({"roles": "analyst"}).as_object().unwrap().clone();
    let role = Role { name: "analyst".to_owned(), grants: Grants::everything(), claims };
    let options = AuthenticatorOptions {
        tokens: Some(TokenOptions { tenant_claim: Some("tenant".to_owned()), leeway_seconds: 0, ..tokens }),
        roles: vec![role],
        ..AuthenticatorOptions::default()
    };
    Arc::new(CredentialAuthenticator::new(options).unwrap())
}

async fn node(tables: &[&str]) -> TestNode {
    TestNode::start_with("127.0.0.1:0", &TestTables::new(tables), authenticator(), None).await
}

fn client(node: &TestNode, credential: NodeCredential) -> FlightSqlDatabase {
    client_with(FlightSqlOptions { credential, ..FlightSqlOptions::new(vec![node.url()]) })
}

#[tokio::test]
async fn each_call_has_the_identity_of_its_caller() {
    let node = node(&["callers", "of_acme", "of_other"]).await;
    let client = client(&node, signer());
    for (subject, tenant) in [("ann", "acme"), ("bob", "other"), ("ann", "acme")] {
        let caller = caller(subject, tenant);
        assert_eq!(first_row(&client, "SELECT * FROM callers", &caller).await.unwrap(), [subject, tenant, "analyst"]);
        let listed = client.tables(&caller).await.unwrap();
        let names: Vec<&str> = listed.tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["callers", &format!("of_{tenant}")]);
        assert_eq!(client.check(&caller).await.unwrap().subject, subject);
    }
    let (ann, bob) = (caller("ann", "acme"), caller("bob", "other"));
    assert_ne!(client.row_policy_fingerprint(&ann), client.row_policy_fingerprint(&bob));
    assert_ne!(client.row_policy_fingerprint(&ann), 0);
}

/// A token that another node signed may expire during its answer; other tokens end it.
#[tokio::test]
async fn an_answer_may_take_longer_than_the_token_of_a_node() {
    let node = node(&["endless"]).await;
    // The signer's clock is behind, so that its tokens expire in ten seconds, and not before the answers begin.
    let clock = Clock::new(|| Utc::now() - TimeDelta::seconds(50));
    let options = CallerTokenOptions::new(ISSUER, Secret::new(SECRET), TokenAlgorithm::Hs256);
    let signer = CallerTokenSigner::new(CallerTokenOptions { clock, ..options }).unwrap();
    let expiring = signer.token_for(&caller("ann", "acme"), "oslo").unwrap();
    let exp = (Utc::now() + TimeDelta::seconds(10)).timestamp();
    let claims = json!({"iss": ISSUER, "aud": "oslo", "sub": "ann", "exp": exp, "roles": "analyst"});
    let other = Signer::Secret(SECRET.to_owned()).token(TokenAlgorithm::Hs256, &claims);
    let read = |token: String, end: i64| {
        let client = client(&node, NodeCredential::Token(token));
        async move {
            let mut rows = run(&client, "SELECT * FROM endless").await.unwrap();
            while Utc::now().timestamp() <= end {
                rows.batches.next().await.unwrap()?;
            }
            Ok::<_, Error>(())
        }
    };
    // A node checks its callers every 5 s. The other answer ends as soon as it is refused.
    let (of_node, of_issuer) = futures::future::join(read(expiring.clone(), exp + 6), read(other, exp + 60)).await;
    of_node.unwrap();
    assert_eq!(of_issuer.unwrap_err().kind(), ErrorKind::Unauthenticated);
    // It has expired, and begins no further answer.
    let client = client(&node, NodeCredential::Token(expiring));
    assert_eq!(run(&client, "SELECT 1").await.err().unwrap().kind(), ErrorKind::Unauthenticated);
}

/// A node trusts its own clock. The hint has it among the reasons, since nothing of the network works then.
#[tokio::test]
async fn a_clock_that_is_an_hour_off_is_refused() {
    let node = node(&["callers"]).await;
    for hours in [-1, 1] {
        let clock = Clock::new(move || Utc::now() + TimeDelta::hours(hours));
        let options = CallerTokenOptions::new(ISSUER, Secret::new(SECRET), TokenAlgorithm::Hs256);
        let signer = CallerTokenSigner::new(CallerTokenOptions { clock, ..options }).unwrap();
        let client = client(&node, NodeCredential::CallerTokens(Arc::new(signer)));
        let error = first_row(&client, "SELECT * FROM callers", &caller("ann", "acme")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error:?}");
        assert!(error.hint().is_some_and(|hint| hint.contains("clocks of both")), "{hours} h: {error:?}");
        assert_eq!(client.check(&caller("ann", "acme")).await.unwrap_err().kind(), ErrorKind::Unauthenticated);
    }
}

#[tokio::test]
async fn callers_without_rights_are_refused() {
    let node = node(&["callers"]).await;
    let stranger = Principal { roles: Default::default(), ..caller("eve", "acme") };
    // Without a role the node offers no tools.
    let error = first_row(&client(&node, signer()), "SELECT * FROM callers", &stranger).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
    let foreign = CallerTokenOptions::new(ISSUER, Secret::new("x".repeat(64)), TokenAlgorithm::Hs256);
    let foreign = NodeCredential::CallerTokens(Arc::new(CallerTokenSigner::new(foreign).unwrap()));
    let unnamed = FlightSqlOptions { audience: Some("rome".to_owned()), ..FlightSqlOptions::new(vec![node.url()]) };
    let refused = [
        client(&node, foreign),
        client(&node, NodeCredential::None),
        client(&node, NodeCredential::Token("sesame".to_owned())),
        client_with(FlightSqlOptions { credential: signer(), ..unnamed }),
    ];
    for client in refused {
        let error = first_row(&client, "SELECT * FROM callers", &caller("ann", "acme")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error:?}");
        assert!(!error.to_string().contains("sesame"), "{error}");
        assert_eq!(client.tables(&caller("ann", "acme")).await.unwrap_err().kind(), ErrorKind::Unauthenticated);
    }
}

#[test]
fn invalid_options_are_refused() {
    let refused = |options| FlightSqlDatabase::new("oslo", options).err().unwrap().to_string();
    assert!(refused(FlightSqlOptions::new(Vec::new())).contains("has no URL"));
    assert!(refused(FlightSqlOptions::new(vec!["grpc://oslo:7071".to_owned()])).contains("without TLS"));
    let url = || vec!["grpc+tls://localhost:7071".to_owned()];
    let tls = FlightTls { authorities: Some("no certificate".to_owned()), certificate: None };
    let error = refused(FlightSqlOptions { tls, ..FlightSqlOptions::new(url()) });
    assert!(error.contains("certificates"), "{error}");
    let credential = NodeCredential::Token("a\nb".to_owned());
    let error = refused(FlightSqlOptions { credential, ..FlightSqlOptions::new(url()) });
    assert!(error.contains("no header") && !error.contains("a\nb"), "{error}");
}

/// An authority with a certificate for `localhost` and one for clients.
struct Certificates {
    authority: String,
    server: (String, String),
    client: (String, String),
}

fn certificates() -> Certificates {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let sign = |usage: ExtendedKeyUsagePurpose| {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
    };
    let (server, client) = (sign(ExtendedKeyUsagePurpose::ServerAuth), sign(ExtendedKeyUsagePurpose::ClientAuth));
    Certificates { authority, server, client }
}

fn server_tls(certificates: &Certificates, folder: &tempfile::TempDir) -> Arc<Tls> {
    let write = |name: &str, pem: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path
    };
    let authorities = write("authorities.pem", &certificates.authority);
    let options = TlsOptions {
        certificate: write("server.pem", &certificates.server.0),
        key: write("server-key.pem", &certificates.server.1),
        clients: Some(ClientCertificateOptions { authorities, are_required: true, revocation_list: None }),
        min_version: TlsVersion::V1_3,
    };
    Tls::load_for(&options, ApplicationProtocol::Http2).unwrap()
}

#[tokio::test]
async fn both_sides_need_certificates() {
    let (certificates, folder) = (certificates(), tempfile::tempdir().unwrap());
    let tls = server_tls(&certificates, &folder);
    let tables = TestTables::new(&["numbers"]);
    let node = TestNode::start_with("127.0.0.1:0", &tables, Arc::new(AllowAll), Some(tls)).await;
    let client = |authorities: &str, certificate: Option<&(String, String)>| {
        let tls = FlightTls { authorities: Some(authorities.to_owned()), certificate: certificate.cloned() };
        let url = format!("grpc+tls://localhost:{}", node.address.port());
        client_with(FlightSqlOptions { tls, ..FlightSqlOptions::new(vec![url]) })
    };
    let known = client(&certificates.authority, Some(&certificates.client));
    assert_eq!(numbers(&known, "SELECT n FROM numbers").await.unwrap().len(), 30);
    let unknown = client(&self::certificates().authority, Some(&certificates.client));
    let error = run(&unknown, "SELECT n FROM numbers").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("certificate"), "{error}");
    let bare = client(&certificates.authority, None);
    assert_eq!(run(&bare, "SELECT n FROM numbers").await.err().unwrap().kind(), ErrorKind::Unavailable);
    let plain = client_with(FlightSqlOptions::new(vec![node.url()]));
    assert_eq!(run(&plain, "SELECT n FROM numbers").await.err().unwrap().kind(), ErrorKind::Unavailable);
}
