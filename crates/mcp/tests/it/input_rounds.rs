//! Calls that ask their client and come again: what holds between the rounds, and what is refused.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_core::{AuthMethod, CallOrigin, Caller, Principal, TransportKind};
use tidegate_mcp::Revision;
use tokio::runtime::Builder;

use crate::client::{Client, ClientResult};
use tidegate_testkit::host::Host;

fn capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

/// A modern client that can answer everything.
fn client() -> Client {
    client_on(&Host::new())
}

fn client_on(host: &Host) -> Client {
    Client::with_capabilities(host, Revision::V2026_07_28, capabilities())
}

fn call(steps: Value) -> Value {
    json!({"name": "script", "arguments": {"steps": steps}})
}

fn input_params() -> Value {
    call(json!([["ask", {"who": {"form": "Who?"}}]]))
}

fn ann_answer() -> Value {
    json!({"who": {"action": "accept", "content": {"name": "Ann"}}})
}

/// The same request with answers and state.
fn retry_params(params: &Value, state: &str, answers: Value) -> Value {
    let mut params = params.clone();
    params["requestState"] = state.into();
    params["inputResponses"] = answers;
    params
}

/// What a response asks, and its state.
fn input_required(client_result: ClientResult) -> (Value, String) {
    let mut result = client_result.result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    assert!(result.get("content").is_none());
    (result["inputRequests"].take(), result["requestState"].as_str().unwrap().to_owned())
}

async fn state_of(client: &Client, params: &Value) -> String {
    input_required(client.send_request("tools/call", params.clone()).await).1
}

fn text(client_result: ClientResult) -> String {
    client_result.result()["content"][0]["text"].as_str().unwrap().to_owned()
}

const FOREIGN: &str = "error -32602: the requestState is not valid for this request; call again without it";

#[tokio::test]
async fn call_is_retried_with_answer() {
    let client = client();
    let (requests, state) = input_required(client.send_request("tools/call", input_params()).await);
    insta::assert_snapshot!(requests, @r#"{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}}"#);
    let client_result = client.send_request("tools/call", retry_params(&input_params(), &state, ann_answer())).await;
    assert_eq!(text(client_result), r#"{"who":{"name":"Ann"}}"#);
}

#[tokio::test]
async fn all_input_kinds_are_requested_together() {
    let client = client();
    let params = call(json!([["ask", {
        "form": {"form": "Who?"},
        "url": {"url": "https://example.test/pay"},
        "model": {"sampling": "Greet."},
        "folders": "roots",
    }]]));
    let (requests, state) = input_required(client.send_request("tools/call", params.clone()).await);
    for (key, method) in [
        ("form", "elicitation/create"),
        ("url", "elicitation/create"),
        ("model", "sampling/createMessage"),
        ("folders", "roots/list"),
    ] {
        assert_eq!(requests[key]["method"], method);
    }
    let answers = json!({
        "form": {"action": "decline"},
        "url": {"action": "accept"},
        "model": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}},
        "folders": {"roots": [{"uri": "file:///a"}]},
    });
    let message: Value =
        serde_json::from_str(&text(client.send_request("tools/call", retry_params(&params, &state, answers)).await))
            .unwrap();
    assert_eq!(message, json!({"folders": [{"uri": "file:///a"}], "form": "declined", "model": "Hello", "url": {}}));
}

#[tokio::test]
async fn each_round_remembers_those_before_it() {
    let client = client();
    let params = call(json!([
        ["ask", {"first": {"form": "First?"}}],
        ["ask", {"second": {"form": "Second?"}}],
        ["ask", {"third": {"form": "Third?"}}],
    ]));
    let (mut requests, mut state) = input_required(client.send_request("tools/call", params.clone()).await);
    // Whether a client repeats what it answered before is its own affair.
    for (round, repeats) in [("first", false), ("second", true), ("third", true)] {
        assert_eq!(requests.as_object().unwrap().keys().collect::<Vec<_>>(), [round]);
        let mut answers = json!({round: {"action": "accept", "content": {"name": round}}});
        if repeats {
            answers["first"] = json!({"action": "accept", "content": {"name": "changed"}});
        }
        let client_result = client.send_request("tools/call", retry_params(&params, &state, answers)).await;
        if round == "third" {
            let message = text(client_result);
            assert_eq!(message, r#"{"first":{"name":"first"}}{"second":{"name":"second"}}{"third":{"name":"third"}}"#);
            return;
        }
        (requests, state) = input_required(client_result);
    }
}

#[tokio::test]
async fn prompts_and_resources_request_input() {
    let client = client();
    let steps = json!([["ask", {"who": {"form": "Who?"}}]]);
    let encoded: String = steps.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
    let uri = format!("script://{encoded}");
    for (method, params) in [
        ("prompts/get", json!({"name": "decorated", "arguments": {"steps": steps.to_string()}})),
        ("resources/read", json!({"uri": uri})),
    ] {
        let (requests, state) = input_required(client.send_request(method, params.clone()).await);
        assert_eq!(requests["who"]["method"], "elicitation/create");
        let result = client.send_request(method, retry_params(&params, &state, ann_answer())).await.result();
        assert!(result.to_string().contains("Ann"), "{result}");
    }
}

#[tokio::test]
async fn requests_without_input_ignore_answers() {
    let client = client();
    for (method, mut params) in [
        ("tools/list", json!({})),
        (
            "completion/complete",
            json!({
                "ref": {"type": "ref/prompt", "name": "decorated"},
                "argument": {"name": "steps", "value": ""},
            }),
        ),
    ] {
        params["inputResponses"] = ann_answer();
        params["requestState"] = "none".into();
        let result = client.send_request(method, params).await.result();
        assert_eq!(result["resultType"], "complete");
    }
}

#[tokio::test]
async fn undeclared_capability_is_reported() {
    let host = Host::new();
    for (capabilities, step, required) in [
        (json!({}), json!({"a": {"form": "Who?"}}), r#"{"elicitation":{"form":{}}}"#),
        (json!({"elicitation": {}}), json!({"a": {"url": "https://a.test"}}), r#"{"elicitation":{"url":{}}}"#),
        (json!({"elicitation": {"url": {}}}), json!({"a": {"form": "Who?"}}), r#"{"elicitation":{"form":{}}}"#),
        (
            json!({"elicitation": {}}),
            json!({"a": {"form": "Who?"}, "b": "roots"}),
            r#"{"elicitation":{"form":{}},"roots":{}}"#,
        ),
        (json!({"roots": {}, "elicitation": {}}), json!({"a": {"sampling": "Hi"}}), r#"{"sampling":{}}"#),
        (json!({"sampling": true}), json!({"a": {"sampling": "Hi"}}), r#"{"sampling":{}}"#),
    ] {
        let client = Client::with_capabilities(&host, Revision::V2026_07_28, capabilities);
        let response = client.send_request("tools/call", call(json!([["ask", step]]))).await.response.unwrap();
        assert_eq!(response["error"]["code"], -32_021, "{response}");
        assert_eq!(response["error"]["data"]["requiredCapabilities"].to_string(), required);
    }
}

#[tokio::test]
async fn state_is_valid_once() {
    let client = client();
    let state = state_of(&client, &input_params()).await;
    let params = retry_params(&input_params(), &state, ann_answer());
    assert_eq!(text(client.send_request("tools/call", params.clone()).await), r#"{"who":{"name":"Ann"}}"#);
    let message = client.send_request("tools/call", params).await.text();
    assert_eq!(message, "error -32602: the requestState was used already; call again without it");
}

#[tokio::test(start_paused = true)]
async fn state_expires_after_ten_minutes() {
    let client = client();
    let (in_time, late) = (state_of(&client, &input_params()).await, state_of(&client, &input_params()).await);
    tokio::time::advance(Duration::from_millis(599_900)).await;
    assert_eq!(
        text(client.send_request("tools/call", retry_params(&input_params(), &in_time, ann_answer())).await),
        r#"{"who":{"name":"Ann"}}"#
    );
    tokio::time::advance(Duration::from_millis(200)).await;
    let message = client.send_request("tools/call", retry_params(&input_params(), &late, ann_answer())).await.text();
    assert_eq!(message, "error -32602: the requestState has expired; call again without it");
    // While the state is valid, a second use is reported; after that it has expired.
    let message = client.send_request("tools/call", retry_params(&input_params(), &in_time, ann_answer())).await.text();
    assert_eq!(message, "error -32602: the requestState has expired; call again without it");
}

#[tokio::test(start_paused = true)]
async fn states_that_were_used_are_bounded() {
    let client = client();
    let params = input_params();
    for _ in 0..2_000 {
        let state = state_of(&client, &params).await;
        client.send_request("tools/call", retry_params(&params, &state, ann_answer())).await.result();
    }
    let state = state_of(&client, &params).await;
    let message = client.send_request("tools/call", retry_params(&params, &state, ann_answer())).await.text();
    assert_eq!(
        message,
        "error -31000: too many input requests were answered by you recently; try again in a few minutes"
    );
    // Those that are over make room.
    tokio::time::advance(Duration::from_secs(600)).await;
    let state = state_of(&client, &params).await;
    assert_eq!(
        text(client.send_request("tools/call", retry_params(&params, &state, ann_answer())).await),
        r#"{"who":{"name":"Ann"}}"#
    );
}

#[tokio::test]
async fn state_is_bound_to_its_request() {
    let host = Host::new();
    let client = client_on(&host);
    let steps = json!([["ask", {"who": {"form": "Who?"}}]]);
    let state = state_of(&client, &input_params()).await;
    let swapped = [
        ("tools/call", json!({"name": "listing", "arguments": {"steps": steps}})),
        ("tools/call", call(json!([["ask", {"who": {"form": "Who?"}}], ["text", "more"]]))),
        ("tools/call", call(json!([]))),
        ("prompts/get", json!({"name": "script", "arguments": {"steps": steps}})),
        ("prompts/get", json!({"name": "decorated", "arguments": {"steps": steps.to_string()}})),
        ("resources/read", json!({"uri": "test://plain"})),
        ("resources/read", json!({"uri": "script"})),
        // The answer is the same for an entry that does not exist.
        ("tools/call", json!({"name": "nobody", "arguments": {"steps": steps}})),
    ];
    for (method, params) in swapped {
        assert_eq!(
            client.send_request(method, retry_params(&params, &state, ann_answer())).await.text(),
            FOREIGN,
            "{method} {params}"
        );
    }
    // None of that has used it up.
    assert_eq!(
        text(client.send_request("tools/call", retry_params(&input_params(), &state, ann_answer())).await),
        r#"{"who":{"name":"Ann"}}"#
    );
    // The state of a resource is none for a tool, the other way round.
    let uri = "script://%5B%5B%22ask%22%2C%7B%22who%22%3A%7B%22form%22%3A%22Who%22%7D%7D%5D%5D";
    let (_, state) = input_required(client.send_request("resources/read", json!({"uri": uri})).await);
    assert_eq!(
        client.send_request("tools/call", retry_params(&input_params(), &state, ann_answer())).await.text(),
        FOREIGN
    );
}

#[tokio::test]
async fn state_ignores_argument_order() {
    let client = client();
    let one = json!({"ask": 1, "b": {"c": 1.5, "d": [{"e": 1, "f": null}]}});
    let other = json!({"b": {"d": [{"f": null, "e": 1}], "c": 1.5}, "ask": 1});
    let changed = json!({"b": {"d": [{"f": null, "e": 1}], "c": 2.5}, "ask": 1});
    let params = |last: &Value| call(json!([["ask", {"who": {"form": "Who?"}}], ["meta", last]]));
    let state = state_of(&client, &params(&one)).await;
    let (other, changed) =
        (retry_params(&params(&other), &state, ann_answer()), retry_params(&params(&changed), &state, ann_answer()));
    assert_eq!(client.send_request("tools/call", changed).await.text(), FOREIGN);
    assert_eq!(text(client.send_request("tools/call", other).await), r#"{"who":{"name":"Ann"}}"#);
}

#[tokio::test]
async fn state_is_bound_to_its_caller() {
    let host = Host::new();
    let caller = |principal, peer: Option<&str>| {
        let origin =
            CallOrigin { transport: TransportKind::StreamableHttp, peer: peer.map(|peer| peer.parse().unwrap()) };
        Caller::new(principal, origin)
    };
    let holder = |subject: &str, proof| {
        std::sync::Arc::new(Principal::new(subject, proof, std::sync::Arc::new(tidegate_core::Grants::for_anonymous())))
    };
    let callers = [
        caller(holder("ann", AuthMethod::Key), Some("192.0.2.1")),
        caller(holder("ann", AuthMethod::Token), Some("192.0.2.1")),
        caller(holder("bob", AuthMethod::Key), Some("192.0.2.1")),
        caller(Principal::anonymous(), Some("192.0.2.1")),
        caller(Principal::anonymous(), Some("192.0.2.2")),
    ];
    let clients = callers.clone().map(|caller| {
        let mut client = client_on(&host);
        client.context.caller = caller;
        client
    });
    for (number, client) in clients.iter().enumerate() {
        let state = state_of(client, &input_params()).await;
        for (other, client) in clients.iter().enumerate().filter(|(other, _)| *other != number) {
            let message =
                client.send_request("tools/call", retry_params(&input_params(), &state, ann_answer())).await.text();
            assert_eq!(message, FOREIGN, "{number} gave it to {other}");
        }
        assert_eq!(
            text(client.send_request("tools/call", retry_params(&input_params(), &state, ann_answer())).await),
            r#"{"who":{"name":"Ann"}}"#
        );
    }
    // One with a key is the same wherever it comes from; another server knows nobody.
    let state = state_of(&clients[0], &input_params()).await;
    assert_eq!(
        client().send_request("tools/call", retry_params(&input_params(), &state, ann_answer())).await.text(),
        FOREIGN
    );
    let mut rewritten = client_on(&host);
    rewritten.context.caller = caller(holder("ann", AuthMethod::Key), Some("198.51.100.9"));
    assert!(
        rewritten
            .send_request("tools/call", retry_params(&input_params(), &state, ann_answer()))
            .await
            .text()
            .starts_with("result")
    );
}

/// A state that `update_status` changed is rejected as invalid.
fn check_rejected(change: impl FnOnce(String) -> String) {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let client = client();
        let state = state_of(&client, &input_params()).await;
        let changed = change(state.clone());
        if changed == state {
            return;
        }
        assert_eq!(
            client.send_request("tools/call", retry_params(&input_params(), &changed, ann_answer())).await.text(),
            FOREIGN,
            "{changed}"
        );
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rejects_modified_state(place in any::<prop::sample::Index>(), with in "[ -~]") {
        check_rejected(|state| {
            let place = place.index(state.len());
            format!("{}{with}{}", &state[..place], &state[place + 1..])
        });
    }

    #[test]
    fn rejects_truncated_or_extended_state(place in any::<prop::sample::Index>(), more in "[A-Za-z0-9_=-]{0,6}") {
        check_rejected(|state| format!("{}{more}", &state[..place.index(state.len())]));
        check_rejected(|state| format!("{state}{more}"));
    }
}

#[tokio::test]
async fn rejects_state_with_any_flipped_bit() {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let client = client();
    let state = URL_SAFE_NO_PAD.decode(state_of(&client, &input_params()).await).unwrap();
    for bit in 0..state.len() * 8 {
        let mut changed = state.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let changed = URL_SAFE_NO_PAD.encode(changed);
        assert_eq!(
            client.send_request("tools/call", retry_params(&input_params(), &changed, ann_answer())).await.text(),
            FOREIGN,
            "bit {bit}"
        );
    }
}
