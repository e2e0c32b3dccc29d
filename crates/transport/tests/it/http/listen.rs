//! GET: a legacy client listens for messages outside its requests.

use std::sync::Arc;

use serde_json::json;
use tidegate_mcp::Revision;
use tidegate_runtime::SnapshotBuilder;
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;
use tokio_util::sync::CancellationToken;

use super::wire::{Connection, SseEvent};
use super::{Server, Session};
use tidegate_testkit::host::{WatchedResources, entries};
use tidegate_testkit::schema::check_notification;

/// An open stream, after its first comment.
async fn listen(server: &Server, session: &Session, headers: &[(&str, &str)]) -> Connection {
    let mut connection = server.connect().await;
    connection.send(&session.head("GET", headers)).await;
    let head = connection.head().await;
    assert_eq!(head.status, 200);
    assert!(head.is_event_stream());
    assert!(connection.event_or_comment().await.unwrap().is_comment);
    connection
}

async fn changes(connection: &mut Connection, session: &Session, count: usize) -> String {
    let mut rendered = String::new();
    for _ in 0..count {
        let SseEvent { id, data, .. } = connection.event().await.unwrap();
        let message = serde_json::from_str(&data.unwrap()).unwrap();
        check_notification(session.revision, &message);
        rendered.push_str(&format!("{} {}\n", id.unwrap(), message["method"].as_str().unwrap()));
    }
    rendered
}

#[tokio::test]
async fn notifies_changed_lists() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_06_18).await;
    server.ask(&session.post("resources/subscribe", json!({"uri": "test://plain"}))).await;
    let mut connection = listen(&server, &session, &[]).await;
    server.host.service.registry().swap(entries(&CancellationToken::new()).build());
    insta::assert_snapshot!(changes(&mut connection, &session, 4).await, @r"
    0-2.0 notifications/tools/list_changed
    0-2.0 notifications/resources/list_changed
    0-2.0 notifications/prompts/list_changed
    0-2.1 notifications/resources/updated
    ");
    server.host.service.registry().swap(entries(&CancellationToken::new()).build());
    assert!(changes(&mut connection, &session, 4).await.starts_with("0-3."));
}

#[tokio::test]
async fn resumed_listener_receives_missed_changes() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_11_25).await;
    let registry = server.host.service.registry();
    registry.swap(SnapshotBuilder::new().build());
    let mut missed = listen(&server, &session, &[("Last-Event-ID", "0-1.0")]).await;
    assert!(changes(&mut missed, &session, 3).await.starts_with("0-2.0 notifications/tools/list_changed\n"));
    // A client that has received everything gets only the next change.
    let mut current = listen(&server, &session, &[("Last-Event-ID", "0-2.0")]).await;
    registry.swap(SnapshotBuilder::new().build());
    assert!(changes(&mut current, &session, 3).await.starts_with("0-3."));
}

#[tokio::test]
async fn a_new_listener_takes_the_place_of_the_old_one() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_03_26).await;
    let mut first = listen(&server, &session, &[]).await;
    let mut second = listen(&server, &session, &[]).await;
    assert_eq!(first.event().await, None);
    server.host.service.registry().swap(SnapshotBuilder::new().build());
    assert_eq!(changes(&mut second, &session, 3).await.lines().count(), 3);
}

#[tokio::test]
async fn a_listener_ends_with_its_session() {
    let server = Server::start().await;
    let (session, other) = (server.session(Revision::V2025_11_25).await, server.session(Revision::V2025_11_25).await);
    let mut connection = listen(&server, &session, &[]).await;
    let mut others = listen(&server, &other, &[]).await;
    server.connect().await.ask(&session.head("DELETE", &[])).await;
    assert_eq!(connection.event().await, None);
    server.host.service.registry().swap(SnapshotBuilder::new().build());
    assert_eq!(changes(&mut others, &other, 3).await.lines().count(), 3);
}

#[tokio::test]
async fn notifies_only_the_changed_resource() {
    let (host, watched) = WatchedResources::with_host();
    let server = Server::of(host, Arc::new(Metrics::new()), HttpOptions::default()).await;
    let session = server.session(Revision::V2025_11_25).await;
    for uri in ["watched://rose", "watched://lily"] {
        server.ask(&session.post("resources/subscribe", json!({"uri": uri}))).await;
    }
    let mut connection = listen(&server, &session, &[]).await;
    watched.change("rose");
    assert_eq!(changes(&mut connection, &session, 1).await, "0-1.1 notifications/resources/updated\n");
    drop(connection);
    watched.change("lily");
    let mut connection = listen(&server, &session, &[("Last-Event-ID", "0-1.1")]).await;
    let SseEvent { data, .. } = connection.event().await.unwrap();
    assert!(data.unwrap().contains("watched://lily"));
    // A message that was lost with a connection is sent again to a client that reports it as not received.
    drop(connection);
    let mut connection = listen(&server, &session, &[("Last-Event-ID", "0-1.1")]).await;
    assert!(connection.event().await.unwrap().data.unwrap().contains("watched://lily"));
    // After it unsubscribes, a client receives only other notifications.
    server.ask(&session.post("resources/unsubscribe", json!({"uri": "watched://rose"}))).await;
    watched.change("rose");
    watched.change("lily");
    assert!(connection.event().await.unwrap().data.unwrap().contains("watched://lily"));
}
