//! Requests of the server on a pipe, and calls that are repeated with the answers.

use serde_json::json;
use tidegate_mcp::Revision;

use super::Pipe;
use tidegate_testkit::host::Host;
use tidegate_testkit::message_checker::{all_capabilities, elicitation_answer, elicitation_steps, script, text};

#[tokio::test]
async fn legacy_elicitation_during_a_call() {
    let mut pipe = Pipe::open(&Host::new());
    pipe.ledger.capabilities = all_capabilities();
    pipe.shake_hands(Revision::V2025_11_25).await;
    pipe.call(json!(1), elicitation_steps()).await;
    let question = pipe.hear().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    // Other requests are answered meanwhile, and unexpected answers are ignored.
    pipe.lives().await;
    pipe.line(elicitation_answer(&json!("nobody"), "Eve").as_bytes()).await;
    pipe.line(elicitation_answer(&question["id"], "Ann").as_bytes()).await;
    assert_eq!(text(&pipe.hear().await.unwrap()), r#"{"who":{"name":"Ann"}}"#);
    pipe.lives().await;
}

#[tokio::test]
async fn modern_elicitation_retries_with_the_answer() {
    let mut pipe = Pipe::open(&Host::new());
    pipe.ledger.capabilities = all_capabilities();
    pipe.call(json!(1), elicitation_steps()).await;
    let requested = pipe.hear().await.unwrap();
    assert_eq!(requested["result"]["resultType"], "input_required");
    let mut params = script(&elicitation_steps());
    params["requestState"] = requested["result"]["requestState"].clone();
    params["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "Ann"}}});
    pipe.send(json!(2), "tools/call", params).await;
    assert_eq!(text(&pipe.hear().await.unwrap()), r#"{"who":{"name":"Ann"}}"#);
}

#[tokio::test]
async fn disconnect_during_elicitation_leaks_nothing() {
    let host = Host::new();
    let mut pipe = Pipe::open(&host);
    pipe.ledger.capabilities = all_capabilities();
    pipe.shake_hands(Revision::V2025_06_18).await;
    pipe.call(json!(1), elicitation_steps()).await;
    assert_eq!(pipe.hear().await.unwrap()["method"], "elicitation/create");
    let registry = host.service.registry();
    assert_eq!(registry.jobs().open_count(), 1);
    drop(pipe);
    while registry.jobs().open_count() > 0 {
        tokio::task::yield_now().await;
    }
}
