//! Clients that lose their connection and continue with `Last-Event-ID`.

use std::time::Duration;

use serde_json::json;
use tidegate_transport::http::HttpOptions;

use super::super::Server;
use super::super::request::Post;
use super::super::wire::{Connection, request};

/// A stream whose events have ids with their session.
struct ResumableStream {
    connection: Connection,
    endpoint: String,
}

impl ResumableStream {
    async fn open(server: &Server, last_event: Option<&str>) -> Self {
        let mut connection = Connection::open(server.address).await;
        let last_event = last_event.map(|id| ("Last-Event-ID", id));
        let headers: Vec<_> = [("Accept", "text/event-stream")].into_iter().chain(last_event).collect();
        connection.send(&request("GET", "/mcp/sse", &headers, b"")).await;
        assert_eq!(connection.head().await.status, 200);
        let first = connection.event_or_comment().await.unwrap();
        assert_eq!(first.event.as_deref(), Some("endpoint"));
        Self { connection, endpoint: first.data.unwrap() }
    }

    /// The id of the next event.
    async fn event_id(&mut self) -> String {
        self.connection.event().await.unwrap().id.unwrap()
    }

    fn session(&self) -> &str {
        self.endpoint.strip_prefix("/mcp/messages/").unwrap()
    }
}

/// Posts a request, whose answer is an event.
async fn post(server: &Server, endpoint: &str) -> u16 {
    let body = Post::modern("server/discover", json!({})).body;
    let post = request("POST", endpoint, &[("Content-Type", "application/json")], &body);
    Connection::open(server.address).await.ask(&post).await.head.status
}

async fn server(resume_within: Duration) -> Server {
    Server::with(HttpOptions { sse_resume_within: Some(resume_within), ..HttpOptions::default() }).await
}

#[tokio::test]
async fn a_client_continues_after_its_last_event() {
    let server = server(Duration::from_secs(60)).await;
    let mut stream = ResumableStream::open(&server, None).await;
    let (endpoint, session) = (stream.endpoint.clone(), stream.session().to_owned());
    assert_eq!(post(&server, &endpoint).await, 202);
    let first = stream.event_id().await;
    assert_eq!(first, format!("{session}-1"));
    // The second event is lost with the connection, the third one comes without a connection.
    assert_eq!(post(&server, &endpoint).await, 202);
    drop(stream);
    assert_eq!(post(&server, &endpoint).await, 202);
    let mut again = ResumableStream::open(&server, Some(&first)).await;
    assert_eq!(again.endpoint, endpoint);
    assert_eq!([again.event_id().await, again.event_id().await], [2, 3].map(|number| format!("{session}-{number}")));
    assert_eq!(post(&server, &endpoint).await, 202);
    assert_eq!(again.event_id().await, format!("{session}-4"));

    // A connection that the server still has is replaced.
    let replacing = ResumableStream::open(&server, Some(&format!("{session}-4"))).await;
    assert_eq!(replacing.endpoint, endpoint);
    assert!(again.connection.event_or_comment().await.is_none());
    let unknown = ResumableStream::open(&server, Some(&format!("{session}-99"))).await;
    assert_ne!(unknown.endpoint, endpoint);
    assert_eq!(post(&server, &endpoint).await, 404);
}

#[tokio::test]
async fn a_session_without_its_client_ends_after_its_time() {
    let server = server(Duration::from_millis(20)).await;
    let before = server.resource_usage().await;
    let mut stream = ResumableStream::open(&server, None).await;
    let endpoint = stream.endpoint.clone();
    assert_eq!(post(&server, &endpoint).await, 202);
    stream.event_id().await;
    drop(stream);
    server.wait_until_back_at(&before).await;
    assert_eq!(post(&server, &endpoint).await, 404);
}

#[tokio::test]
async fn a_session_without_events_ends_with_its_connection() {
    let server = server(Duration::from_secs(60)).await;
    let before = server.resource_usage().await;
    let stream = ResumableStream::open(&server, None).await;
    let endpoint = stream.endpoint.clone();
    drop(stream);
    // No client can name an event of it.
    server.wait_until_back_at(&before).await;
    assert_eq!(post(&server, &endpoint).await, 404);
}
