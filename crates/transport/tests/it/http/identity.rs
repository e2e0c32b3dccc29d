//! The caller is resolved when a request arrives, after its body is read, and before each message of a batch.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use axum::response::Response;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tidegate_core::{AuthMethod, AuthenticationError, Authenticator, Credentials, Grants, Principal};
use tidegate_mcp::Revision;
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};
use tidegate_testkit::token_authenticator::RevocableKey;
use tidegate_transport::http::HttpOptions;

use super::Server;
use super::in_process::InProcessRouter;
use super::request::Post;

/// Options with a key that can be revoked.
pub(crate) fn revocable_key() -> (Arc<RevocableKey>, HttpOptions) {
    let one_key = Arc::new(RevocableKey::default());
    (one_key.clone(), HttpOptions { authenticator: one_key, ..HttpOptions::default() })
}

/// Accepts any token as the name of the principal.
pub(super) struct AnyName;

#[async_trait]
impl Authenticator for AnyName {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        let name = credentials.bearer.ok_or(AuthenticationError::Missing)?;
        Ok(Arc::new(Principal::new(name, AuthMethod::Key, Arc::new(Grants::everything()))))
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn enforces_authentication(&self) -> bool {
        true
    }
}

fn with_key(post: Post) -> Post {
    post.with("Authorization", "Bearer key")
}

#[tokio::test]
async fn key_revoked_during_the_body_is_rejected() {
    let (one_key, options) = revocable_key();
    let server = Server::with(options).await;
    let request = with_key(Post::script(json!([["text", "a"]]))).bytes();
    let mut connection = server.connect().await;
    assert_eq!(connection.ask(&request).await.head.status, 200);
    let (begun, rest) = request.split_at(request.len() - 1);
    connection.send(begun).await;
    // Another connection is answered meanwhile, so the headers of the first one have been processed.
    assert_eq!(server.ask(&with_key(Post::modern("tools/list", json!({})))).await.head.status, 200);
    // A slow body: the caller is resolved again only if reading it took more than ten milliseconds.
    tokio::time::sleep(Duration::from_millis(50)).await;
    one_key.is_revoked.store(true, Ordering::SeqCst);
    connection.send(rest).await;
    let answer = connection.answer().await;
    assert_eq!(answer.summary(), "401 -32600 the key or token is not valid");
}

#[tokio::test]
async fn revocation_rejects_the_rest_of_a_batch() {
    let (one_key, options) = revocable_key();
    let server = Server::with(options).await;
    let params = json!({"protocolVersion": "2025-03-26"});
    let opened = server.ask(&with_key(Post::message("initialize", params))).await;
    let call = |id: usize| {
        let params = json!({"name": "script", "arguments": {"steps": [["wait"], ["text", "x"]]}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let batch: Value = (0..20).map(call).collect();
    let post = with_key(Post::raw(batch.to_string())).with("Mcp-Session-Id", opened.header("mcp-session-id").unwrap());
    let mut connection = server.connect().await;
    connection.send(&post.in_revision(Revision::V2025_03_26).bytes()).await;
    server.until_open_calls(8).await;
    one_key.is_revoked.store(true, Ordering::SeqCst);
    server.host.release.cancel();
    let answer = connection.answer().await;
    let answers: Vec<Value> = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answers.len(), 20);
    for answer in &answers[..8] {
        assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
    }
    for answer in &answers[8..] {
        assert_eq!(answer["error"]["message"], "the key or token is not valid", "{answer}");
    }
}

#[tokio::test]
async fn principal_and_registry_have_one_generation() {
    let (one_key, options) = revocable_key();
    let server = Server::with(options).await;
    let list = with_key(Post::modern("tools/list", json!({})));
    one_key.generation.store(1, Ordering::SeqCst);
    let early = server.ask(&list).await;
    assert_eq!(early.summary(), "503 -31000 the configuration of the server is changing; try again");
    let tool = Tool::new("new", "", handler_fn(|_| async { Ok(Answer::content(Vec::new())) }));
    server.host.service.registry().swap(SnapshotBuilder::new().tool(tool).generation(1).build());
    let answer = server.ask(&list).await.message();
    assert_eq!(answer["result"]["tools"][0]["name"], "new");
}

#[tokio::test]
async fn rejects_two_authorization_headers() {
    let (_, options) = revocable_key();
    let server = Server::with(options).await;
    let list = Post::modern("tools/list", json!({})).and("Authorization", "Bearer key");
    assert_eq!(server.ask(&list).await.head.status, 200);
    for other in ["Bearer key", "Bearer other", "Basic key"] {
        assert_eq!(server.ask(&list.clone().and("Authorization", other)).await.head.status, 400, "{other}");
    }
}

#[tokio::test(start_paused = true)]
async fn revoked_listener_is_disconnected() {
    let (one_key, options) = revocable_key();
    let in_process_router = InProcessRouter::new(options);
    let revision = Revision::NEWEST_LEGACY;
    let opened = in_process_router
        .ask(&with_key(Post::message("initialize", json!({"protocolVersion": revision.name()}))))
        .await;
    let id = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let listening: Response = in_process_router.get(&id, &[("Authorization", "Bearer key")]).await;
    assert_eq!(listening.status(), 200);
    let mut stream = listening.into_body().into_data_stream();
    for _ in 0..3 {
        assert_eq!(stream.next().await.unwrap().unwrap(), ":\n\n");
    }
    one_key.is_revoked.store(true, Ordering::SeqCst);
    assert!(stream.next().await.is_none());
}
