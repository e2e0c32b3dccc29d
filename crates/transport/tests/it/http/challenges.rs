//! Responses to callers that are rejected or lack access: challenges, and when to retry.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_core::{
    Access, AllowedNames, AuthMethod, AuthenticationError, Authenticator, Credentials, Error, ErrorKind, Grants,
    Limits, Principal,
};
use tidegate_mcp::Revision;
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn};
use tidegate_transport::Metrics;
use tidegate_transport::http::{HttpOptions, ProtectedResource, SharedProtectedResource};

use super::Server;
use super::identity::revocable_key;
use super::request::Post;
use super::rest::fixture;
use super::web_socket::Socket;
use super::wire::{self, request};
use tidegate_testkit::host::Host;

const RESOURCE: &str = "https://data.example.com/mcp";

/// The published metadata of this server.
pub(super) fn published() -> SharedProtectedResource {
    let published = SharedProtectedResource::default();
    let servers = vec!["https://login.example.com".to_owned()];
    let scopes = vec!["data:read".to_owned(), "data:list".to_owned()];
    published.publish(Some(ProtectedResource::new(RESOURCE, servers, scopes).unwrap()));
    published
}

/// Accepts any token. Its text consists of scopes, with `~` between them and `.` for their colons.
struct Scopes;

#[async_trait]
impl Authenticator for Scopes {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        let scopes = credentials.bearer.ok_or(AuthenticationError::Missing)?;
        let mut principal = Principal::new("ann", AuthMethod::Token, Arc::new(Grants::everything()));
        principal.claims.insert("scope".to_owned(), scopes.replace('~', " ").replace('.', ":").into());
        Ok(Arc::new(principal))
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn enforces_authentication(&self) -> bool {
        true
    }
}

fn entries() -> SnapshotBuilder {
    let done = || handler_fn(|_| async { Ok(Answer::content(Vec::new())) });
    let busy = handler_fn(|_| async { Ok(Answer::content(Vec::new())) });
    let access = Access { scopes: vec!["data:write".to_owned(), "data:read".to_owned()], ..Access::default() };
    // A tool that calls others forwards their errors.
    let outer = handler_fn(|_| async {
        Err(Error::new(ErrorKind::Forbidden, "the inner tool needs more").with_scopes(vec!["inner".to_owned()]))
    });
    let late = handler_fn(|_| async {
        Err(Error::new(ErrorKind::RateLimited, "too often").with_retry_after(Duration::from_millis(1_200)))
    });
    SnapshotBuilder::new()
        .tool(fixture::echo("open"))
        .tool(Tool::new("write", "Writes.", done()).with_access(access))
        .tool(Tool::new("outer", "Calls others.", outer))
        .tool(Tool::new("late", "Is asked too often.", late))
        .tool(Tool::new("busy", "Is there.", busy))
}

async fn server(published: SharedProtectedResource) -> Server {
    let authenticator = Arc::new(Scopes);
    let options = HttpOptions { authenticator, protected_resource: published, ..HttpOptions::default() };
    let server = Server::with(options).await;
    server.host.service.registry().swap(entries().build());
    server
}

fn call(name: &str) -> Post {
    Post::modern("tools/call", json!({"name": name, "arguments": {}})).with("Authorization", "Bearer data.read")
}

/// Status, challenge and error.
fn challenge_summary(answer: &wire::Answer) -> String {
    let message: Value = serde_json::from_slice(&answer.body).unwrap();
    let challenge = answer.header("www-authenticate").unwrap_or("-");
    format!("{}\n{challenge}\n{}", answer.head.status, message["error"])
}

#[tokio::test]
async fn challenge_points_to_public_metadata() {
    let (_, options) = revocable_key();
    let published = published();
    let server = Server::with(HttpOptions { protected_resource: published.clone(), ..options }).await;
    let refused = server.ask(&Post::modern("tools/list", json!({}))).await;
    assert_eq!(
        refused.header("www-authenticate"),
        Some(
            "Bearer realm=\"tidegate\", scope=\"data:read data:list\", \
             resource_metadata=\"https://data.example.com/.well-known/oauth-protected-resource/mcp\""
        )
    );
    let mut connection = server.connect().await;
    let well_known = "/.well-known/oauth-protected-resource";
    let page = [("Origin", "https://page.example"), ("Host", "data.example.com")];
    let mut document = Value::Null;
    for (path, resource) in [
        ("/mcp/sales", Some("/mcp/sales")),
        ("/mcp/no-such-toolset", Some("/mcp/no-such-toolset")),
        ("/mcp/sse", Some("/mcp/sse")),
        ("/mcp/sales/ws", Some("/mcp/sales/ws")),
        ("/mcp/sales/", Some("/mcp/sales")),
        ("/mcp/sales/more", None),
        ("/mcp/a%20b", None),
        ("/mcpx", None),
        ("/rest", None),
        ("/mcp", Some("/mcp")),
        ("", Some("/mcp")),
    ] {
        let answer = connection.ask(&request("GET", &format!("{well_known}{path}"), &page, b"")).await;
        let status = if resource.is_some() { 200 } else { 404 };
        assert_eq!((answer.head.status, answer.header("access-control-allow-origin")), (status, Some("*")), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        document = answer.message();
        let expected = resource.map(|resource| json!(format!("https://data.example.com{resource}")));
        assert_eq!(document.get("resource"), expected.as_ref(), "{path}");
    }
    insta::assert_json_snapshot!(document, @r#"
    {
      "resource": "https://data.example.com/mcp",
      "authorization_servers": [
        "https://login.example.com"
      ],
      "bearer_methods_supported": [
        "header"
      ],
      "scopes_supported": [
        "data:read",
        "data:list"
      ]
    }
    "#);
    let preflight = connection.ask(&request("OPTIONS", well_known, &page, b"")).await;
    assert_eq!((preflight.head.status, preflight.header("access-control-allow-headers")), (204, Some("*")));
    assert_eq!(connection.ask(&request("POST", well_known, &[("Content-Length", "0")], b"")).await.head.status, 405);
    // Another configuration may publish nothing.
    published.publish(None);
    assert_eq!(connection.ask(&request("GET", well_known, &[("Content-Length", "0")], b"")).await.head.status, 404);
    let refused = server.ask(&Post::modern("tools/list", json!({}))).await;
    assert_eq!(refused.header("www-authenticate"), Some("Bearer realm=\"tidegate\""));
}

#[tokio::test]
async fn insufficient_scope_names_the_scopes() {
    let server = server(published()).await;
    insta::assert_snapshot!(challenge_summary(&server.ask(&call("write")).await), @r#"
    403
    Bearer realm="tidegate", error="insufficient_scope", scope="data:write data:read", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    {"code":-31000,"message":"\"write\" needs a token with the scopes: data:write data:read","data":{"kind":"forbidden","scopes":["data:write","data:read"]}}
    "#);
    insta::assert_snapshot!(challenge_summary(&server.ask(&call("outer")).await), @r#"
    403
    Bearer realm="tidegate", error="insufficient_scope", scope="inner", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    {"code":-31000,"message":"the inner tool needs more","data":{"kind":"forbidden","scopes":["inner"]}}
    "#);
    let enough = call("write").with("Authorization", "Bearer data.write~data.read");
    assert_eq!(server.ask(&enough).await.summary(), "200");
    let session = server
        .session_of(Revision::NEWEST_LEGACY, json!({}), |post| post.with("Authorization", "Bearer data.read"))
        .await;
    let legacy = session.post("tools/call", json!({"name": "write", "arguments": {}}));
    let legacy = server.ask(&legacy.with("Authorization", "Bearer data.read")).await;
    assert_eq!(legacy.head.status, 403);
    let headers = [("Authorization", "Bearer data.read"), ("Content-Type", "application/json")];
    let rest = server.rest(&request("POST", "/rest/tools/write/call", &headers, b"{}")).await;
    assert_eq!(fixture::problem(&rest), "403 forbidden: \"write\" needs a token with the scopes: data:write data:read");
    assert_eq!(rest.header("www-authenticate"), legacy.header("www-authenticate"));
    let problem: Value = serde_json::from_slice(&rest.body).unwrap();
    assert_eq!(problem["scopes"], json!(["data:write", "data:read"]));
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let mut socket = Socket::opened(stream, "/mcp/ws", &headers[..1]).await.unwrap();
    socket.send(json!(1), "tools/call", json!({"name": "write", "arguments": {}})).await;
    let received = socket.hear().await.unwrap();
    assert_eq!(received["error"]["data"], json!({"kind": "forbidden", "scopes": ["data:write", "data:read"]}));
}

/// Authenticates like [`Scopes`], and also admits anonymous callers to all tools but `hidden`.
struct Anybody;

#[async_trait]
impl Authenticator for Anybody {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        if credentials.bearer.is_some() {
            return Scopes.authenticate(credentials).await;
        }
        let entries = AllowedNames::matching(["open".to_owned(), "write".to_owned()]);
        let grants = Grants { entries, ..Grants::default() };
        Ok(Arc::new(Principal::new("anonymous", AuthMethod::Anonymous, Arc::new(grants))))
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn enforces_authentication(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn missing_token_names_required_scopes() {
    let (authenticator, protected_resource) = (Arc::new(Anybody), published());
    let options = HttpOptions { authenticator, protected_resource, ..HttpOptions::default() };
    let server = Server::with(options).await;
    let access = Access { scopes: vec!["data:write".to_owned()], ..Access::default() };
    let done = || handler_fn(|_| async { Ok(Answer::content(Vec::new())) });
    let hidden = Tool::new("hidden", "Writes.", done()).with_access(access);
    server.host.service.registry().swap(entries().tool(hidden).build());
    let requested = async |name: &str| {
        let answer = server.ask(&Post::modern("tools/call", json!({"name": name, "arguments": {}}))).await;
        challenge_summary(&answer)
    };
    insta::assert_snapshot!(requested("write").await, @r#"
    401
    Bearer realm="tidegate", scope="data:read data:list data:write", resource_metadata="https://data.example.com/.well-known/oauth-protected-resource/mcp"
    {"code":-32001,"message":"\"write\" requires authentication\nSend an API key or a token.","data":{"kind":"unauthenticated","scopes":["data:write","data:read"]}}
    "#);
    let headers = [("Content-Type", "application/json")];
    let rest = server.rest(&request("POST", "/rest/tools/write/call", &headers, b"{}")).await;
    assert_eq!(rest.head.status, 401);
    let challenge = rest.header("www-authenticate").unwrap();
    assert!(challenge.contains("scope=\"data:read data:list data:write\""), "{challenge}");
    assert!(!challenge.contains("error="), "there were no credentials that could be invalid: {challenge}");
    // A hidden tool reveals no scopes, whether or not it exists.
    assert_eq!(requested("hidden").await.replace("hidden", "absent"), requested("absent").await);
    let rest = async |name: &str| {
        let answer = server.rest(&request("POST", &format!("/rest/tools/{name}/call"), &headers, b"{}")).await;
        (answer.head.status, answer.header("www-authenticate").is_some(), answer.text().replace("hidden", "absent"))
    };
    assert_eq!(rest("hidden").await, rest("absent").await);
}

#[tokio::test]
async fn rate_limit_sets_retry_after() {
    let server = server(SharedProtectedResource::default()).await;
    let headers = [("Authorization", "Bearer data.read"), ("Content-Type", "application/json")];
    // Errors of a tool are for the model, errors of the endpoint also for clients.
    let late = server.rest(&request("POST", "/rest/tools/late/call", &headers, b"{}")).await;
    assert_eq!((late.head.status, late.header("retry-after")), (429, Some("2")));
    assert_eq!(server.ask(&call("late")).await.head.status, 200);
    let limits = Limits { open_calls_max: 0, ..Limits::default() };
    let host = Host::with_entries(EventDispatcher::default(), |_| entries().limits(limits));
    let server = Server::of(host, Arc::new(Metrics::new()), HttpOptions::default()).await;
    let busy = server.ask(&call("busy")).await;
    assert_eq!((busy.head.status, busy.header("retry-after")), (429, Some("1")));
    assert_eq!(busy.message()["result"]["isError"], true);
    let busy = server.rest(&request("POST", "/rest/tools/busy/call", &headers, b"{}")).await;
    assert_eq!((busy.head.status, busy.header("retry-after")), (429, Some("1")));
}
