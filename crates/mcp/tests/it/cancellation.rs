//! `notifications/cancelled`: silence after it; and the ids of open requests.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_mcp::{ResponseFrame, Revision, RpcAnswer};
use tidegate_runtime::JobState;

use crate::client::{Client, collect_answer, request};
use tidegate_testkit::host::Host;
use tidegate_testkit::wait::{pass_time, settle};

/// A call of `script` with `id`, begun on a task of its own.
fn begin(client: &Arc<Client>, id: Value, steps: Value) -> tokio::task::JoinHandle<String> {
    let message = client.message(id, "tools/call", json!({"name": "script", "arguments": {"steps": steps}}));
    let client = client.clone();
    tokio::spawn(async move { client.send(&message).await.text() })
}

fn states(client: &Client) -> Vec<JobState> {
    client.service.registry().jobs().list(&client.context.caller).iter().map(|job| job.state).collect()
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_never_answered() {
    for revision in [Revision::V2024_11_05, Revision::V2026_07_28] {
        let client = Arc::new(Client::of(revision));
        let call = begin(&client, json!("a"), json!([["wait"]]));
        settle().await;
        assert_eq!(states(&client), [JobState::Running]);
        client.notify("notifications/cancelled", json!({"requestId": "a", "reason": "enough"}));
        assert_eq!(call.await.unwrap(), "silence");
        pass_time(std::time::Duration::from_secs(3)).await;
        assert_eq!(states(&client), [JobState::Failed(tidegate_core::ErrorKind::Cancelled)]);
        assert!(client.context.in_flight.as_ref().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_has_begun_is_not_completed() {
    let client = Client::of(Revision::V2025_11_25);
    let steps = json!([["text", "rows"], ["cancelled"], ["text", "more"]]);
    let message = client.message(7, "tools/call", json!({"name": "script", "arguments": {"steps": steps}}));
    let RpcAnswer::Stream(mut stream) = client.service.answer(request(&message), &client.context).await else {
        panic!()
    };
    assert!(matches!(stream.next().await, Some(ResponseFrame::ResponseBytes(_))));
    client.notify("notifications/cancelled", json!({"requestId": 7}));
    assert!(stream.next().await.is_none());
    assert!(!stream.is_complete());
    assert!(collect_answer(RpcAnswer::Stream(stream)).await.response.is_none());
}

#[tokio::test(start_paused = true)]
async fn only_the_request_of_that_very_id_is_cancelled() {
    let host = Host::new();
    let client = Arc::new(Client::for_host(&host, Revision::V2025_11_25));
    let another = Arc::new(Client::for_host(&host, Revision::V2025_11_25));
    let calls = [json!(1), json!("1"), json!(2)].map(|id| begin(&client, id, json!([["wait"], ["text", "done"]])));
    let theirs = begin(&another, json!(1), json!([["wait"], ["text", "done"]]));
    settle().await;
    client.notify("notifications/cancelled", json!({"requestId": 1}));
    for nonsense in [json!({}), json!({"requestId": null}), json!({"requestId": [2]}), json!({"requestId": "2"})] {
        client.notify("notifications/cancelled", nonsense);
    }
    settle().await;
    host.release.cancel();
    let mut answers = Vec::new();
    for call in calls.into_iter().chain([theirs]) {
        answers.push(call.await.unwrap());
    }
    assert_eq!(answers[0], "silence");
    assert!(answers[1..].iter().all(|answer| answer.starts_with("result ")), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_late_cancellation_changes_nothing() {
    let client = Arc::new(Client::modern());
    assert!(begin(&client, json!(1), json!([])).await.unwrap().starts_with("result "));
    client.notify("notifications/cancelled", json!({"requestId": 1}));
    assert!(begin(&client, json!(1), json!([])).await.unwrap().starts_with("result "), "the id is free again");
}

#[tokio::test(start_paused = true)]
async fn duplicate_id_is_rejected_and_request_continues() {
    let host = Host::new();
    let client = Arc::new(Client::for_host(&host, Revision::V2026_07_28));
    let first = begin(&client, json!("x"), json!([["wait"], ["text", "first"]]));
    settle().await;
    for method in ["tools/list", "ping"] {
        let text = client.send(&client.message("x", method, json!({}))).await.text();
        assert_eq!(text, "error -32600: a request with the id \"x\" is open already");
    }
    host.release.cancel();
    assert!(first.await.unwrap().contains("first"));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_cancels_its_call_and_frees_its_id() {
    let client = Client::of(Revision::V2025_11_25);
    let meta = json!({"progressToken": 1});
    let params = json!({"name": "script", "arguments": {"steps": [["cancelled"]]}, "_meta": meta});
    let message = client.message(1, "tools/call", params);
    let RpcAnswer::Stream(stream) = client.service.answer(request(&message), &client.context).await else { panic!() };
    settle().await;
    assert_eq!(client.context.in_flight.as_ref().unwrap().len(), 1);
    drop(stream);
    settle().await;
    assert!(client.context.in_flight.as_ref().unwrap().is_empty());
    assert_eq!(client.service.registry().jobs().open_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_an_operator_cancelled_is_answered() {
    let client = Arc::new(Client::modern());
    let call = begin(&client, json!(1), json!([["text", "rows"], ["cancelled"], ["text", "more"]]));
    settle().await;
    client.service.registry().jobs().cancel_all();
    let text = call.await.unwrap();
    insta::assert_snapshot!(text, @r#"result {"content":[{"type":"text","text":"rows"},{"type":"text","text":"the call was cancelled"}],"isError":true}"#);
}
