//! Tools of kind `http` with `confirm` or `ask`: no request is sent before the person agrees.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::{Access, CallLimits, InputAnswer};
use tidegate_runtime::{Registry, ToolAnnotations};
use tidegate_tools::declared::{
    AllowedHosts, DeclarationProblem, DeclaredInput, DeclaredTool, FixedOutput, HttpClient, HttpDefinition, ScalarType,
    TextTemplate,
};

use super::conversation::{ElicitationMode, call_with_forms, consent_answer, filled_form, run_conversation};
use super::recording_database::{elicited_input, input, node, registry};
use crate::declared_http::test_server::{TestServer, json_response};

/// Posts a refund to `test_server` after the confirmation to `confirm`.
fn declared_tool(server: &TestServer, confirm: &str) -> DeclaredTool<HttpDefinition> {
    let default = DeclaredInput { default: Some(json!("EUR")), ..input("currency", ScalarType::String, json!({})) };
    DeclaredTool {
        name: "refund".to_owned(),
        title: None,
        description: "Pays money back.".to_owned(),
        annotations: ToolAnnotations::default(),
        action: HttpDefinition {
            method: "POST".to_owned(),
            url: server.url("/orders/{{order}}/refunds"),
            body: Some(json!({"amount": "{{amount}}", "currency": "{{currency}}"})),
            ..HttpDefinition::default()
        },
        inputs: vec![
            elicited_input("amount", ScalarType::Number, json!({"minimum": 1}), "How much?"),
            default,
            elicited_input("order", ScalarType::String, json!({"minLength": 1}), "Which order?"),
        ],
        output: FixedOutput::default(),
        confirm: Some(TextTemplate::parse(confirm).unwrap()),
        access: Access::default(),
        limits: CallLimits::default(),
        cache: None,
    }
}

fn registry_offering(server: &TestServer, confirm: &str) -> Result<Arc<Registry>, Vec<DeclarationProblem>> {
    let (services, _) = node();
    let hosts = Arc::new(AllowedHosts::parse(&[server.host()]).unwrap());
    let client = HttpClient::new(hosts, "1.2.3").unwrap();
    Ok(registry(&services, declared_tool(server, confirm).prepare(&services, &client)?))
}

/// The conversation, and the first lines and bodies of the requests.
async fn check(arguments: Value, answers: &[InputAnswer]) -> String {
    let mut message = Vec::new();
    for way in [ElicitationMode::Rounds, ElicitationMode::Live] {
        let mut server = TestServer::respond_with(json_response(r#"[{"refund":1}]"#)).await;
        let registry = registry_offering(&server, "Refund {{amount}} {{currency}} to order {{order}}?").unwrap();
        let text = run_conversation(&registry, call_with_forms("refund", arguments.clone()), way, answers).await;
        let ends = |request: &String| [request.lines().next(), request.lines().last()].map(Option::unwrap).join(" … ");
        let sent: Vec<String> = server.received_requests().iter().map(ends).collect();
        message.push(format!("{text}\nsent: {sent:?}"));
    }
    assert_eq!(message[0], message[1]);
    message.swap_remove(0)
}

#[tokio::test]
async fn a_request_is_sent_once_and_after_consent() {
    let text = check(json!({"amount": 40}), &[filled_form(json!({"order": "A 17"})), consent_answer()]).await;
    insta::assert_snapshot!(text, @r#"
    asked: Which order?
      {"order":{"type":"string","minLength":1,"title":"Which order?"}}
    asked: Refund 40 "EUR" to order "A 17"?
      {"confirm":{"type":"boolean","title":"Yes, do it"}}
    answer: [{"refund":1}]
    sent: ["POST /orders/A%2017/refunds HTTP/1.1 … {\"amount\":40,\"currency\":\"EUR\"}"]
    "#);
}

#[tokio::test]
async fn no_request_is_sent_without_consent() {
    let given = json!({"amount": 40, "order": "A-17", "currency": "USD"});
    for answer in [filled_form(json!({"confirm": false})), InputAnswer::Declined, InputAnswer::Cancelled] {
        let text = check(given.clone(), &[answer]).await;
        assert!(text.contains("Refund 40 \"USD\" to order \"A-17\"?"), "{text}");
        assert!(text.contains("forbidden: nothing was done") && text.ends_with("sent: []"), "{text}");
    }
    let text = check(given, &[]).await;
    assert!(text.ends_with("(no answer)\nsent: []"), "{text}");
}

#[tokio::test]
async fn a_client_without_forms_sends_nothing() {
    let mut server = TestServer::respond_with(json_response("[]")).await;
    let registry = registry_offering(&server, "Refund?").unwrap();
    let given = crate::fake::call_tool(&registry, "refund", json!({"amount": 40, "order": "A-17"})).await;
    assert!(given.starts_with("incapable: "), "{given}");
    let missing = crate::fake::call_tool(&registry, "refund", json!({})).await;
    insta::assert_snapshot!(missing, @r#"
    invalid_arguments: arguments are missing:
    - amount: is missing, and your client does not support elicitation: How much?
    - order: is missing, and your client does not support elicitation: Which order?
    Pass them, or call from a client that supports elicitation.
    "#);
    assert!(server.received_requests().is_empty());
}

#[tokio::test]
async fn rejects_unknown_names_in_confirm() {
    let server = TestServer::respond_with(json_response("[]")).await;
    let Err(problems) = registry_offering(&server, "Refund {{sum}}?") else { panic!("there is no sum") };
    insta::assert_snapshot!(format!("{}: {}", problems[0].path, problems[0].error), @r#"
    confirm: {{sum}} is not declared under input
    Valid choices: amount, currency, order
    "#);
}
