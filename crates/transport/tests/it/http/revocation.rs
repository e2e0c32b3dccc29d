//! Revoked credentials end running answers, over every transport. The paused clock advances only when all tasks wait.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use futures::StreamExt;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tidegate_runtime::SnapshotBuilder;
use tokio::time::Instant;
use tower::ServiceExt;

use super::identity::revocable_key;
use super::in_process::InProcessRouter;
use super::request::Post;
use super::web_socket::Socket;
use tidegate_testkit::message_checker::script;
use tidegate_testkit::wait::{pass_time, wait_until};

/// Seconds within which an answer ends after its caller was revoked.
const ENDS_WITHIN: u64 = 6;

fn with_key(post: Post) -> Post {
    post.with("Authorization", "Bearer key")
}

/// A call that waits.
fn waiting() -> Value {
    json!([["wait"], ["text", "x"]])
}

/// A call that has sent something and continues.
fn begun() -> Value {
    json!([["text", "x"], ["wait"], ["text", "y"]])
}

/// Opens the answers of `requested`, and revokes the key of its caller after 3 s. Returns the received text, and
/// whether the connection was broken.
async fn cut_off(requested: impl AsyncFnOnce(&InProcessRouter) -> Response) -> (u16, String, bool) {
    let (one_key, options) = revocable_key();
    let in_process_router = InProcessRouter::new(options);
    let began = Instant::now();
    tokio::spawn(async move {
        pass_time(Duration::from_secs(3)).await;
        one_key.is_revoked.store(true, Ordering::SeqCst);
    });
    let response = requested(&in_process_router).await;
    let status = response.status().as_u16();
    let mut stream = response.into_body().into_data_stream();
    let (mut received, mut is_broken) = (String::new(), false);
    while let Some(bytes) = stream.next().await {
        match bytes {
            Ok(bytes) => received.push_str(std::str::from_utf8(&bytes).unwrap()),
            Err(_) => is_broken = true,
        }
    }
    assert!(began.elapsed().as_secs() <= ENDS_WITHIN, "{:?}", began.elapsed());
    drop(stream);
    until_calls_end(&in_process_router).await;
    (status, received, is_broken)
}

/// The calls are cancelled; those that ignore this get some time.
async fn until_calls_end(in_process_router: &InProcessRouter) {
    wait_until("the end of the calls", async || in_process_router.host.service.registry().jobs().open_count() == 0)
        .await;
}

async fn rest(in_process_router: &InProcessRouter, steps: Value) -> Response {
    let request = Request::post("/rest/tools/script/call")
        .header("Authorization", "Bearer key")
        .header("Content-Type", "application/json");
    let body = Body::from(json!({ "steps": steps }).to_string());
    in_process_router.app.clone().oneshot(request.body(body).unwrap()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn pending_answer_becomes_an_error() {
    let (status, received, _) =
        cut_off(async |in_process_router| in_process_router.ask(&with_key(Post::script(waiting()))).await).await;
    assert!(status == 401 && received.contains("the key or token is not valid"), "{status} {received}");
    let (status, received, _) = cut_off(async |in_process_router| rest(in_process_router, waiting()).await).await;
    assert!(status == 401 && received.contains("the key or token is not valid"), "{status} {received}");
}

#[tokio::test(start_paused = true)]
async fn started_answer_is_terminated() {
    let (status, received, is_broken) =
        cut_off(async |in_process_router| in_process_router.ask(&with_key(Post::script(begun()))).await).await;
    assert!(status == 200 && is_broken && received.ends_with("\"text\":\"x"), "{received}");
    let events = async |in_process_router: &InProcessRouter| {
        in_process_router.ask(&with_key(Post::script_with_progress(begun()))).await
    };
    let (status, received, is_broken) = cut_off(events).await;
    assert!(status == 200 && is_broken && received.ends_with("\"text\":\"x"), "{received}");
    let (status, received, is_broken) = cut_off(async |in_process_router| rest(in_process_router, begun()).await).await;
    assert!(status == 200 && is_broken && received.ends_with("\"text\":\"x"), "{received}");
}

#[tokio::test(start_paused = true)]
async fn reload_terminates_started_answers_at_once() {
    let (one_key, options) = revocable_key();
    let in_process_router = InProcessRouter::new(options);
    let response = in_process_router.ask(&with_key(Post::script(begun()))).await;
    let mut stream = response.into_body().into_data_stream();
    stream.next().await.unwrap().unwrap();
    let changed = Instant::now();
    one_key.is_revoked.store(true, Ordering::SeqCst);
    in_process_router.host.service.registry().swap(SnapshotBuilder::new().build());
    while let Some(Ok(_)) = stream.next().await {}
    assert_eq!(changed.elapsed(), Duration::ZERO);
    drop(stream);
    until_calls_end(&in_process_router).await;
}

#[tokio::test(start_paused = true)]
async fn revoked_legacy_stream_is_not_resumable() {
    let (status, received, _) = cut_off(async |in_process_router| {
        let revision = Revision::NEWEST_LEGACY;
        let hello = Post::message("initialize", json!({"protocolVersion": revision.name()}));
        let opened = in_process_router.ask(&with_key(hello)).await;
        let id = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let session = super::Session { id, revision };
        in_process_router.ask(&with_key(session.call(begun()))).await
    })
    .await;
    assert!(status == 200 && !received.contains("\"y"), "{received}");
}

#[tokio::test(start_paused = true)]
async fn revocation_closes_web_sockets() {
    let (one_key, options) = revocable_key();
    let in_process_router = InProcessRouter::new(options);
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let connection = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(theirs), TowerToHyperService::new(in_process_router.app.clone()))
        .with_upgrades();
    tokio::spawn(connection);
    let mut socket = Socket::opened(ours, "/mcp/ws", &[("Authorization", "Bearer key")]).await.unwrap();
    let began = Instant::now();
    socket.send(json!(1), "tools/call", script(&begun())).await;
    pass_time(Duration::from_secs(1)).await;
    one_key.is_revoked.store(true, Ordering::SeqCst);
    let mut end = socket.hear().await;
    while let Ok(refusal) = end {
        assert_eq!(refusal["error"]["message"], "the key or token is not valid");
        end = socket.hear().await;
    }
    assert_eq!(end.unwrap_err().0, 1008);
    assert!(began.elapsed().as_secs() <= ENDS_WITHIN);
    until_calls_end(&in_process_router).await;
}

#[tokio::test(start_paused = true)]
async fn revocation_ends_http_sse_streams() {
    let (one_key, options) = revocable_key();
    let in_process_router = InProcessRouter::new(options);
    let get = Request::get("/mcp/sse").header("Accept", "text/event-stream").header("Authorization", "Bearer key");
    let response = in_process_router.app.clone().oneshot(get.body(Body::empty()).unwrap()).await.unwrap();
    let mut stream = response.into_body().into_data_stream();
    let first = String::from_utf8(stream.next().await.unwrap().unwrap().to_vec()).unwrap();
    let endpoint = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let message = Post::modern("tools/call", script(&begun())).body;
    let post = Request::post(endpoint).header("Content-Type", "application/json").header("Authorization", "Bearer key");
    let posted = in_process_router.app.clone().oneshot(post.body(Body::from(message)).unwrap()).await.unwrap();
    assert_eq!(posted.status(), 202);
    let began = Instant::now();
    tokio::spawn(async move {
        pass_time(Duration::from_secs(1)).await;
        one_key.is_revoked.store(true, Ordering::SeqCst);
    });
    let mut received = String::new();
    while let Some(bytes) = stream.next().await {
        received.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
    }
    // The answer was being written: it ends with an error, or its event stays incomplete, and clients drop it.
    let has_ended = received.contains("the key or token is not valid") || !received.ends_with("\n\n");
    assert!(has_ended && !received.contains("\"y"), "{received}");
    // The call ends immediately, its quiet stream at the next revalidation.
    assert!(began.elapsed().as_secs() <= 16, "{:?}", began.elapsed());
    until_calls_end(&in_process_router).await;
}
