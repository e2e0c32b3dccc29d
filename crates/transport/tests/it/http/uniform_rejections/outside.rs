//! Facts that other systems know: tenants, authorities of clients, and an identity provider that does not answer.

use futures::future::join_all;
use tidegate_auth::{CertificateName, CertificateRule, IntrospectionOptions, Secret};
use tidegate_core::{Access, PrincipalRule};
use tidegate_mcp::Revision;
use tidegate_runtime::{Tool, handler_fn};
use tidegate_transport::tls::Tls;
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::http::http_sse::Stream;
use crate::http::tls::authority::{Authority, Files, Identity, connect};
use crate::http::web_socket::Socket;
use crate::http::wire::Connection;

const REFUSED: &str = "401 Bearer realm=\"tidegate\", error=\"invalid_token\", scope=\"data:read data:list\": the key or \
                       token is not valid";

/// The response of all endpoints on `connection`, which is the same.
async fn refused_on(connection: &mut Connection) -> String {
    let mut all = BTreeSet::new();
    for way in ENDPOINTS {
        all.insert(response_summary(&connection.ask(&requested(way, &[])).await));
    }
    assert_eq!(all.len(), 1, "{all:#?}");
    all.pop_first().unwrap()
}

#[tokio::test]
async fn unknown_and_revoked_certificates_answer_alike() {
    let (roots, clients) = (Authority::new("roots"), Authority::new("clients"));
    let files = Files::of(&roots.server());
    let tls = Tls::load(&files.options_with(&clients, false, None)).unwrap();
    let etl = CertificateName::Subject("CN=etl,O=Example\\, Inc.".to_owned());
    let rule =
        CertificateRule { name: "etl".to_owned(), certificate_name: etl, roles: vec!["all".to_owned()], tenant: None };
    let role = Role { name: "all".to_owned(), grants: Grants::everything(), claims: serde_json::Map::new() };
    let authenticator_options =
        AuthenticatorOptions { certificates: vec![rule], roles: vec![role], ..AuthenticatorOptions::default() };
    let authenticator = Arc::new(CredentialAuthenticator::new(authenticator_options).unwrap());
    let options = HttpOptions {
        authenticator,
        tls: Some(tls.clone()),
        protected_resource: published(),
        ..HttpOptions::default()
    };
    let server = Server::with(options).await;
    let open = async |identity: Option<&Identity>| {
        Connection::over(connect(server.address, &roots, identity, &[&rustls::version::TLS13]).await.unwrap())
    };
    let (good, other) = (clients.client("etl", 1), clients.client("somebody", 2));
    assert_eq!(refused_on(&mut open(Some(&other)).await).await, REFUSED, "nobody's");
    let nothing = refused_on(&mut open(None).await).await;
    assert!(nothing.starts_with("401 Bearer realm=\"tidegate\", scope="), "{nothing}");
    let mut connection = open(Some(&good)).await;
    let list = Post::modern("tools/list", json!({})).bytes();
    assert_eq!(connection.ask(&list).await.summary(), "200");
    tls.reload(&files.options_with(&clients, false, Some(&clients.revoked(&[1])))).unwrap();
    assert_eq!(refused_on(&mut connection).await, REFUSED, "revoked since it was presented");
}

/// The response of all endpoints to concurrent requests with the headers in `visible`, which is the same.
async fn refused_at_once(server: &Server, visible: &[(&str, &str)]) -> String {
    let ask = async |way| response_summary(&server.connect().await.ask(&requested(way, visible)).await);
    let all: BTreeSet<String> = join_all(ENDPOINTS.map(ask)).await.into_iter().collect();
    assert_eq!(all.len(), 1, "{all:#?}");
    all.into_iter().next().unwrap()
}

#[tokio::test]
async fn provider_outage_answers_alike() {
    let down = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    // Connections wait in its queue and are never answered.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let slow = listener.local_addr().unwrap();
    let cases = [down, slow].into_iter().flat_map(|address| {
        let introspection_options = IntrospectionOptions {
            url: format!("http://{address}/introspect"),
            client_id: "tidegate".to_owned(),
            client_secret: Secret::new("secret"),
            needs_audience: true,
        };
        [TokenKey::JwksUrl(format!("http://{address}/keys")), TokenKey::Introspection(introspection_options)]
    });
    let refused = cases.map(async |key| {
        let tokens = Some(token_options(key, &[Rs256]));
        let authenticator_options =
            AuthenticatorOptions { tokens, clock: MovedClock::default().clock(), ..AuthenticatorOptions::default() };
        let (server, _) = server(Arc::new(ReloadableAuthenticator::new(
            CredentialAuthenticator::new(authenticator_options).unwrap(),
        )))
        .await;
        refused_at_once(&server, &[("Authorization", &format!("Bearer {}", token(&RSA, "now", &claims())))]).await
    });
    assert_eq!(join_all(refused).await, [REFUSED; 4]);
    drop(listener);
}

/// An authenticator for tokens of [`RSA`], which name their tenants.
fn authenticator_of_tenants() -> CredentialAuthenticator {
    let jwks = json!({"keys": [RSA.jwk()]}).to_string();
    let tokens =
        TokenOptions { tenant_claim: Some("tenant".to_owned()), ..token_options(TokenKey::Jwks(jwks), &[Rs256]) };
    let claims = json!({"sub": "ada"}).as_object().unwrap().clone();
    let role = Role { name: "all".to_owned(), grants: Grants::everything(), claims };
    let clock = MovedClock::default().clock();
    CredentialAuthenticator::new(AuthenticatorOptions {
        tokens: Some(tokens),
        roles: vec![role],
        clock,
        ..AuthenticatorOptions::default()
    })
    .unwrap()
}

/// The response over each transport to a call of the tool `name` with the token `bearer`.
async fn called(server: &Server, bearer: &str, name: &str) -> Vec<String> {
    let visible = [("Authorization", bearer)];
    let params = || json!({"name": name, "arguments": {}});
    let modern = Post::modern("tools/call", params()).with("Authorization", bearer);
    let mut rendered = vec![server.ask(&modern).await.text().to_owned()];
    let credentials_of = |post: Post| post.with("Authorization", bearer);
    let session = server.session_of(Revision::NEWEST_LEGACY, json!({}), credentials_of).await;
    rendered.push(server.ask(&credentials_of(session.post("tools/call", params()))).await.text().to_owned());
    for (method, path) in [("GET", ""), ("POST", "/call")] {
        let headers = [visible[0], ("Content-Type", "application/json")];
        let body: &[u8] = if method == "GET" { b"" } else { b"{}" };
        let request = request(method, &format!("/rest/tools/{name}{path}"), &headers, body);
        let answer = server.connect().await.ask(&request).await;
        rendered.push(format!("{} {}", answer.head.status, answer.text()));
    }
    let stream = TcpStream::connect(server.address).await.unwrap();
    let mut socket = Socket::opened(stream, "/mcp/ws", &visible).await.unwrap();
    socket.send(json!(1), "tools/call", params()).await;
    rendered.push(socket.hear().await.unwrap().to_string());
    let mut stream = Stream::opened(server.address, "/mcp/sse", &visible).await.unwrap();
    stream.shake_hands(Revision::V2024_11_05).await;
    let message = stream.ledger.request(&json!(1), "tools/call", params());
    assert_eq!(stream.post(message.as_bytes()).await.head.status, 202);
    rendered.push(stream.hear().await.unwrap().to_string());
    rendered.into_iter().map(|rendered| rendered.replace(name, "NAME")).collect()
}

#[tokio::test]
async fn other_tenants_entries_answer_as_absent() {
    let of_north = PrincipalRule::new(|principal| principal.tenant.as_deref() == Some("north"));
    let access = Access { principal_rule: Some(of_north), ..Access::default() };
    let done = handler_fn(|_| async { Ok(tidegate_runtime::Answer::content(Vec::new())) });
    let tool = Tool::new("of_north", "Is of the tenant north.", done).with_access(access);
    let metrics = Arc::new(Metrics::new());
    let host = Host::with_entries(EventDispatcher::new([metrics.clone() as Arc<dyn Subscriber>]), |entries| {
        entries.tool(tool)
    });
    let options = HttpOptions { authenticator: Arc::new(authenticator_of_tenants()), ..HttpOptions::default() };
    let server = Server::of(host, metrics, options).await;
    let bearer = |tenant: Value| {
        let claims = claims_with(json!({"tenant": tenant}));
        format!("Bearer {}", RSA.token(Rs256, &claims))
    };
    let its_own = called(&server, &bearer(json!("north")), "of_north").await;
    for stranger in [bearer(json!("south")), bearer(Value::Null)] {
        let hidden = called(&server, &stranger, "of_north").await;
        assert_eq!(hidden, called(&server, &stranger, "of_narth").await);
        assert!(hidden.iter().all(|message| message.contains("there is no tool")), "{hidden:#?}");
        assert!(hidden.iter().zip(&its_own).all(|(hidden, own)| hidden != own));
    }
}
