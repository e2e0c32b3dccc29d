//! Quiet streams: comments keep them open, and never occur within an event.

use std::time::Duration;

use axum::response::Response;
use futures::StreamExt;
use serde_json::{Value, json};
use tidegate_transport::http::HttpOptions;

use super::in_process::InProcessRouter;
use super::request::Post;
use tidegate_testkit::wait::pass_time;

/// Reads the stream to its end while the call is released after 50 s. Returns the number of comments before the response, and
/// the text of the response.
async fn check(in_process_router: &InProcessRouter, response: Response) -> (usize, String) {
    let release = in_process_router.host.release.clone();
    tokio::spawn(async move {
        pass_time(Duration::from_secs(50)).await;
        release.cancel();
    });
    let mut stream = response.into_body().into_data_stream();
    let mut text = String::new();
    while let Some(bytes) = stream.next().await {
        text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
    }
    let comments = text.split("\n\n").take_while(|event| !event.contains("\"result\"")).filter(|event| *event == ":");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).find(|data| data.contains("\"result\""));
    let message: Value = serde_json::from_str(data.unwrap()).unwrap();
    (comments.count(), message["result"]["content"][0]["text"].as_str().unwrap().to_owned())
}

async fn both(steps: Value) -> [(usize, String); 2] {
    let in_process_router = InProcessRouter::new(HttpOptions::default());
    let session = in_process_router.session().await;
    let legacy = check(&in_process_router, in_process_router.ask(&session.call(steps.clone())).await).await;
    let in_process_router = InProcessRouter::new(HttpOptions::default());
    let modern = check(&in_process_router, in_process_router.ask(&Post::script_with_progress(steps)).await).await;
    [legacy, modern]
}

#[tokio::test(start_paused = true)]
async fn idle_stream_gets_keep_alives() {
    let expected = (3, "done".to_owned());
    assert_eq!(both(json!([["progress", 1], ["wait"], ["text", "done"]])).await, [expected.clone(), expected]);
}

#[tokio::test(start_paused = true)]
async fn no_keep_alive_within_an_event() {
    let expected = (0, "first, last".to_owned());
    assert_eq!(both(json!([["text", "first"], ["wait"], ["text", ", last"]])).await, [expected.clone(), expected]);
}
