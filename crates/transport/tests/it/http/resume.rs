//! A legacy event stream whose connection broke is resumed.

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use super::request::Post;
use super::wire::{Connection, SseEvent};
use super::{Server, Session};
use tidegate_testkit::host::FLOOD_CHUNK;
use tidegate_testkit::schema::{check_notification, check_response};
use tidegate_testkit::wait::wait_until;

/// A call on its own connection; its stream is open.
pub(super) async fn begin(server: &Server, post: &Post) -> Connection {
    let mut connection = server.connect().await;
    connection.send(&post.bytes()).await;
    let head = connection.head().await;
    assert_eq!(head.status, 200);
    assert!(head.is_event_stream());
    connection
}

async fn resume(server: &Server, session: &Session, last: &str) -> Connection {
    let mut connection = server.connect().await;
    connection.send(&session.head("GET", &[("Last-Event-ID", last)])).await;
    assert!(connection.head().await.is_event_stream());
    connection
}

/// One line for each event: its id and its content.
fn event_summary(revision: Revision, events: &[SseEvent]) -> String {
    let line = |event: &SseEvent| {
        let id = event.id.as_deref().unwrap_or("none");
        let data = event.data.as_deref().unwrap_or_default();
        if data.is_empty() {
            return format!("{id} (retry {})", event.retry.as_deref().unwrap_or("none"));
        }
        let message = event.message();
        match message.get("method") {
            Some(_) => {
                check_notification(revision, &message);
                format!("{id} progress {}", message["params"]["progress"])
            }
            None => {
                check_response(revision, "tools/call", &message);
                format!("{id} {}", message["result"]["content"][0]["text"])
            }
        }
    };
    events.iter().map(|event| line(event) + "\n").collect()
}

#[tokio::test]
async fn priming_event_since_2025_11_25() {
    let server = Server::start().await;
    let steps = json!([["progress", 1], ["progress", 2], ["text", "done"]]);
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        let session = server.session(revision).await;
        let events = begin(&server, &session.call(steps.clone())).await.events().await;
        if revision == Revision::V2025_11_25 {
            insta::assert_snapshot!(event_summary(revision, &events), @r#"
            1-0 (retry 1000)
            1-1 progress 1.0
            1-2 progress 2.0
            1-3 "done"
            "#);
        } else {
            insta::allow_duplicates! {
                insta::assert_snapshot!(event_summary(revision, &events), @r#"
                1-1 progress 1.0
                1-2 progress 2.0
                1-3 "done"
                "#);
            }
        }
    }
}

#[tokio::test]
async fn disconnected_client_resumes() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_11_25).await;
    let steps = json!([["progress", 1], ["wait"], ["progress", 2], ["text", "done"]]);
    let mut connection = begin(&server, &session.call(steps)).await;
    assert_eq!(connection.event().await.unwrap().id.as_deref(), Some("1-0"));
    assert_eq!(connection.event().await.unwrap().id.as_deref(), Some("1-1"));
    drop(connection);
    // While it is disconnected, and while it listens again.
    let mut waiting = resume(&server, &session, "1-1").await;
    assert_eq!(server.open_calls(), 1);
    server.host.release.cancel();
    let events = waiting.events().await;
    insta::assert_snapshot!(event_summary(session.revision, &events), @r#"
    1-2 progress 2.0
    1-3 "done"
    "#);
    server.until_open_calls(0).await;
    let all = ["1-1 progress 1.0\n", "1-2 progress 2.0\n", "1-3 \"done\"\n"];
    for (last, received) in [("1-0", 0), ("1-1", 1), ("1-2", 2), ("1-3", 3)] {
        let sse_events = resume(&server, &session, last).await.events().await;
        assert_eq!(event_summary(session.revision, &sse_events), all[received..].concat(), "{last}");
    }
}

#[tokio::test]
async fn streams_of_one_session_do_not_mix() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_06_18).await;
    let mut streams = Vec::new();
    for number in 0..5 {
        let steps = json!([["wait"], ["progress", number], ["text", format!("answer {number}")]]);
        // Ids are chosen by the client; each is used once in a session.
        streams.push(begin(&server, &session.call(steps).of_id(number)).await);
    }
    server.until_open_calls(5).await;
    server.host.release.cancel();
    for (number, stream) in streams.iter_mut().enumerate() {
        let events = stream.events().await;
        let expected = format!("{0}-1 progress {number}.0\n{0}-2 \"answer {number}\"\n", number + 1);
        assert_eq!(event_summary(session.revision, &events), expected);
    }
    let sse_events = resume(&server, &session, "3-1").await.events().await;
    assert_eq!(event_summary(session.revision, &sse_events), "3-2 \"answer 2\"\n");
}

#[tokio::test]
async fn rejects_unknown_last_event_id() {
    let server = Server::start().await;
    let (session, other) = (server.session(Revision::V2025_11_25).await, server.session(Revision::V2025_11_25).await);
    begin(&server, &session.call(json!([["text", "done"]]))).await.events().await;
    for last in ["9-1", "x", "1", "1-", "-1", "1-x", ""] {
        let answer = server.connect().await.ask(&session.head("GET", &[("Last-Event-ID", last)])).await;
        let expected = format!("400 -32600 event {last:?} is no longer stored; send the request again");
        assert_eq!(answer.summary(), expected);
    }
    let answer = server.connect().await.ask(&other.head("GET", &[("Last-Event-ID", "1-0")])).await;
    assert_eq!(answer.head.status, 400, "streams belong to their session");
}

#[tokio::test]
async fn unread_oversized_answer_is_lost() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_11_25).await;
    let steps = json!([["progress", 1], ["wait"], ["flood", 8_000_000], ["text", "end"]]);
    let mut connection = begin(&server, &session.call(steps)).await;
    connection.event().await.unwrap();
    connection.event().await.unwrap();
    drop(connection);
    // The server notices the disconnect when the connection is closed; then there is no reader.
    wait_until("the end of the stream", async || {
        server.figure("tidegate_connections{transport=\"http\"}").await == "1"
    })
    .await;
    server.host.release.cancel();
    server.until_open_calls(0).await;
    for last in ["1-0", "1-1", "1-2"] {
        let get = session.head("GET", &[("Last-Event-ID", last)]);
        wait_until("the end of the stream", async || server.connect().await.ask(&get).await.head.status == 400).await;
    }
}

#[tokio::test]
async fn a_large_answer_that_is_read_is_not_lost() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_11_25).await;
    let steps = json!([["progress", 1], ["flood", 64 * FLOOD_CHUNK.len()]]);
    let events = begin(&server, &session.call(steps)).await.events().await;
    let answer: Value = events.last().unwrap().message();
    assert!(answer["result"]["content"][0]["text"] == FLOOD_CHUNK.repeat(64), "the answer is not intact");
    // The oldest delivered events are removed: the id of the event before them is gone.
    let get = session.head("GET", &[("Last-Event-ID", "1-1")]);
    assert_eq!(server.connect().await.ask(&get).await.head.status, 400);
}

#[tokio::test]
async fn a_second_reader_takes_over_from_the_first() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_11_25).await;
    let mut first = begin(&server, &session.call(json!([["progress", 1], ["wait"], ["text", "done"]]))).await;
    first.event().await.unwrap();
    first.event().await.unwrap();
    let mut second = resume(&server, &session, "1-1").await;
    assert_eq!(first.event().await, None);
    server.host.release.cancel();
    assert_eq!(event_summary(session.revision, &second.events().await), "1-2 \"done\"\n");
}

#[tokio::test]
async fn streams_per_session_are_bounded() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_11_25).await;
    let call = |number: usize| session.call(json!([["wait"]])).of_id(number);
    let mut streams = Vec::new();
    for number in 0..16 {
        streams.push(begin(&server, &call(number)).await);
    }
    let refused = server.ask(&call(16)).await;
    assert_eq!(refused.summary(), "429 -32603 this session has too many open event streams");
    assert_eq!(refused.message()["id"], 16);
    server.host.release.cancel();
    for stream in &mut streams {
        stream.events().await;
    }
    begin(&server, &call(17)).await.events().await;
    // The oldest ended stream was removed.
    let get = session.head("GET", &[("Last-Event-ID", "1-0")]);
    assert_eq!(server.connect().await.ask(&get).await.head.status, 400);
}

#[tokio::test]
async fn a_cancelled_call_ends_its_stream_without_an_answer() {
    let server = Server::start().await;
    let session = server.session(Revision::V2025_06_18).await;
    let mut silent = begin(&server, &session.call(json!([["progress", 1], ["cancelled"]]))).await;
    silent.event().await.unwrap();
    let cancelled = Post::notification("notifications/cancelled", json!({"requestId": 1}));
    assert_eq!(server.ask(&cancelled.with("Mcp-Session-Id", &session.id)).await.head.status, 202);
    assert_eq!(silent.event().await, None);
    server.until_open_calls(0).await;
}
