//! Calls that ask their client and come again: what holds between the rounds, and what is refused.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_core::{Caller, Origin, Principal, Proof, TransportKind};
use tidegate_mcp::Revision;
use tokio::runtime::Builder;

use crate::client::{Client, Heard};
use crate::host::Host;

fn able() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

/// A modern client that can answer everything.
fn client() -> Client {
    client_on(&Host::new())
}

fn client_on(host: &Host) -> Client {
    Client::able(host, Revision::V2026_07_28, able())
}

fn call(steps: Value) -> Value {
    json!({"name": "script", "arguments": {"steps": steps}})
}

fn asks_who() -> Value {
    call(json!([["ask", {"who": {"form": "Who?"}}]]))
}

fn ann() -> Value {
    json!({"who": {"action": "accept", "content": {"name": "Ann"}}})
}

/// The same request with answers and state.
fn again(params: &Value, state: &str, answers: Value) -> Value {
    let mut params = params.clone();
    params["requestState"] = state.into();
    params["inputResponses"] = answers;
    params
}

/// What a response asks, and its state.
fn asked(heard: Heard) -> (Value, String) {
    let mut result = heard.result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    assert!(result.get("content").is_none());
    (result["inputRequests"].take(), result["requestState"].as_str().unwrap().to_owned())
}

async fn state_of(client: &Client, params: &Value) -> String {
    asked(client.ask("tools/call", params.clone()).await).1
}

fn text(heard: Heard) -> String {
    heard.result()["content"][0]["text"].as_str().unwrap().to_owned()
}

const FOREIGN: &str =
    "error -32602: the requestState is none that you were given for this request; call again without it";

#[tokio::test]
async fn a_call_asks_and_comes_again_with_the_answer() {
    let client = client();
    let (requests, state) = asked(client.ask("tools/call", asks_who()).await);
    insta::assert_snapshot!(requests, @r#"{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}}"#);
    let heard = client.ask("tools/call", again(&asks_who(), &state, ann())).await;
    assert_eq!(text(heard), r#"{"who":{"name":"Ann"}}"#);
}

#[tokio::test]
async fn every_kind_of_question_is_asked_at_once() {
    let client = client();
    let params = call(json!([["ask", {
        "form": {"form": "Who?"},
        "url": {"url": "https://example.test/pay"},
        "model": {"sampling": "Greet."},
        "folders": "roots",
    }]]));
    let (requests, state) = asked(client.ask("tools/call", params.clone()).await);
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
    let told: Value =
        serde_json::from_str(&text(client.ask("tools/call", again(&params, &state, answers)).await)).unwrap();
    assert_eq!(told, json!({"folders": [{"uri": "file:///a"}], "form": "declined", "model": "Hello", "url": {}}));
}

#[tokio::test]
async fn each_round_remembers_those_before_it() {
    let client = client();
    let params = call(json!([
        ["ask", {"first": {"form": "First?"}}],
        ["ask", {"second": {"form": "Second?"}}],
        ["ask", {"third": {"form": "Third?"}}],
    ]));
    let (mut requests, mut state) = asked(client.ask("tools/call", params.clone()).await);
    // Whether a client repeats what it answered before is its own affair.
    for (round, repeats) in [("first", false), ("second", true), ("third", true)] {
        assert_eq!(requests.as_object().unwrap().keys().collect::<Vec<_>>(), [round]);
        let mut answers = json!({round: {"action": "accept", "content": {"name": round}}});
        if repeats {
            answers["first"] = json!({"action": "accept", "content": {"name": "changed"}});
        }
        let heard = client.ask("tools/call", again(&params, &state, answers)).await;
        if round == "third" {
            let told = text(heard);
            assert_eq!(told, r#"{"first":{"name":"first"}}{"second":{"name":"second"}}{"third":{"name":"third"}}"#);
            return;
        }
        (requests, state) = asked(heard);
    }
}

#[tokio::test]
async fn prompts_and_resources_ask_too() {
    let client = client();
    let steps = json!([["ask", {"who": {"form": "Who?"}}]]);
    let encoded: String = steps.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
    let uri = format!("script://{encoded}");
    for (method, params) in [
        ("prompts/get", json!({"name": "decorated", "arguments": {"steps": steps.to_string()}})),
        ("resources/read", json!({"uri": uri})),
    ] {
        let (requests, state) = asked(client.ask(method, params.clone()).await);
        assert_eq!(requests["who"]["method"], "elicitation/create");
        let result = client.ask(method, again(&params, &state, ann())).await.result();
        assert!(result.to_string().contains("Ann"), "{result}");
    }
}

#[tokio::test]
async fn what_may_not_ask_ignores_answers() {
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
        params["inputResponses"] = ann();
        params["requestState"] = "none".into();
        let result = client.ask(method, params).await.result();
        assert_eq!(result["resultType"], "complete");
    }
}

#[tokio::test]
async fn what_the_client_did_not_declare_is_an_error_that_says_so() {
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
        let client = Client::able(&host, Revision::V2026_07_28, capabilities);
        let response = client.ask("tools/call", call(json!([["ask", step]]))).await.response.unwrap();
        assert_eq!(response["error"]["code"], -32_021, "{response}");
        assert_eq!(response["error"]["data"]["requiredCapabilities"].to_string(), required);
    }
}

#[tokio::test]
async fn a_state_holds_once() {
    let client = client();
    let state = state_of(&client, &asks_who()).await;
    let params = again(&asks_who(), &state, ann());
    assert_eq!(text(client.ask("tools/call", params.clone()).await), r#"{"who":{"name":"Ann"}}"#);
    let told = client.ask("tools/call", params).await.text();
    assert_eq!(told, "error -32602: the requestState was used already; call again without it");
}

#[tokio::test(start_paused = true)]
async fn a_state_holds_for_ten_minutes() {
    let client = client();
    let (in_time, late) = (state_of(&client, &asks_who()).await, state_of(&client, &asks_who()).await);
    tokio::time::advance(Duration::from_millis(599_900)).await;
    assert_eq!(text(client.ask("tools/call", again(&asks_who(), &in_time, ann())).await), r#"{"who":{"name":"Ann"}}"#);
    tokio::time::advance(Duration::from_millis(200)).await;
    let told = client.ask("tools/call", again(&asks_who(), &late, ann())).await.text();
    assert_eq!(told, "error -32602: the requestState has expired; call again without it");
    // That it was used is told as long as it would hold; after that it is over.
    let told = client.ask("tools/call", again(&asks_who(), &in_time, ann())).await.text();
    assert_eq!(told, "error -32602: the requestState has expired; call again without it");
}

#[tokio::test(start_paused = true)]
async fn states_that_were_used_are_bounded() {
    let client = client();
    let params = asks_who();
    for _ in 0..2_000 {
        let state = state_of(&client, &params).await;
        client.ask("tools/call", again(&params, &state, ann())).await.result();
    }
    let state = state_of(&client, &params).await;
    let told = client.ask("tools/call", again(&params, &state, ann())).await.text();
    assert_eq!(told, "error -31000: too many questions were answered by you lately; try again in a few minutes");
    // Those that are over make room.
    tokio::time::advance(Duration::from_secs(600)).await;
    let state = state_of(&client, &params).await;
    assert_eq!(text(client.ask("tools/call", again(&params, &state, ann())).await), r#"{"who":{"name":"Ann"}}"#);
}

#[tokio::test]
async fn a_state_holds_for_its_request_alone() {
    let host = Host::new();
    let client = client_on(&host);
    let steps = json!([["ask", {"who": {"form": "Who?"}}]]);
    let state = state_of(&client, &asks_who()).await;
    let swapped = [
        ("tools/call", json!({"name": "listing", "arguments": {"steps": steps}})),
        ("tools/call", call(json!([["ask", {"who": {"form": "Who?"}}], ["text", "more"]]))),
        ("tools/call", call(json!([]))),
        ("prompts/get", json!({"name": "script", "arguments": {"steps": steps}})),
        ("prompts/get", json!({"name": "decorated", "arguments": {"steps": steps.to_string()}})),
        ("resources/read", json!({"uri": "test://plain"})),
        ("resources/read", json!({"uri": "script"})),
        // What does not exist is told no other way.
        ("tools/call", json!({"name": "nobody", "arguments": {"steps": steps}})),
    ];
    for (method, params) in swapped {
        assert_eq!(client.ask(method, again(&params, &state, ann())).await.text(), FOREIGN, "{method} {params}");
    }
    // None of that has used it up.
    assert_eq!(text(client.ask("tools/call", again(&asks_who(), &state, ann())).await), r#"{"who":{"name":"Ann"}}"#);
    // The state of a resource is none for a tool, the other way round.
    let uri = "script://%5B%5B%22ask%22%2C%7B%22who%22%3A%7B%22form%22%3A%22Who%22%7D%7D%5D%5D";
    let (_, state) = asked(client.ask("resources/read", json!({"uri": uri})).await);
    assert_eq!(client.ask("tools/call", again(&asks_who(), &state, ann())).await.text(), FOREIGN);
}

#[tokio::test]
async fn a_state_holds_for_its_arguments_in_any_order() {
    let client = client();
    let one = json!({"ask": 1, "b": {"c": 1.5, "d": [{"e": 1, "f": null}]}});
    let other = json!({"b": {"d": [{"f": null, "e": 1}], "c": 1.5}, "ask": 1});
    let changed = json!({"b": {"d": [{"f": null, "e": 1}], "c": 2.5}, "ask": 1});
    let params = |last: &Value| call(json!([["ask", {"who": {"form": "Who?"}}], ["meta", last]]));
    let state = state_of(&client, &params(&one)).await;
    let (other, changed) = (again(&params(&other), &state, ann()), again(&params(&changed), &state, ann()));
    assert_eq!(client.ask("tools/call", changed).await.text(), FOREIGN);
    assert_eq!(text(client.ask("tools/call", other).await), r#"{"who":{"name":"Ann"}}"#);
}

#[tokio::test]
async fn a_state_holds_for_whom_it_was_given_to() {
    let host = Host::new();
    let caller = |principal, peer: Option<&str>| {
        let origin = Origin { transport: TransportKind::StreamableHttp, peer: peer.map(|peer| peer.parse().unwrap()) };
        Caller::new(principal, origin)
    };
    let holder = |subject: &str, proof| {
        std::sync::Arc::new(Principal::new(subject, proof, std::sync::Arc::new(tidegate_core::Grants::open())))
    };
    let callers = [
        caller(holder("ann", Proof::Key), Some("192.0.2.1")),
        caller(holder("ann", Proof::Token), Some("192.0.2.1")),
        caller(holder("bob", Proof::Key), Some("192.0.2.1")),
        caller(Principal::anonymous(), Some("192.0.2.1")),
        caller(Principal::anonymous(), Some("192.0.2.2")),
    ];
    let clients = callers.clone().map(|caller| {
        let mut client = client_on(&host);
        client.peer.caller = caller;
        client
    });
    for (number, client) in clients.iter().enumerate() {
        let state = state_of(client, &asks_who()).await;
        for (other, client) in clients.iter().enumerate().filter(|(other, _)| *other != number) {
            let told = client.ask("tools/call", again(&asks_who(), &state, ann())).await.text();
            assert_eq!(told, FOREIGN, "{number} gave it to {other}");
        }
        assert_eq!(
            text(client.ask("tools/call", again(&asks_who(), &state, ann())).await),
            r#"{"who":{"name":"Ann"}}"#
        );
    }
    // One with a key is the same wherever it comes from; another server knows nobody.
    let state = state_of(&clients[0], &asks_who()).await;
    assert_eq!(client().ask("tools/call", again(&asks_who(), &state, ann())).await.text(), FOREIGN);
    let mut moved = client_on(&host);
    moved.peer.caller = caller(holder("ann", Proof::Key), Some("198.51.100.9"));
    assert!(moved.ask("tools/call", again(&asks_who(), &state, ann())).await.text().starts_with("result"));
}

/// A state of one client, changed by `change`, is told to be none.
fn refused_when(change: impl FnOnce(String) -> String) {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let client = client();
        let state = state_of(&client, &asks_who()).await;
        let changed = change(state.clone());
        if changed == state {
            return;
        }
        assert_eq!(client.ask("tools/call", again(&asks_who(), &changed, ann())).await.text(), FOREIGN, "{changed}");
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_changed_state_is_none(place in any::<prop::sample::Index>(), with in "[ -~]") {
        refused_when(|state| {
            let place = place.index(state.len());
            format!("{}{with}{}", &state[..place], &state[place + 1..])
        });
    }

    #[test]
    fn a_cut_or_longer_state_is_none(place in any::<prop::sample::Index>(), more in "[A-Za-z0-9_=-]{0,6}") {
        refused_when(|state| format!("{}{more}", &state[..place.index(state.len())]));
        refused_when(|state| format!("{state}{more}"));
    }
}

#[tokio::test]
async fn each_bit_of_a_state_counts() {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let client = client();
    let state = URL_SAFE_NO_PAD.decode(state_of(&client, &asks_who()).await).unwrap();
    for bit in 0..state.len() * 8 {
        let mut changed = state.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let changed = URL_SAFE_NO_PAD.encode(changed);
        assert_eq!(client.ask("tools/call", again(&asks_who(), &changed, ann())).await.text(), FOREIGN, "bit {bit}");
    }
}
