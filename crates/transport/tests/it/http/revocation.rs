//! Who is let in no longer hears no more of what it began, over every transport. Time stands still but for waiting.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use futures::StreamExt;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tidegate_core::SnapshotBuilder;
use tidegate_mcp::Revision;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use super::identity::asking;
use super::in_process::InProcessRouter;
use super::request::Post;
use super::web_socket::Socket;
use crate::message_checker::script;

/// In so many seconds an answer ends whose caller is let in no longer.
const ENDS_WITHIN: u64 = 6;

fn shown(post: Post) -> Post {
    post.with("Authorization", "Bearer key")
}

/// A call that is waited for.
fn waiting() -> Value {
    json!([["wait"], ["text", "x"]])
}

/// A call that has said something and goes on.
fn begun() -> Value {
    json!([["text", "x"], ["wait"], ["text", "y"]])
}

/// Opens `door`'s answers of `asked`, and takes its caller's key away after 3 s. Gives what was heard, and whether it
/// broke off.
async fn cut_off(asked: impl AsyncFnOnce(&InProcessRouter) -> Response) -> (u16, String, bool) {
    let (one_key, options) = asking();
    let door = InProcessRouter::new(options);
    let began = Instant::now();
    tokio::spawn(async move {
        sleep(Duration::from_secs(3)).await;
        one_key.is_revoked.store(true, Ordering::SeqCst);
    });
    let response = asked(&door).await;
    let status = response.status().as_u16();
    let mut stream = response.into_body().into_data_stream();
    let (mut heard, mut is_broken) = (String::new(), false);
    while let Some(bytes) = stream.next().await {
        match bytes {
            Ok(bytes) => heard.push_str(std::str::from_utf8(&bytes).unwrap()),
            Err(_) => is_broken = true,
        }
    }
    assert!(began.elapsed().as_secs() <= ENDS_WITHIN, "{:?}", began.elapsed());
    drop(stream);
    until_calls_end(&door).await;
    (status, heard, is_broken)
}

/// The calls are cancelled; what does not heed that is given some time.
async fn until_calls_end(door: &InProcessRouter) {
    super::until(async || door.host.service.registry().jobs().open_count() == 0).await;
}

async fn rest(door: &InProcessRouter, steps: Value) -> Response {
    let request = Request::post("/rest/tools/script/call")
        .header("Authorization", "Bearer key")
        .header("Content-Type", "application/json");
    let body = Body::from(json!({ "steps": steps }).to_string());
    door.app.clone().oneshot(request.body(body).unwrap()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn pending_answer_becomes_an_error() {
    let (status, heard, _) = cut_off(async |door| door.ask(&shown(Post::script(waiting()))).await).await;
    assert!(status == 401 && heard.contains("the key or token is not valid"), "{status} {heard}");
    let (status, heard, _) = cut_off(async |door| rest(door, waiting()).await).await;
    assert!(status == 401 && heard.contains("the key or token is not valid"), "{status} {heard}");
}

#[tokio::test(start_paused = true)]
async fn started_answer_is_terminated() {
    let (status, heard, is_broken) = cut_off(async |door| door.ask(&shown(Post::script(begun()))).await).await;
    assert!(status == 200 && is_broken && heard.ends_with("\"text\":\"x"), "{heard}");
    let events = async |door: &InProcessRouter| door.ask(&shown(Post::script_with_progress(begun()))).await;
    let (status, heard, is_broken) = cut_off(events).await;
    assert!(status == 200 && is_broken && heard.ends_with("\"text\":\"x"), "{heard}");
    let (status, heard, is_broken) = cut_off(async |door| rest(door, begun()).await).await;
    assert!(status == 200 && is_broken && heard.ends_with("\"text\":\"x"), "{heard}");
}

#[tokio::test(start_paused = true)]
async fn reload_terminates_started_answers_at_once() {
    let (one_key, options) = asking();
    let door = InProcessRouter::new(options);
    let response = door.ask(&shown(Post::script(begun()))).await;
    let mut stream = response.into_body().into_data_stream();
    stream.next().await.unwrap().unwrap();
    let changed = Instant::now();
    one_key.is_revoked.store(true, Ordering::SeqCst);
    door.host.service.registry().swap(SnapshotBuilder::new().build());
    while let Some(Ok(_)) = stream.next().await {}
    assert_eq!(changed.elapsed(), Duration::ZERO);
    drop(stream);
    until_calls_end(&door).await;
}

#[tokio::test(start_paused = true)]
async fn revoked_legacy_stream_is_not_resumable() {
    let (status, heard, _) = cut_off(async |door| {
        let revision = Revision::NEWEST_LEGACY;
        let hello = Post::message("initialize", json!({"protocolVersion": revision.name()}));
        let opened = door.ask(&shown(hello)).await;
        let id = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let session = super::Session { id, revision };
        door.ask(&shown(session.call(begun()))).await
    })
    .await;
    assert!(status == 200 && !heard.contains("\"y"), "{heard}");
}

#[tokio::test(start_paused = true)]
async fn revocation_closes_web_sockets() {
    let (one_key, options) = asking();
    let door = InProcessRouter::new(options);
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let connection = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(theirs), TowerToHyperService::new(door.app.clone()))
        .with_upgrades();
    tokio::spawn(connection);
    let mut socket = Socket::opened(ours, "/mcp/ws", &[("Authorization", "Bearer key")]).await.unwrap();
    let began = Instant::now();
    socket.send(json!(1), "tools/call", script(&begun())).await;
    sleep(Duration::from_secs(1)).await;
    one_key.is_revoked.store(true, Ordering::SeqCst);
    let mut end = socket.hear().await;
    while let Ok(refusal) = end {
        assert_eq!(refusal["error"]["message"], "the key or token is not valid");
        end = socket.hear().await;
    }
    assert_eq!(end.unwrap_err().0, 1008);
    assert!(began.elapsed().as_secs() <= ENDS_WITHIN);
    until_calls_end(&door).await;
}

#[tokio::test(start_paused = true)]
async fn revocation_ends_http_sse_streams() {
    let (one_key, options) = asking();
    let door = InProcessRouter::new(options);
    let get = Request::get("/mcp/sse").header("Accept", "text/event-stream").header("Authorization", "Bearer key");
    let response = door.app.clone().oneshot(get.body(Body::empty()).unwrap()).await.unwrap();
    let mut stream = response.into_body().into_data_stream();
    let first = String::from_utf8(stream.next().await.unwrap().unwrap().to_vec()).unwrap();
    let endpoint = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let message = Post::modern("tools/call", script(&begun())).body;
    let post = Request::post(endpoint).header("Content-Type", "application/json").header("Authorization", "Bearer key");
    let posted = door.app.clone().oneshot(post.body(Body::from(message)).unwrap()).await.unwrap();
    assert_eq!(posted.status(), 202);
    let began = Instant::now();
    tokio::spawn(async move {
        sleep(Duration::from_secs(1)).await;
        one_key.is_revoked.store(true, Ordering::SeqCst);
    });
    let mut heard = String::new();
    while let Some(bytes) = stream.next().await {
        heard.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
    }
    assert!(heard.contains("the key or token is not valid") && !heard.contains("\"y"), "{heard}");
    // The call ends at once, its quiet stream when it is asked who listens.
    assert!(began.elapsed().as_secs() <= 16, "{:?}", began.elapsed());
    until_calls_end(&door).await;
}
