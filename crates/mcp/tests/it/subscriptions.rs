//! `subscriptions/listen`: acknowledged first, only what was asked for, tagged, each change at least once, and an end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_core::{Access, AuthMethod, CallOrigin, Caller, Grants, Principal, TransportKind};
use tidegate_mcp::{ListenStream, Revision, RpcAnswer};
use tokio::time::timeout;

use crate::client::{Client, request};
use tidegate_testkit::host::{Host, WatchedResources};
use tidegate_testkit::schema::{check_notification, check_response};
use tidegate_testkit::wait::pass_time;

const MODERN: Revision = Revision::V2026_07_28;

/// Opens a stream under that id.
async fn open_stream(client: &Client, id: Value, notifications: Value) -> ListenStream {
    let message = client.message(id, "subscriptions/listen", json!({"notifications": notifications}));
    match client.service.answer(request(&message), &client.context).await {
        RpcAnswer::Listen(stream) => stream,
        RpcAnswer::Whole(message) => panic!("{}", String::from_utf8_lossy(&message.bytes)),
        RpcAnswer::NoResponse | RpcAnswer::Stream(_) => panic!("no stream of notifications"),
    }
}

/// The next notification that waits, checked, as `method of what`.
fn next(stream: &mut ListenStream) -> Option<String> {
    let notification: Value = serde_json::from_slice(&stream.feed().next_message()?).unwrap();
    check_notification(MODERN, &notification);
    let params = &notification["params"];
    assert!(params["_meta"].get("io.modelcontextprotocol/subscriptionId").is_some(), "{notification}");
    let method = notification["method"].as_str().unwrap().strip_prefix("notifications/").unwrap();
    let subject = params.get("uri").or(params.get("notifications"));
    Some(format!("{method} {}", subject.unwrap_or(&Value::Null)).trim_end_matches(" null").to_owned())
}

/// All that comes until it stays quiet.
async fn collect_messages(stream: &mut ListenStream, caller: &Caller) -> String {
    let mut message = String::new();
    loop {
        while let Some(line) = next(stream) {
            message.push_str(&format!("{line}\n"));
        }
        if timeout(Duration::from_secs(2), stream.feed().changed()).await.is_err() {
            return message;
        }
        stream.feed().update_caller(caller).await;
    }
}

/// The acknowledgement of a subscription.
async fn acknowledged(notifications: Value) -> String {
    let (host, _) = WatchedResources::with_host();
    let client = Client::for_host(&host, MODERN);
    collect_messages(&mut open_stream(&client, json!(1), notifications).await, &client.context.caller).await
}

#[tokio::test(start_paused = true)]
async fn acknowledgement_lists_accepted_filters() {
    insta::assert_snapshot!(acknowledged(json!({})).await, @"subscriptions/acknowledged {}");
    let expectation = json!({
        "toolsListChanged": true,
        "promptsListChanged": false,
        "someday": {"on": 1},
        "resourceSubscriptions": ["watched://rose", "nowhere://", "test://plain", "watched://rose"],
    });
    insta::assert_snapshot!(acknowledged(expectation).await, @r#"
    subscriptions/acknowledged {"toolsListChanged":true,"resourceSubscriptions":["test://plain","watched://rose"]}
    "#);
    insta::assert_snapshot!(acknowledged(json!({"resourceSubscriptions": ["nowhere://"]})).await, @r#"subscriptions/acknowledged {"resourceSubscriptions":[]}"#);
}

#[tokio::test]
async fn rejects_filters_of_wrong_types() {
    let client = Client::modern();
    let mut message = String::new();
    for params in [
        json!({}),
        json!({"notifications": null}),
        json!({"notifications": []}),
        json!({"notifications": "all"}),
        json!({"notifications": {"toolsListChanged": "yes"}}),
        json!({"notifications": {"promptsListChanged": null}}),
        json!({"notifications": {"resourceSubscriptions": null}}),
        json!({"notifications": {"resourceSubscriptions": "test://plain"}}),
        json!({"notifications": {"resourceSubscriptions": [1]}}),
        json!({"notifications": {"resourceSubscriptions": ["x".repeat(9_000)]}}),
        json!({"notifications": {"resourceSubscriptions": (0..1_001).map(|n| n.to_string()).collect::<Vec<_>>()}}),
        json!({"notifications": {"resourceSubscriptions": (10..70).map(|n| format!("{n}{}", "x".repeat(7_000))).collect::<Vec<_>>()}}),
    ] {
        message.push_str(&format!("{}\n", client.send_request("subscriptions/listen", params).await.text()));
    }
    insta::assert_snapshot!(message, @r#"
    error -32602: the params of subscriptions/listen are wrong: missing field `notifications` at line 1 column 114
    error -32602: the params of subscriptions/listen are wrong: invalid type: null, expected a map at line 1 column 21
    error -32602: the params of subscriptions/listen are wrong: invalid type: sequence, expected a map at line 1 column 17
    error -32602: the params of subscriptions/listen are wrong: invalid type: string "all", expected a map at line 1 column 22
    error -32602: params.notifications is wrong: invalid type: string "yes", expected a boolean
    error -32602: params.notifications is wrong: invalid type: null, expected a boolean
    error -32602: params.notifications is wrong: invalid type: null, expected a sequence
    error -32602: params.notifications is wrong: invalid type: string "test://plain", expected a sequence
    error -32602: params.notifications is wrong: invalid type: integer `1`, expected a string
    error -32602: params.notifications is wrong: the URI is 9000 bytes long; at most 8192
    error -32602: params.notifications is wrong: resourceSubscriptions names 1001 resources; at most 1000
    error -32602: params.notifications is wrong: resourceSubscriptions is 420120 bytes long; at most 409600
    "#);
}

#[tokio::test(start_paused = true)]
async fn subscriptions_of_all_streams_together_are_bounded() {
    let (host, _) = WatchedResources::with_host();
    let client = Client::for_host(&host, MODERN);
    let uris: Vec<String> = (0..1_000).map(|number| format!("watched://{number}")).collect();
    let expectation = json!({"resourceSubscriptions": uris});
    let mut streams = Vec::new();
    for id in 10..20 {
        streams.push(open_stream(&client, json!(id), expectation.clone()).await);
    }
    let one_more = json!({"notifications": {"resourceSubscriptions": ["test://plain"]}});
    let refused = client.send_request("subscriptions/listen", one_more.clone()).await.text();
    insta::assert_snapshot!(refused, @r#"error -31000: too many resource subscriptions; try again later {"kind":"rate_limited"}"#);
    streams.pop();
    assert!(client.send_request("subscriptions/listen", one_more).await.response.unwrap().get("result").is_some());
}

#[tokio::test(start_paused = true)]
async fn sends_only_subscribed_changes_once() {
    let (host, watched) = WatchedResources::with_host();
    let client = Client::for_host(&host, MODERN);
    let caller = &client.context.caller;
    let expectation =
        json!({"promptsListChanged": true, "resourceSubscriptions": ["watched://rose", "watched://lily"]});
    let mut stream = open_stream(&client, json!("s"), expectation).await;
    let mut lists =
        open_stream(&client, json!("l"), json!({"toolsListChanged": true, "resourcesListChanged": true})).await;
    assert!(collect_messages(&mut stream, caller).await.starts_with("subscriptions/acknowledged"));
    assert!(collect_messages(&mut lists, caller).await.starts_with("subscriptions/acknowledged"));
    // Nobody reads while it changes again and again.
    for _ in 0..5 {
        for bed in ["rose", "rose", "tulip"] {
            watched.change(bed);
        }
        pass_time(Duration::from_secs(1)).await;
    }
    insta::assert_snapshot!(collect_messages(&mut stream, caller).await, @r#"resources/updated "watched://rose""#);
    assert_eq!(collect_messages(&mut lists, caller).await, "");
    for _ in 0..3 {
        host.service.registry().swap(watched.snapshot(Access::default()));
    }
    insta::assert_snapshot!(collect_messages(&mut stream, caller).await, @r#"
    prompts/list_changed
    resources/updated "watched://lily"
    resources/updated "watched://rose"
    "#);
    insta::assert_snapshot!(collect_messages(&mut lists, caller).await, @r"
    tools/list_changed
    resources/list_changed
    ");
}

#[tokio::test(start_paused = true)]
async fn messages_carry_subscription_id() {
    let (host, resources) = WatchedResources::with_host();
    let client = Client::for_host(&host, MODERN);
    for id in ["7.0", "12345678901234567890123", "\"a \\u0022b\\u0022\"", "-1", "\"7\""] {
        let expectation = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://plain"]});
        let message = client.message(1, "subscriptions/listen", json!({"notifications": expectation})).to_string();
        let message = message.replacen("\"id\":1", &format!("\"id\":{id}"), 1);
        let Ok(tidegate_mcp::IncomingMessage::Request(request)) = tidegate_mcp::decode(message.as_bytes()) else {
            panic!()
        };
        let RpcAnswer::Listen(mut stream) = client.service.answer(request, &client.context).await else { panic!() };
        host.service.registry().swap(resources.snapshot(Access::default()));
        let mut received = vec![stream.feed().next_message().unwrap()];
        stream.feed().update_caller(&client.context.caller).await;
        received.extend(std::iter::from_fn(|| stream.feed().next_message()));
        received.push(stream.end().bytes);
        assert_eq!(received.len(), 4);
        for message in received {
            let message = std::str::from_utf8(&message).unwrap();
            assert!(message.contains(&format!("\"io.modelcontextprotocol/subscriptionId\":{id}}}")), "{message}");
        }
    }
}

#[tokio::test]
async fn stream_ends_with_result() {
    let client = Client::modern();
    let stream = open_stream(&client, json!("s"), json!({"toolsListChanged": true})).await;
    let in_flight = client.context.in_flight.clone().unwrap();
    assert_eq!(in_flight.len(), 1);
    let result: Value = serde_json::from_slice(&stream.end().bytes).unwrap();
    assert!(in_flight.is_empty(), "the id is free");
    check_response(MODERN, "subscriptions/listen", &result);
    insta::assert_snapshot!(result, @r#"{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","title":"Test","version":"1.2.3"},"io.modelcontextprotocol/subscriptionId":"s"}}}"#);
}

#[tokio::test]
async fn client_can_cancel_stream() {
    let client = Client::modern();
    let stream = open_stream(&client, json!("s"), json!({})).await;
    let cancelled = stream.cancellation();
    client.notify("notifications/cancelled", json!({"requestId": "t"}));
    assert!(!cancelled.is_cancelled());
    client.notify("notifications/cancelled", json!({"requestId": "s"}));
    assert!(cancelled.is_cancelled());
}

#[tokio::test]
async fn batch_rejects_listen() {
    let client = Client::of(Revision::V2025_03_26);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"notifications": {}, "_meta": meta},
    });
    let message = tidegate_mcp::decode(message.to_string().as_bytes());
    let answers = client.batch(vec![message]).await.unwrap().unwrap();
    insta::assert_snapshot!(std::str::from_utf8(&answers).unwrap(), @r#"[{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"a batch cannot contain subscriptions/listen"}}]"#);
}

#[tokio::test(start_paused = true)]
async fn revoked_listener_gets_no_resource_updates() {
    let (host, watched) = WatchedResources::with_host();
    let mut client = Client::for_host(&host, MODERN);
    let caller = caller("ann");
    client.context.caller = caller.clone();
    let expectation =
        json!({"resourcesListChanged": true, "resourceSubscriptions": ["watched://rose", "test://plain"]});
    let mut stream = open_stream(&client, json!(1), expectation).await;
    let hidden = Access { names: vec!["gardening".to_owned()], ..Access::default() };
    host.service.registry().swap(watched.snapshot(hidden));
    insta::assert_snapshot!(collect_messages(&mut stream, &caller).await, @r#"
    subscriptions/acknowledged {"resourcesListChanged":true,"resourceSubscriptions":["test://plain","watched://rose"]}
    resources/list_changed
    resources/updated "test://plain"
    "#);
    watched.change("rose");
    assert_eq!(collect_messages(&mut stream, &caller).await, "");
    let expectation = json!({"resourceSubscriptions": ["watched://rose", "watched:// "]});
    let message = collect_messages(&mut open_stream(&client, json!(2), expectation).await, &caller).await;
    insta::assert_snapshot!(message, @r#"subscriptions/acknowledged {"resourceSubscriptions":[]}"#);
}

fn caller(name: &str) -> Caller {
    let principal = Principal::new(name, AuthMethod::Key, Arc::new(Grants::for_anonymous()));
    Caller::new(Arc::new(principal), CallOrigin { transport: TransportKind::StreamableHttp, peer: None })
}

/// What happens in one history: a bed is dug, the registry swapped, time passes, or some is read.
#[derive(Debug, Clone)]
enum ListenStep {
    Dig(usize),
    Swap,
    Wait(u64),
    Read(usize),
}

const RESOURCE_NAMES: [&str; 4] = ["rose", "lily", "tulip", "aster"];
const LISTS: [&str; 3] = ["tools", "resources", "prompts"];

/// Runs `steps` for a client that subscribes to these lists and beds, and returns the changes that were not reported.
async fn run_steps(
    host: &Host,
    watched: &Arc<WatchedResources>,
    lists: [bool; 3],
    beds: [bool; 4],
    steps: Vec<ListenStep>,
) -> Vec<String> {
    let client = Client::for_host(host, MODERN);
    let caller = &client.context.caller;
    let of_bed = |bed: usize| format!("resources/updated \"watched://{}\"", RESOURCE_NAMES[bed]);
    let expected_beds: Vec<usize> = (0..4).filter(|bed| beds[*bed]).collect();
    let expected_lists: Vec<String> =
        (0..3).filter(|list| lists[*list]).map(|list| format!("{}/list_changed", LISTS[list])).collect();
    let uris: Vec<String> = expected_beds.iter().map(|bed| format!("watched://{}", RESOURCE_NAMES[*bed])).collect();
    let mut expectation = json!({"resourceSubscriptions": uris});
    for (list, is_requested) in LISTS.iter().zip(lists) {
        expectation[format!("{list}ListChanged")] = is_requested.into();
    }
    let mut stream = open_stream(&client, json!(1), expectation).await;
    assert!(next(&mut stream).unwrap().starts_with("subscriptions/acknowledged"));
    let (mut owed, mut possible) = (BTreeSet::new(), BTreeSet::new());
    let hear = |line: String, owed: &mut BTreeSet<String>, possible: &BTreeSet<String>| {
        assert!(possible.contains(&line), "{line}");
        owed.remove(&line);
    };
    for step in steps {
        let mut changed = Vec::new();
        match step {
            ListenStep::Dig(bed) => {
                watched.change(RESOURCE_NAMES[bed]);
                changed.extend(beds[bed].then(|| of_bed(bed)));
            }
            ListenStep::Swap => {
                host.service.registry().swap(watched.snapshot(Access::default()));
                changed.extend(expected_lists.iter().cloned().chain(expected_beds.iter().map(|bed| of_bed(*bed))));
            }
            ListenStep::Wait(milliseconds) => pass_time(Duration::from_millis(milliseconds)).await,
            ListenStep::Read(count) => {
                stream.feed().update_caller(caller).await;
                for line in std::iter::from_fn(|| next(&mut stream)).take(count) {
                    hear(line, &mut owed, &possible);
                }
            }
        }
        owed.extend(changed.iter().cloned());
        possible.extend(changed);
    }
    for line in collect_messages(&mut stream, caller).await.lines() {
        hear(line.to_owned(), &mut owed, &possible);
    }
    owed.into_iter().collect()
}

fn steps() -> impl Strategy<Value = Vec<ListenStep>> {
    let step = prop_oneof![
        4 => (0..4_usize).prop_map(ListenStep::Dig),
        1 => Just(ListenStep::Swap),
        3 => (0..900_u64).prop_map(ListenStep::Wait),
        3 => (1..4_usize).prop_map(ListenStep::Read),
    ];
    proptest::collection::vec(step, 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn listener_receives_exactly_subscribed_changes(
        lists in any::<[bool; 3]>(), beds in any::<[bool; 4]>(), steps in steps(),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let (host, resources) = WatchedResources::with_host();
        let missed = runtime.block_on(run_steps(&host, &resources, lists, beds, steps));
        prop_assert!(missed.is_empty(), "never told: {missed:?}");
    }
}
