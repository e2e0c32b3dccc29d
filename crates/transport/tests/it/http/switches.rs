//! An operator stops and starts MCP or REST while the server runs.

use serde_json::json;
use tidegate_mcp::Revision;
use tidegate_transport::http::HttpOptions;

use super::request::Post;
use super::web_socket::Socket;
use super::{Server, wire};

/// Switches one group of transports and returns the summary and body of the answer.
async fn switch(server: &Server, path: &str) -> (u16, String) {
    let answer =
        server.connect().await.ask(&wire::request("POST", &format!("/rest/transports/{path}"), &[], b"")).await;
    (answer.head.status, answer.text().to_owned())
}

const STOPPED: &str = "503 -32603 an operator has stopped mcp on this server; tidegate transport start mcp starts it";

#[tokio::test]
async fn a_stopped_transport_refuses_requests_and_the_others_run() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_11_25).await;
    let mut socket = Socket::open(&server).await;
    let stopped = switch(&server, "mcp/stop").await;
    assert_eq!(
        stopped,
        (
            200,
            json!({"transports": [
                {"name": "mcp", "state": "stopped"},
                {"name": "rest", "state": "running"},
            ]})
            .to_string()
        )
    );
    assert_eq!(server.ask(&Post::modern("tools/list", json!({}))).await.summary(), STOPPED);
    assert_eq!(server.ask(&session.post("tools/list", json!({}))).await.summary(), STOPPED);
    for (path, accept) in [("/mcp", "text/event-stream"), ("/mcp/sse", "text/event-stream"), ("/mcp/ws", "*/*")] {
        let mut connection = server.connect().await;
        let answer = connection.ask(&wire::request("GET", path, &[("Accept", accept)], b"")).await;
        assert_eq!(answer.summary(), STOPPED, "{path}");
    }
    socket.send(json!(1), "server/discover", json!({})).await;
    let refused = socket.hear().await.unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("an operator has stopped mcp"), "{refused}");
    for path in ["/rest/tools", "/health", "/ready"] {
        assert_eq!(server.connect().await.ask(&wire::request("GET", path, &[], b"")).await.head.status, 200, "{path}");
    }
    switch(&server, "mcp/start").await;
    assert_eq!(server.ask(&session.post("tools/list", json!({}))).await.summary(), "200");
    socket.lives().await;
}

#[tokio::test]
async fn running_answers_end_and_can_be_cancelled() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_11_25).await;
    let mut stream = server.connect().await;
    stream.send(&session.call(json!([["progress", 1], ["cancelled"]])).bytes()).await;
    assert_eq!(stream.head().await.status, 200);
    server.until_open_calls(1).await;
    switch(&server, "mcp/stop").await;
    assert_eq!(server.open_calls(), 1);
    let cancelled = Post::notification("notifications/cancelled", json!({"requestId": 1}));
    let cancelled = cancelled.with("Mcp-Session-Id", &session.id);
    assert_eq!(server.ask(&cancelled).await.head.status, 202);
    server.until_open_calls(0).await;
}

#[tokio::test]
async fn rest_can_be_started_again_over_rest() {
    let server = Server::start().await;
    assert_eq!(switch(&server, "rest/stop").await.0, 200);
    for path in ["/rest/", "/rest/tools", "/results/0"] {
        let answer = server.connect().await.ask(&wire::request("GET", path, &[], b"")).await;
        assert_eq!(answer.head.status, 503, "{path}");
        assert!(answer.text().contains("tidegate transport start rest starts it"), "{}", answer.text());
    }
    assert_eq!(server.ask(&Post::modern("tools/list", json!({}))).await.summary(), "200");
    assert_eq!(switch(&server, "rest/start").await.0, 200);
    let answer = server.connect().await.ask(&wire::request("GET", "/rest/tools", &[], b"")).await;
    assert_eq!(answer.head.status, 200);
    let unknown = switch(&server, "ws/stop").await;
    assert_eq!(unknown.0, 404);
    assert!(unknown.1.contains("\"choices\":[\"mcp\",\"rest\"]"), "{}", unknown.1);
}

#[tokio::test]
async fn transports_that_are_off_cannot_be_started() {
    let off = HttpOptions { has_mcp: false, has_sse: false, has_web_socket: false, ..HttpOptions::default() };
    let server = Server::with(off).await;
    let answer = switch(&server, "mcp/start").await;
    assert!(answer.1.contains("this server does not serve mcp"), "{answer:?}");
}
