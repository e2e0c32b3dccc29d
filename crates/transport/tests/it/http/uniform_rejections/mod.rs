//! Invalid credentials over every transport: the response is the same everywhere, and reveals nothing about what
//! exists.

mod outside;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tidegate_auth::{
    AuthenticatorOptions, CredentialAuthenticator, KeyFile, ReloadableAuthenticator, Role, TokenAlgorithm, TokenKey,
    TokenOptions,
};
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;

use super::Server;
use super::challenges::published;
use super::request::Post;
use super::wire::{Answer, request};
use tidegate_testkit::host::Host;
use tidegate_testkit::token_authenticator::{MovedClock, NOW, token_options};
use tidegate_testkit::token_signer::{OTHER_RSA, RSA, Signer, claims, claims_with, message};

use TokenAlgorithm::{Hs256, Rs256};
use tidegate_core::{AuthMethod, AuthenticationError, Authenticator, Credentials, Grants, Principal};
use tidegate_runtime::event::{Event, EventDispatcher, Subscriber};
use tidegate_testkit::wait::wait_until;

/// Requests of every transport, to existing and absent paths.
const ENDPOINTS: [(&str, &str, &str); 13] = [
    ("POST", "/mcp", "call"),
    ("POST", "/mcp", "no such tool"),
    ("POST", "/mcp/no-such-toolset", "call"),
    ("GET", "/mcp", ""),
    ("DELETE", "/mcp", ""),
    ("GET", "/mcp/sse", ""),
    ("POST", "/mcp/messages/00000000000000000000000000000000", "call"),
    ("GET", "/mcp/ws", ""),
    ("GET", "/rest/tools", ""),
    ("GET", "/rest/tools/no-such-tool", ""),
    ("POST", "/rest/tools/script/call", "call"),
    ("GET", "/results/0a1b2c3d-1111-4222-8333-444455556666/data", ""),
    ("GET", "/metrics", ""),
];

const UPGRADE: [(&str, &str); 7] = [
    ("Accept", "text/event-stream"),
    ("Content-Type", "application/json"),
    ("Connection", "upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Sec-WebSocket-Protocol", "mcp"),
];

fn requested((method, path, subject): (&str, &str, &str), visible: &[(&str, &str)]) -> Vec<u8> {
    let is_web_socket = path.ends_with("/ws");
    let headers: Vec<_> = UPGRADE[..if is_web_socket { 7 } else { 2 }].iter().chain(visible).copied().collect();
    let name = if subject == "call" { "script" } else { "none" };
    let body = Post::modern("tools/call", json!({"name": name, "arguments": {}})).body;
    request(method, path, &headers, if subject.is_empty() { b"" } else { &body })
}

/// Status, challenge and message of a refusal, which all formats share.
fn response_summary(answer: &Answer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    let message = body.get("detail").unwrap_or(&body["error"]["message"]).as_str().unwrap();
    let challenge = answer.header("www-authenticate").unwrap_or("-");
    assert!(
        challenge.ends_with("resource_metadata=\"https://data.example.com/.well-known/oauth-protected-resource/mcp\"")
    );
    let (start, _) = challenge.split_once(", resource_metadata").unwrap();
    format!("{} {start}: {message}", answer.head.status)
}

/// Records from which addresses messages were rejected.
#[derive(Default)]
struct Refusals(Mutex<Vec<Option<IpAddr>>>);

impl Subscriber for Refusals {
    fn on_event(&self, event: Event<'_>) {
        if let Event::MessageRefused { peer, .. } = event {
            self.0.lock().push(peer);
        }
    }
}

async fn server(authenticator: Arc<dyn Authenticator>) -> (Server, Arc<Refusals>) {
    let refusals = Arc::new(Refusals::default());
    let metrics = Arc::new(Metrics::new());
    let host = Host::with_events(EventDispatcher::new([metrics.clone() as Arc<dyn Subscriber>, refusals.clone()]));
    let options = HttpOptions { authenticator, protected_resource: published(), ..HttpOptions::default() };
    (Server::of(host, metrics, options).await, refusals)
}

/// The response of all endpoints to the headers in `visible`, which is the same.
async fn refused(server: &Server, visible: &[(&str, &str)]) -> String {
    let mut connection = server.connect().await;
    let mut all = BTreeSet::new();
    for way in ENDPOINTS {
        all.insert(response_summary(&connection.ask(&requested(way, visible)).await));
    }
    assert_eq!(all.len(), 1, "{all:#?}");
    all.pop_first().unwrap()
}

/// An authenticator that accepts one key and tokens of [`RSA`], and records the credentials it receives.
struct Scene {
    authenticator: CredentialAuthenticator,
    key: String,
    revoked: String,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = MovedClock::default().clock();
        let file = || KeyFile::new(folder.path().join("keys.json")).with_clock(clock.clone());
        let roles = ["all".to_owned()];
        let key = |name: &str| file().add(name, &roles, None).unwrap().key.expose().to_owned();
        let (good, revoked) = (key("good"), key("gone"));
        file().revoke("gone").unwrap();
        let jwks = json!({"keys": [RSA.jwk_with(json!({"kid": "now", "alg": "RS256", "use": "sig"}))]});
        let tokens = token_options(TokenKey::Jwks(jwks.to_string()), &[Rs256]);
        let tokens = TokenOptions { tenant_claim: Some("tenant".to_owned()), ..tokens };
        let claims = json!({"sub": "ada"}).as_object().unwrap().clone();
        let role = Role { name: "all".to_owned(), grants: Grants::everything(), claims };
        let options = AuthenticatorOptions {
            keys: Some(file()),
            tokens: Some(tokens),
            roles: vec![role],
            clock,
            ..AuthenticatorOptions::default()
        };
        Self { authenticator: CredentialAuthenticator::new(options).unwrap(), key: good, revoked, _folder: folder }
    }
}

/// A token of `signer` with the key id `kid`.
fn token(signer: &Signer, kid: &str, claims: &Value) -> String {
    signer.token_with_header(Rs256, &json!({"alg": "RS256", "typ": "JWT", "kid": kid}), claims)
}

#[tokio::test]
async fn invalid_credentials_answer_alike_on_every_endpoint() {
    let scene = Scene::new();
    let (good, revoked) = (scene.key.clone(), scene.revoked.clone());
    let (server, refusals) = server(Arc::new(ReloadableAuthenticator::new(scene.authenticator))).await;
    let list = Post::modern("tools/list", json!({}));
    for good in [good.clone(), token(&RSA, "now", &claims())] {
        assert_eq!(server.ask(&list.clone().with("Authorization", &format!("Bearer {good}"))).await.summary(), "200");
    }
    let of_public_key = Signer::Secret(RSA.pem());
    let cases = [
        ("garbage", "x".to_owned()),
        ("nothing", String::new()),
        ("two words", format!("{good} {good}")),
        ("what no token consists of", "\"x\"".to_owned()),
        ("expired", token(&RSA, "now", &claims_with(json!({"exp": NOW - 300})))),
        ("without an end", token(&RSA, "now", &claims_with(json!({"exp": null})))),
        ("not yet valid", token(&RSA, "now", &claims_with(json!({"nbf": NOW + 300})))),
        ("for others", token(&RSA, "now", &claims_with(json!({"aud": "https://other.example"})))),
        ("of others", token(&RSA, "now", &claims_with(json!({"iss": "https://other.example"})))),
        ("of a tenant without a name", token(&RSA, "now", &claims_with(json!({"tenant": ["north"]})))),
        ("alg none", format!("{}.", message(&json!({"alg": "none", "kid": "now"}), &claims()))),
        ("HS256 by the public key", of_public_key.token_with_header(Hs256, &json!({"alg": "HS256"}), &claims())),
        ("unknown kid", token(&RSA, "later", &claims())),
        ("key rotated away", token(&OTHER_RSA, "now", &claims())),
        ("key rotated away, by its id", token(&OTHER_RSA, "before", &claims())),
        ("revoked key", revoked),
        ("key with an end too many", format!("{good}x")),
        ("long", "x".repeat(20_000)),
    ];
    let mut table = format!("{:28} {}\n", "no token", refused(&server, &[]).await);
    for (subject, bearer) in &cases {
        let rendered = refused(&server, &[("Authorization", &format!("Bearer {bearer}"))]).await;
        table.push_str(&format!("{subject:28} {rendered}\n"));
    }
    let (basic, bearer) = (("Authorization", "Basic Zm9v"), format!("Bearer {good}"));
    for (subject, visible) in [("another scheme", &[basic][..]), ("two", &[("Authorization", &bearer), basic])] {
        table.push_str(&format!("{subject:28} {}\n", refused(&server, visible).await));
    }
    insta::assert_snapshot!(table, @r#"
    no token                     401 Bearer realm="tidegate", scope="data:read data:list": authentication is required: send Authorization: Bearer with an API key or a token
    garbage                      401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    nothing                      400 Bearer realm="tidegate", error="invalid_request": the Authorization header is malformed: send one header with the word Bearer, a space, and an API key or a token
    two words                    400 Bearer realm="tidegate", error="invalid_request": the Authorization header is malformed: send one header with the word Bearer, a space, and an API key or a token
    what no token consists of    400 Bearer realm="tidegate", error="invalid_request": the Authorization header is malformed: send one header with the word Bearer, a space, and an API key or a token
    expired                      401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    without an end               401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    not yet valid                401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    for others                   401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    of others                    401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    of a tenant without a name   401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    alg none                     401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    HS256 by the public key      401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    unknown kid                  401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    key rotated away             401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    key rotated away, by its id  401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    revoked key                  401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    key with an end too many     401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    long                         401 Bearer realm="tidegate", error="invalid_token", scope="data:read data:list": the key or token is not valid
    another scheme               401 Bearer realm="tidegate", scope="data:read data:list": authentication is required: send Authorization: Bearer with an API key or a token
    two                          400 Bearer realm="tidegate", error="invalid_request": the Authorization header is malformed: send one header with the word Bearer, a space, and an API key or a token
    "#);
    let ip_addrs = refusals.0.lock().clone();
    assert_eq!(ip_addrs.len(), (cases.len() + 3) * ENDPOINTS.len());
    assert!(ip_addrs.iter().all(|peer| *peer == Some(IpAddr::V4(Ipv4Addr::LOCALHOST))));
}

#[tokio::test]
async fn oversized_headers_are_rejected_first() {
    let scene = Scene::new();
    let (server, refusals) = server(Arc::new(scene.authenticator)).await;
    let long = format!("Bearer {}", "x".repeat(200_000));
    for way in ENDPOINTS {
        let mut connection = server.connect().await;
        let head = connection.refused_head(&requested(way, &[("Authorization", &long)])).await;
        assert_eq!(head.status, 431, "{way:?}");
    }
    let many: Vec<(String, String)> = (0..200).map(|number| (format!("x-{number}"), "y".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let head = server.connect().await.refused_head(&request("GET", "/rest/tools", &many, b"")).await;
    assert_eq!(head.status, 431);
    wait_until("the rejections", async || refusals.0.lock().len() == ENDPOINTS.len() + 1).await;
}

/// Admits the principal that the header `x-user` names, if it occurs once.
struct Proxy;

#[async_trait::async_trait]
impl Authenticator for Proxy {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        match credentials.identity_headers {
            [] => Err(AuthenticationError::Missing),
            [(name, user)] if name == "x-user" => {
                Ok(Arc::new(Principal::new(user.clone(), AuthMethod::Proxy, Arc::new(Grants::everything()))))
            }
            _ => Err(AuthenticationError::Invalid),
        }
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn identity_headers(&self) -> Option<Arc<[String]>> {
        Some(Arc::new(["x-user".to_owned(), "x-groups".to_owned()]))
    }

    fn enforces_authentication(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn asserting_headers_are_bounded_and_unchanged() {
    let (server, _) = server(Arc::new(Proxy)).await;
    let mut connection = server.connect().await;
    for way in [("GET", "/rest/tools", ""), ("POST", "/mcp", "no such tool")] {
        let answer = connection.ask(&requested(way, &[("X-User", "ann"), ("X-Other", "bob")])).await;
        assert!(answer.head.status < 401, "{}", answer.text());
    }
    let long = "x".repeat(1_025);
    for visible in [
        &[("X-User", "ann"), ("X-User", "bob")][..],
        &[("X-User", "ann"), ("X-Groups", "admins")],
        &[("X-User", &long)],
        &[("X-User", "ann"), ("X-Groups", &long)],
    ] {
        let message = refused(&server, visible).await;
        assert!(message.starts_with("401 ") && message.contains("invalid_token"), "{message}");
    }
    assert!(refused(&server, &[("X-Other", "ann")]).await.starts_with("401 Bearer realm=\"tidegate\", scope"));
}
