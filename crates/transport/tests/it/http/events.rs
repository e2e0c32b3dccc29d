//! Modern event streams: notifications, then the response, then the end; a client that disconnects cancels the call.

use serde_json::json;
use tidegate_core::{CallOrigin, Caller, Principal, TransportKind};
use tidegate_runtime::JobState;

use super::Server;
use super::request::Post;
use tidegate_testkit::schema::{check_notification, check_response};

#[tokio::test]
async fn progress_comes_before_the_response_and_nothing_after_it() {
    let server = Server::start().await;
    let steps = json!([["progress", 1, 2, "half"], ["progress", 2], ["text", "do"], ["text", "ne"], ["progress", 3]]);
    let post = Post::script_with_progress(steps);
    let mut connection = server.connect().await;
    connection.send(&post.bytes()).await;
    let head = connection.head().await;
    assert_eq!(head.status, 200);
    assert!(head.is_event_stream() && head.is_chunked());
    let events = connection.events().await;
    assert!(events.iter().all(|event| event.id.is_none()), "modern streams cannot be resumed");
    let messages: Vec<_> = events.iter().map(|event| event.message()).collect();
    let (response, news) = messages.split_last().unwrap();
    news.iter().for_each(|message| check_notification(post.revision, message));
    check_response(post.revision, &post.method, response);
    let rendered: Vec<_> = news.iter().map(|message| message["params"]["progress"].as_f64().unwrap()).collect();
    assert_eq!(rendered, [1.0, 2.0]);
    assert_eq!(response["result"]["content"][0]["text"], "done");
    // The connection stays usable after the stream.
    assert_eq!(connection.ask(&Post::modern("tools/list", json!({})).bytes()).await.summary(), "200");
}

#[tokio::test]
async fn notifications_are_sent_during_the_call() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let steps = json!([["progress", 1], ["wait"], ["text", "done"]]);
    connection.send(&Post::script_with_progress(steps).bytes()).await;
    connection.head().await;
    assert_eq!(connection.event().await.unwrap().message()["params"]["progress"], 1.0);
    assert_eq!(server.open_calls(), 1);
    server.host.release.cancel();
    assert!(connection.event().await.unwrap().message().get("result").is_some());
    assert_eq!(connection.event().await, None);
}

#[tokio::test]
async fn streams_only_when_accepted_and_requested() {
    let server = Server::start().await;
    let steps = json!([["progress", 1], ["log", "error", "trouble"], ["text", "done"]]);
    let level = json!({"io.modelcontextprotocol/logLevel": "error"});
    let logging = Post::modern("tools/call", json!({"name": "script", "arguments": {"steps": steps}, "_meta": level}));
    for (post, is_stream) in [
        (Post::script(steps.clone()), false),
        (Post::script_with_progress(steps.clone()), true),
        (Post::script_with_progress(steps.clone()).with("Accept", "application/json"), false),
        (Post::script_with_progress(steps.clone()).without("Accept"), false),
        (
            Post::script_with_progress(steps.clone())
                .with("Accept", "application/json")
                .and("Accept", "text/event-stream"),
            true,
        ),
        (logging, true),
        (Post::modern("tools/list", json!({"_meta": {"progressToken": 1}})), false),
    ] {
        let mut connection = server.connect().await;
        connection.send(&post.bytes()).await;
        assert_eq!(connection.head().await.is_event_stream(), is_stream, "{post:?}");
    }
}

#[tokio::test]
async fn a_client_that_closes_its_stream_cancels_the_call() {
    let server = Server::start().await;
    // After notifications, within a response, and before the first event.
    let waiting = json!([["cancelled"]]);
    for (post, has_head) in [
        (Post::script_with_progress(waiting.clone()), true),
        (Post::script(json!([["flood", 500_000], ["cancelled"]])), true),
        (Post::script(waiting), false),
    ] {
        let mut connection = server.connect().await;
        connection.send(&post.bytes()).await;
        server.until_open_calls(1).await;
        if has_head {
            connection.head().await;
        }
        drop(connection);
        server.until_open_calls(0).await;
    }
    let peer = Some(std::net::Ipv4Addr::LOCALHOST.into());
    let origin = CallOrigin { transport: TransportKind::StreamableHttp, peer };
    let caller = Caller::new(Principal::anonymous(), origin);
    let jobs = server.host.service.registry().jobs().list(&caller);
    assert_eq!(jobs.len(), 3);
    assert!(jobs.iter().all(|job| job.state != JobState::Running));
}

#[tokio::test]
async fn a_failure_in_the_stream_is_its_response() {
    let server = Server::start().await;
    for steps in
        [json!([["fail", "gone"]]), json!([["progress", 1], ["text", "rows"], ["fail", "gone"]]), json!([["panic"]])]
    {
        let post = Post::script_with_progress(steps);
        let mut connection = server.connect().await;
        connection.send(&post.bytes()).await;
        connection.head().await;
        let events = connection.events().await;
        let response = events.last().unwrap().message();
        check_response(post.revision, &post.method, &response);
        assert_eq!(response["result"]["isError"], true);
    }
}
