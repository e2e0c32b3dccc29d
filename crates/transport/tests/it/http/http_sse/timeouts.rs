//! Comments and idle timeouts, without a socket: the paused clock advances only when all tasks wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use futures::StreamExt;
use tidegate_core::{AuthMethod, AuthenticationError, Authenticator, Credentials, Grants, Principal};
use tidegate_transport::http::HttpOptions;
use tokio::time::Instant;
use tower::ServiceExt;

use super::super::identity::revocable_key;
use super::super::in_process::InProcessRouter;
use tidegate_testkit::wait::pass_time;

/// Opens a stream and returns the URL to post to.
async fn open(in_process_router: &InProcessRouter) -> (BodyDataStream, String) {
    let request = Request::get("/mcp/sse").header("Accept", "text/event-stream").header("Authorization", "Bearer key");
    let response = in_process_router.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let mut stream = response.into_body().into_data_stream();
    let first = String::from_utf8(stream.next().await.unwrap().unwrap().to_vec()).unwrap();
    let endpoint = first.strip_prefix("event: endpoint\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
    (stream, endpoint.unwrap().to_owned())
}

async fn post(in_process_router: &InProcessRouter, endpoint: &str) -> u16 {
    post_body(in_process_router, endpoint, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await
}

async fn post_body(in_process_router: &InProcessRouter, endpoint: &str, body: &'static str) -> u16 {
    let request = Request::post(endpoint).header("Content-Type", "application/json");
    in_process_router.app.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn keep_alives_do_not_prevent_idle_timeout() {
    let in_process_router = InProcessRouter::new(HttpOptions::default());
    let (mut stream, endpoint) = open(&in_process_router).await;
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
    assert_eq!(post(&in_process_router, &endpoint).await, 404);
}

#[tokio::test(start_paused = true)]
async fn a_message_resets_the_idle_timeout() {
    let in_process_router =
        InProcessRouter::new(HttpOptions { session_idle_max: Duration::from_secs(100), ..HttpOptions::default() });
    let (stream, endpoint) = open(&in_process_router).await;
    let began = Instant::now();
    let listening = tokio::spawn(stream.count());
    for _ in 0..3 {
        pass_time(Duration::from_secs(80)).await;
        assert_eq!(post(&in_process_router, &endpoint).await, 202);
    }
    listening.await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 340);
    assert_eq!(post(&in_process_router, &endpoint).await, 404);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_revoked_while_it_is_quiet_ends_the_stream() {
    let (one_key, options) = revocable_key();
    let in_process_router = InProcessRouter::new(options);
    let (mut stream, _) = open(&in_process_router).await;
    assert_eq!(stream.next().await.unwrap().unwrap(), ":\n\n");
    one_key.is_revoked.store(true, Ordering::SeqCst);
    assert!(stream.next().await.is_none());
}

/// Two keys of one principal; the first can be revoked.
#[derive(Default)]
struct TwoKeys(AtomicBool);

#[async_trait]
impl Authenticator for TwoKeys {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        match credentials.bearer {
            Some("key") if self.0.load(Ordering::SeqCst) => Err(AuthenticationError::Invalid),
            _ => Ok(Arc::new(Principal::new("ann", AuthMethod::Key, Arc::new(Grants::everything())))),
        }
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn enforces_authentication(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_revoked_ends_a_busy_stream_too() {
    let keys = Arc::new(TwoKeys::default());
    let in_process_router = InProcessRouter::new(HttpOptions { authenticator: keys.clone(), ..HttpOptions::default() });
    let (stream, endpoint) = open(&in_process_router).await;
    let listening = tokio::spawn(stream.count());
    keys.0.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        pass_time(Duration::from_secs(4)).await;
        // Answered with an error, which is a message too.
        assert_eq!(post_body(&in_process_router, &endpoint, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await, 202);
    }
    pass_time(Duration::from_secs(2)).await;
    assert!(!listening.is_finished());
    pass_time(Duration::from_secs(2)).await;
    assert_eq!(listening.await.unwrap(), 3);
}

#[tokio::test]
async fn router_may_be_nested() {
    let in_process_router = InProcessRouter::new(HttpOptions::default());
    let app = axum::Router::new().nest("/data", in_process_router.app.clone());
    let request = Request::get("/data/mcp/sse").header("Accept", "text/event-stream").body(Body::empty()).unwrap();
    let mut stream = app.oneshot(request).await.unwrap().into_body().into_data_stream();
    let first = stream.next().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: endpoint\ndata: /data/mcp/messages/"), "{first:?}");
}
