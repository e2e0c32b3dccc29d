//! Comments and idleness, without a socket: time stands still until nobody has anything to do.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use futures::StreamExt;
use tidegate_transport::http::HttpOptions;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use super::super::door::Door;
use super::super::identity::asking;

/// An open stream and where it is posted to.
async fn open(door: &Door) -> (BodyDataStream, String) {
    let request = Request::get("/mcp/sse").header("Accept", "text/event-stream").header("Authorization", "Bearer key");
    let response = door.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let mut stream = response.into_body().into_data_stream();
    let first = String::from_utf8(stream.next().await.unwrap().unwrap().to_vec()).unwrap();
    let endpoint = first.strip_prefix("event: endpoint\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
    (stream, endpoint.unwrap().to_owned())
}

async fn post(door: &Door, endpoint: &str) -> u16 {
    let request = Request::post(endpoint).header("Content-Type", "application/json");
    let body = Body::from(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    door.app.clone().oneshot(request.body(body).unwrap()).await.unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_gets_comments_that_do_not_keep_it() {
    let door = Door::new(HttpOptions::default());
    let (mut stream, endpoint) = open(&door).await;
    let began = Instant::now();
    let mut comments = 0;
    while let Some(bytes) = stream.next().await {
        assert_eq!(bytes.unwrap(), ":\n\n");
        comments += 1;
        assert_eq!(began.elapsed().as_secs(), comments * 15);
    }
    assert_eq!(began.elapsed().as_secs(), 30 * 60);
    assert_eq!(comments, 119);
    drop(stream);
    assert_eq!(post(&door, &endpoint).await, 404);
}

#[tokio::test(start_paused = true)]
async fn a_message_keeps_it() {
    let door = Door::new(HttpOptions { session_idle_max: Duration::from_secs(100), ..HttpOptions::default() });
    let (stream, endpoint) = open(&door).await;
    let began = Instant::now();
    let listening = tokio::spawn(stream.count());
    for _ in 0..3 {
        sleep(Duration::from_secs(80)).await;
        assert_eq!(post(&door, &endpoint).await, 202);
    }
    listening.await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 340);
    assert_eq!(post(&door, &endpoint).await, 404);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_revoked_while_it_is_quiet_ends_the_stream() {
    let (one_key, options) = asking();
    let door = Door::new(options);
    let (mut stream, _) = open(&door).await;
    assert_eq!(stream.next().await.unwrap().unwrap(), ":\n\n");
    one_key.is_revoked.store(true, Ordering::SeqCst);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_host_may_mount_the_door_elsewhere() {
    let door = Door::new(HttpOptions::default());
    let app = axum::Router::new().nest("/data", door.app.clone());
    let request = Request::get("/data/mcp/sse").header("Accept", "text/event-stream").body(Body::empty()).unwrap();
    let mut stream = app.oneshot(request).await.unwrap().into_body().into_data_stream();
    let first = stream.next().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: endpoint\ndata: /data/mcp/messages/"), "{first:?}");
}
