//! Requests of the server over HTTP: legacy clients receive them on the stream of their request, modern ones in its
//! answer.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_mcp::Revision;
use tidegate_transport::http::HttpOptions;

use super::identity::AnyName;
use super::request::Post;
use super::resume::begin;
use super::wire::{Connection, SseEvent};
use super::{Server, Session};
use tidegate_testkit::message_checker::{all_capabilities, elicitation_answer, elicitation_steps, script};
use tidegate_testkit::schema::{check_request, check_response};

const ANN: &str = r#"{"who":{"name":"Ann"}}"#;

async fn able_session(server: &Server, revision: Revision) -> Session {
    server.session_of(revision, all_capabilities().unwrap(), |post| post).await
}

/// The next event with data.
async fn received(connection: &mut Connection) -> SseEvent {
    loop {
        let event = connection.event().await.unwrap();
        if event.data.as_deref().is_some_and(|data| !data.is_empty()) {
            return event;
        }
    }
}

async fn question(connection: &mut Connection, revision: Revision) -> SseEvent {
    let event = received(connection).await;
    check_request(revision, &event.message());
    event
}

async fn text(connection: &mut Connection, revision: Revision) -> String {
    let message = received(connection).await.message();
    check_response(revision, "tools/call", &message);
    message["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The post of an answer within a session.
fn answer(session: &Session, id: &Value, name: &str) -> Post {
    Post::raw(elicitation_answer(id, name)).with("Mcp-Session-Id", &session.id).in_revision(session.revision)
}

#[tokio::test]
async fn legacy_elicitation_uses_the_request_stream() {
    let server = Server::start().await;
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let session = able_session(&server, revision).await;
        // With and without a progress token.
        for call in [session.call(elicitation_steps()), session.post("tools/call", script(&elicitation_steps()))] {
            let mut connection = begin(&server, &call).await;
            let id = question(&mut connection, revision).await.message()["id"].clone();
            let accepted = server.ask(&answer(&session, &id, "Ann")).await;
            assert_eq!((accepted.head.status, accepted.text()), (202, ""));
            assert_eq!(text(&mut connection, revision).await, ANN);
            // A late answer is accepted and has no effect.
            assert_eq!(server.ask(&answer(&session, &id, "Eve")).await.head.status, 202);
        }
    }
}

#[tokio::test]
async fn no_elicitation_without_event_stream() {
    let server = Server::start().await;
    let session = able_session(&server, Revision::V2025_11_25).await;
    let call = session.post("tools/call", script(&elicitation_steps())).with("Accept", "application/json");
    let message = server.ask(&call).await.message();
    check_response(session.revision, "tools/call", &message);
    let rendered = message["result"]["content"][0]["text"].as_str().unwrap();
    assert!(rendered.starts_with("the call needs client capabilities that your client did not declare"), "{rendered}");
}

#[tokio::test]
async fn resumed_stream_elicits_once() {
    let server = Server::start().await;
    let session = able_session(&server, Revision::V2025_11_25).await;
    let resume = async |last: &str| {
        let mut connection = server.connect().await;
        connection.send(&session.head("GET", &[("Last-Event-ID", last)])).await;
        assert!(connection.head().await.is_event_stream());
        connection
    };
    let mut connection = begin(&server, &session.call(elicitation_steps())).await;
    let first = connection.event().await.unwrap().id.unwrap();
    let sse_event = question(&mut connection, session.revision).await;
    drop(connection);
    // A client that missed the request receives it again, with the same ids.
    let mut retried = resume(&first).await;
    let received = question(&mut retried, session.revision).await;
    assert_eq!((&received.id, &received.data), (&sse_event.id, &sse_event.data));
    drop(retried);
    // A client that has received it receives only later events.
    let mut after = resume(sse_event.id.as_deref().unwrap()).await;
    assert_eq!(server.ask(&answer(&session, &sse_event.message()["id"], "Ann")).await.head.status, 202);
    assert_eq!(text(&mut after, session.revision).await, ANN);
}

fn of(name: &'static str) -> impl Fn(Post) -> Post {
    move |post| post.with("Authorization", &format!("Bearer {name}"))
}

#[tokio::test]
async fn rejects_answers_of_other_principals() {
    let server = Server::with(HttpOptions { authenticator: Arc::new(AnyName), ..HttpOptions::default() }).await;
    let (ann, eve) = (of("ann"), of("eve"));
    let revision = Revision::V2025_11_25;
    let session = server.session_of(revision, all_capabilities().unwrap(), &ann).await;
    let mut connection = begin(&server, &ann(session.call(elicitation_steps()))).await;
    let id = question(&mut connection, revision).await.message()["id"].clone();
    // With her own session and with the other one.
    let hers = server.session_of(revision, all_capabilities().unwrap(), &eve).await;
    assert_eq!(server.ask(&eve(answer(&hers, &id, "Eve"))).await.head.status, 202);
    assert_eq!(server.ask(&eve(answer(&session, &id, "Eve"))).await.head.status, 404);
    assert_eq!(server.ask(&answer(&session, &id, "Eve")).await.head.status, 401);
    assert_eq!(server.ask(&ann(answer(&session, &id, "Ann"))).await.head.status, 202);
    assert_eq!(text(&mut connection, revision).await, ANN);

    // Nor with the state of a modern request.
    let call = |params: Value| Post::modern_of(all_capabilities().unwrap(), "tools/call", params);
    let requested = server.ask(&ann(call(script(&elicitation_steps())))).await.message();
    let mut retried = script(&elicitation_steps());
    retried["requestState"] = requested["result"]["requestState"].clone();
    retried["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "Ann"}}});
    let refused = server.ask(&eve(call(retried.clone()))).await;
    assert!(
        refused.summary().contains("-32602 the requestState is not valid for this request"),
        "{}",
        refused.summary()
    );
    let message = server.ask(&ann(call(retried))).await.message();
    assert_eq!(message["result"]["content"][0]["text"], ANN);
}

#[tokio::test]
async fn session_end_cancels_elicitations() {
    let server = Server::start().await;
    let session = able_session(&server, Revision::V2025_11_25).await;
    let mut connection = begin(&server, &session.call(elicitation_steps())).await;
    question(&mut connection, session.revision).await;
    server.until_open_calls(1).await;
    assert_eq!(server.connect().await.ask(&session.head("DELETE", &[])).await.head.status, 204);
    server.until_open_calls(0).await;
    assert_eq!(connection.event().await, None);
}

#[tokio::test]
async fn modern_elicitation_is_the_answer() {
    let server = Server::start().await;
    for accept in ["application/json, text/event-stream", "application/json"] {
        let call =
            |params: Value| Post::modern_of(all_capabilities().unwrap(), "tools/call", params).with("Accept", accept);
        let answer = server.ask(&call(script(&elicitation_steps()))).await;
        assert_eq!(answer.head.status, 200);
        let requested = answer.message();
        check_response(Revision::V2026_07_28, "tools/call", &requested);
        let mut retried = script(&elicitation_steps());
        retried["requestState"] = requested["result"]["requestState"].clone();
        retried["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "Ann"}}});
        let message = server.ask(&call(retried.clone())).await;
        assert_eq!(message.message()["result"]["content"][0]["text"], ANN);
        let used = server.ask(&call(retried)).await.summary();
        assert!(used.ends_with("-32602 the requestState was used already; call again without it"), "{used}");
    }
}

#[tokio::test]
async fn missing_client_capability_is_a_bad_request() {
    let server = Server::start().await;
    let refused = server.ask(&Post::script(elicitation_steps())).await;
    assert_eq!(refused.head.status, 400);
    let message = refused.message();
    check_response(Revision::V2026_07_28, "tools/call", &message);
    assert_eq!(message["error"]["code"], -32_021);
    assert_eq!(message["error"]["data"]["requiredCapabilities"], json!({"elicitation": {"form": {}}}));
    // On an open stream it is an event.
    let events = begin(&server, &Post::script_with_progress(elicitation_steps())).await.events().await;
    assert_eq!(events.last().unwrap().message()["error"]["code"], -32_021);
}
