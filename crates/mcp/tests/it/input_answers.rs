//! What a client brings as answers when its call comes again: those that count, and everything else.

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use crate::client::Client;
use tidegate_testkit::host::Host;

fn client() -> Client {
    Client::with_capabilities(
        &Host::new(),
        Revision::V2026_07_28,
        json!({"elicitation": {}, "sampling": {}, "roots": {}}),
    )
}

fn call(step: Value) -> Value {
    json!({"name": "script", "arguments": {"steps": [["ask", step]]}})
}

fn input_params() -> Value {
    call(json!({"who": {"form": "Who?"}}))
}

fn accept(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// One round: `answers` come to what the first call asked.
async fn retry_with_answers(client: &Client, params: &Value, answers: Value) -> String {
    let first = client.send_request("tools/call", params.clone()).await.result();
    let mut params = params.clone();
    params["requestState"] = first["requestState"].clone();
    params["inputResponses"] = answers;
    let message = client.send_request("tools/call", params).await.text();
    // States differ each time.
    message.split(",\"requestState\"").next().unwrap().to_owned()
}

#[tokio::test]
async fn ignores_unsolicited_answers() {
    let client = client();
    let mut params = input_params();
    params["inputResponses"] = json!({"who": accept("Ann")});
    let rendered = client.send_request("tools/call", params).await.result();
    assert_eq!(rendered["resultType"], "input_required");
    let message = rendered["inputRequests"]["who"]["params"]["message"].as_str().unwrap();
    assert_eq!(message, "Who?\n(The last answer was invalid: it was sent before it was requested)");
    // Beside those that were asked for they are passed over, whatever they are.
    let answers = json!({"who": accept("Ann"), "other": accept("Bob"), "nonsense": 7, "wrong": {"action": "shout"}});
    assert_eq!(retry_with_answers(&client, &input_params(), answers).await, ANN);
}

const ANN: &str = r#"result {"content":[{"type":"text","text":"{\"who\":{\"name\":\"Ann\"}}"}],"isError":false}"#;

#[tokio::test]
async fn handler_can_allow_unsolicited_answers() {
    let client = client();
    let mut params = call(json!({"who": {"lax": "Who?"}}));
    params["inputResponses"] = json!({"who": accept("Ann")});
    assert_eq!(client.send_request("tools/call", params).await.text(), ANN);
}

#[tokio::test]
async fn missing_answer_is_requested_again() {
    let client = client();
    for answers in [json!({}), json!({"other": accept("Ann")}), Value::Null] {
        let rendered = retry_with_answers(&client, &input_params(), answers).await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(rendered, @r#"result {"inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}}"#);
        }
    }
    // Of two, the one that is missing alone.
    let both = call(json!({"who": {"form": "Who?"}, "where": {"form": "Where?"}}));
    let rendered = retry_with_answers(&client, &both, json!({"who": accept("Ann")})).await;
    assert!(rendered.starts_with(r#"result {"inputRequests":{"where":"#), "{rendered}");
}

#[tokio::test]
async fn wrong_answer_is_requested_again() {
    let client = client();
    for (answer, wrong) in [
        (json!({"roots": []}), "it answers a different kind of request"),
        (
            json!({"role": "assistant", "content": {"type": "text", "text": "Ann"}}),
            "it answers a different kind of request",
        ),
        (json!({"action": "accept"}), "name: is required"),
        (json!({"action": "accept", "content": {"name": ["Ann"]}}), "is not of type \"string\""),
    ] {
        let message = retry_with_answers(&client, &input_params(), json!({"who": answer})).await;
        assert!(message.starts_with("result {\"inputRequests\":{\"who\""), "{message}");
        assert!(message.replace("\\\"", "\"").contains(wrong), "{message}");
    }
}

#[tokio::test]
async fn malformed_answer_is_rejected_and_can_be_corrected() {
    let client = client();
    for (answer, wrong) in [
        (json!(7), "it must be an object"),
        (json!({}), "it must have an action, roots, or role and content"),
        (json!({"action": "shout"}), "its action must be accept, decline or cancel"),
        (json!({"action": "accept", "content": [1]}), "its content must be an object"),
        (json!({"roots": {}}), "its roots must be a list"),
    ] {
        let message = retry_with_answers(&client, &input_params(), json!({"who": answer})).await;
        assert_eq!(message, format!("error -32602: inputResponses[\"who\"] is wrong: {wrong}"));
    }
    // The state is still valid: a client with an invalid answer need not begin again.
    let state = client.send_request("tools/call", input_params()).await.result()["requestState"].clone();
    let mut params = input_params();
    params["requestState"] = state;
    params["inputResponses"] = json!({"who": 7});
    assert!(client.send_request("tools/call", params.clone()).await.text().starts_with("error -32602"));
    params["inputResponses"] = json!({"who": accept("Ann")});
    assert_eq!(client.send_request("tools/call", params).await.text(), ANN);
}

#[tokio::test]
async fn rejects_malformed_input_responses() {
    let client = client();
    for (name, value) in [
        ("inputResponses", json!(7)),
        ("inputResponses", json!([accept("Ann")])),
        ("inputResponses", json!("who")),
        ("requestState", json!(7)),
        ("requestState", json!({})),
    ] {
        let mut params = input_params();
        params[name] = value;
        let message = client.send_request("tools/call", params).await.text();
        assert!(message.starts_with("error -32602: "), "{message}");
    }
    // Null is as good as nothing.
    let mut params = input_params();
    (params["inputResponses"], params["requestState"]) = (Value::Null, Value::Null);
    assert_eq!(client.send_request("tools/call", params).await.result()["resultType"], "input_required");
}

#[tokio::test]
async fn answers_are_bounded_in_number_and_length() {
    let client = client();
    let many = |count: usize| -> Value { (0..count).map(|number| (number.to_string(), accept("x"))).collect() };
    let mut params = input_params();
    params["inputResponses"] = many(101);
    let message = client.send_request("tools/call", params.clone()).await.text();
    assert_eq!(message, "error -32602: inputResponses holds more than 100 answers");
    params["inputResponses"] = many(100);
    assert_eq!(client.send_request("tools/call", params).await.result()["resultType"], "input_required");

    // An answer that is used at once may be long; one that must travel may not.
    let long = "x".repeat(1024 * 1024);
    assert!(retry_with_answers(&client, &input_params(), json!({"who": accept(&long)})).await.contains(&long));
    let both = call(json!({"who": {"form": "Who?"}, "where": {"form": "Where?"}}));
    let message = retry_with_answers(&client, &both, json!({"who": accept(&long)})).await;
    assert_eq!(message, "error -32602: the answers are longer than 262144 bytes");
    let mut params = input_params();
    params["inputResponses"] = json!({"unasked": accept(&long)});
    let message = client.send_request("tools/call", params).await.text();
    assert_eq!(message, "error -32602: the answers are longer than 262144 bytes");
    let mut params = input_params();
    params["requestState"] = "A".repeat(1024 * 1024).into();
    assert!(
        client
            .send_request("tools/call", params)
            .await
            .text()
            .starts_with("error -32602: the requestState is not valid for this request")
    );
}

#[tokio::test]
async fn answer_counts_only_for_its_request() {
    // The same request may ask something else under the same key by the time it comes again.
    let client = client();
    let requested = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(2));
    let rows = requested.clone();
    let handler = tidegate_runtime::handler_fn(move |call| {
        let count = rows.fetch_add(1, std::sync::atomic::Ordering::Relaxed) / 3 * 3;
        async move {
            let schema = json!({"type": "object", "properties": {}});
            let question = tidegate_core::InputRequest::form(format!("Delete {count} rows?"), schema);
            call.ask("confirm", question).await?;
            Ok(tidegate_runtime::Answer::text(format!("deleted {count}")))
        }
    });
    let host = Host::with_entries(tidegate_runtime::event::EventDispatcher::default(), |entries| {
        entries.tool(tidegate_runtime::Tool::new("delete", "", handler))
    });
    let client = Client { service: host.service.clone(), ..client };
    let params = json!({"name": "delete"});
    let yes = json!({"confirm": {"action": "accept", "content": {}}});
    // Zero rows when it is asked, three when the yes comes.
    let message = retry_with_answers(&client, &params, yes.clone()).await;
    assert!(
        message.contains("Delete 3 rows?\\n(The last answer was invalid: it answers a different request)"),
        "{message}"
    );
    let message = retry_with_answers(&client, &params, yes).await;
    assert!(message.contains("deleted 3"), "{message}");
}
