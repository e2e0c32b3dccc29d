//! The maximum number of sessions of one principal, of one tenant, and of all.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use axum::http::{Request, request};
use axum::response::Response;
use serde_json::{Value, json};
use tidegate_core::{AuthMethod, AuthenticationError, Authenticator, Credentials, Grants, Principal};
use tidegate_transport::http::{HttpOptions, PeerAddress};
use tower::ServiceExt;

use super::in_process::InProcessRouter;
use super::request::Post;

/// Accepts any token `name~tenant`; callers without a token are anonymous.
struct Tenants {
    is_configured: AtomicBool,
}

#[async_trait]
impl Authenticator for Tenants {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        let Some(bearer) = credentials.bearer else { return Ok(Principal::anonymous()) };
        let (name, tenant) = bearer.split_once('~').ok_or(AuthenticationError::Invalid)?;
        let principal = Principal::new(name, AuthMethod::Token, Arc::new(Grants::everything()));
        Ok(Arc::new(Principal { tenant: Some(tenant.to_owned()), ..principal }))
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn enforces_authentication(&self) -> bool {
        self.is_configured.load(Ordering::Relaxed)
    }
}

/// A server with eight session permits, of which one principal may have three.
fn limited_router() -> InProcessRouter {
    transport_of(Arc::new(Tenants { is_configured: true.into() }))
}

fn transport_of(authenticator: Arc<Tenants>) -> InProcessRouter {
    InProcessRouter::new(HttpOptions {
        authenticator,
        sessions_max: 8,
        sessions_per_principal_max: 3,
        ..HttpOptions::default()
    })
}

fn opening() -> Post {
    Post::message("initialize", json!({"protocolVersion": "2025-11-25"}))
}

/// A session that is in use while its event stream is held.
struct UsedSession {
    id: String,
    _stream: Response,
}

/// The result of opening a session as `caller`, and its event stream.
async fn opened(in_process_router: &InProcessRouter, caller: &str) -> Result<UsedSession, String> {
    open_outcome(in_process_router, &opening().with("Authorization", &format!("Bearer {caller}")), None).await
}

/// The same for an anonymous caller at `address`.
async fn opened_at(in_process_router: &InProcessRouter, address: &str) -> Result<UsedSession, String> {
    open_outcome(in_process_router, &opening(), Some(PeerAddress(address.parse::<IpAddr>().unwrap()))).await
}

async fn open_outcome(
    in_process_router: &InProcessRouter,
    post: &Post,
    peer: Option<PeerAddress>,
) -> Result<UsedSession, String> {
    let send = async |request: request::Builder, body: Vec<u8>| {
        let request = post.headers().fold(request, |request, (name, value)| request.header(name, value));
        let mut request = request.body(Body::from(body)).unwrap();
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        in_process_router.app.clone().oneshot(request).await.unwrap()
    };
    let response = send(Request::post("/mcp"), post.body.clone()).await;
    if let Some(id) = response.headers().get("mcp-session-id") {
        let stream = send(Request::get("/mcp").header("Mcp-Session-Id", id), Vec::new()).await;
        assert_eq!(stream.status(), 200);
        return Ok(UsedSession { id: id.to_str().unwrap().to_owned(), _stream: stream });
    }
    let status = response.status().as_u16();
    let body: Value = serde_json::from_slice(&to_bytes(response.into_body(), 4096).await.unwrap()).unwrap();
    Err(format!("{status} {}", body["error"]["message"].as_str().unwrap()))
}

/// Whether the session `id` of `caller` still exists.
async fn exists(in_process_router: &InProcessRouter, caller: &str, id: &str) -> bool {
    let post = Post::message("ping", json!({})).with("Authorization", &format!("Bearer {caller}"));
    in_process_router.ask(&post.with("Mcp-Session-Id", id)).await.status() == 200
}

#[tokio::test]
async fn tenant_cannot_take_all_sessions() {
    let in_process_router = limited_router();
    let of_tenant = "503 your tenant has too many open sessions; try again later";
    let (mut refused, mut used) = (Vec::new(), Vec::new());
    for name in ["ann", "bob", "carol", "dave"] {
        for _ in 0..4 {
            match opened(&in_process_router, &format!("{name}~north")).await {
                Ok(session) => used.push(session),
                Err(text) => refused.push(text),
            }
        }
    }
    let of_one = "503 you have too many open sessions; try again later";
    assert_eq!(refused, [&[of_one][..], &[of_tenant; 11]].concat());
    for name in ["ann", "ann", "ann", "bob"] {
        used.push(opened(&in_process_router, &format!("{name}~south")).await.unwrap());
    }
    assert_eq!(
        opened(&in_process_router, "ann~west").await.err().unwrap(),
        "503 there are too many open sessions; try again later"
    );
    // A released permit is available to its tenant again.
    let ended = Request::delete("/mcp")
        .header("Mcp-Session-Id", &used[0].id)
        .header("Authorization", "Bearer ann~north")
        .body(Body::empty());
    assert!(in_process_router.app.clone().oneshot(ended.unwrap()).await.unwrap().status().is_success());
    assert_eq!(opened(&in_process_router, "bob~south").await.err().unwrap(), of_tenant);
    used.push(opened(&in_process_router, "dave~north").await.unwrap());
    assert_eq!(opened(&in_process_router, "dave~north").await.err().unwrap(), of_tenant);
}

#[tokio::test]
async fn unused_sessions_make_room_first_for_their_own_principal() {
    let in_process_router = limited_router();
    let mut ids = Vec::new();
    // The oldest one belongs to another principal of another tenant.
    for caller in ["zoe~south", "ann~north", "ann~north", "ann~north"] {
        ids.push((caller, opened(&in_process_router, caller).await.unwrap().id));
    }
    let existing = async || {
        let mut existing = Vec::new();
        for (caller, id) in &ids {
            existing.push(exists(&in_process_router, caller, id).await);
        }
        existing
    };
    // The checks use the sessions in this order.
    assert_eq!(existing().await, [true; 4]);
    for _ in 0..2 {
        drop(opened(&in_process_router, "ann~north").await.unwrap());
    }
    assert_eq!(existing().await, [true, false, false, true], "a principal at its limit");
    // One of bob's takes the last place of its tenant; the next ones replace sessions of the tenant.
    let used = [
        opened(&in_process_router, "bob~north").await.unwrap(),
        opened(&in_process_router, "bob~north").await.unwrap(),
    ];
    assert_eq!(existing().await, [true, false, false, true], "ann's later sessions were used before");
    drop(used);
    for _ in 0..20 {
        opened(&in_process_router, "carol~north").await.unwrap();
    }
    assert!(exists(&in_process_router, "zoe~south", &ids[0].1).await, "a tenant at its limit");
}

#[tokio::test]
async fn anonymous_sessions_are_counted_by_network() {
    let in_process_router = limited_router();
    let mut used = Vec::new();
    for host in 1..=3 {
        used.push(opened_at(&in_process_router, &format!("2001:db8::{host}")).await.unwrap());
    }
    let of_one = "503 you have too many open sessions; try again later";
    assert_eq!(opened_at(&in_process_router, "2001:db8::ffff").await.err().unwrap(), of_one);
    for host in 1..=3 {
        used.push(opened_at(&in_process_router, "192.0.2.1").await.unwrap());
        used.extend(opened_at(&in_process_router, &format!("2001:db8:0:{host}::1")).await);
    }
    assert_eq!(
        opened_at(&in_process_router, "192.0.2.2").await.err().unwrap(),
        "503 there are too many open sessions; try again later"
    );
}

#[tokio::test]
async fn principal_share_applies_once_authentication_is_configured() {
    let authenticator = Arc::new(Tenants { is_configured: false.into() });
    let in_process_router = transport_of(authenticator.clone());
    let mut used = Vec::new();
    for _ in 0..4 {
        used.push(opened_at(&in_process_router, "192.0.2.1").await.unwrap());
    }
    authenticator.is_configured.store(true, Ordering::Relaxed);
    let of_one = "503 you have too many open sessions; try again later";
    assert_eq!(opened_at(&in_process_router, "192.0.2.1").await.err().unwrap(), of_one);
    used.push(opened_at(&in_process_router, "192.0.2.2").await.unwrap());
}
