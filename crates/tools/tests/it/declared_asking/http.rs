//! Tools of kind `http` that ask: no request leaves before the person agreed.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::{Access, CallLimits, InputAnswer, Registry, ToolAnnotations};
use tidegate_tools::declared::{
    AllowedHosts, DeclaredHttpTool, HttpClient, HttpDefinition, Input, Problem, Scalar, TextTemplate,
};

use super::ledger::{asked, input, node, registry};
use super::talk::{Way, by_client, filled, talk, yes};
use crate::declared_http::server::{Server, json_response};

/// Posts a refund to `server`, once somebody agreed to `confirm`.
fn declared(server: &Server, confirm: &str) -> DeclaredHttpTool {
    let default = Input { default: Some(json!("EUR")), ..input("currency", Scalar::String, json!({})) };
    DeclaredHttpTool {
        name: "refund".to_owned(),
        title: None,
        description: "Pays money back.".to_owned(),
        annotations: ToolAnnotations::default(),
        request: HttpDefinition {
            method: "POST".to_owned(),
            url: server.url("/orders/{order}/refunds"),
            body: Some(json!({"amount": "{amount}", "currency": "{currency}"})),
            ..HttpDefinition::default()
        },
        inputs: vec![
            asked("amount", Scalar::Number, json!({"minimum": 1}), "How much?"),
            default,
            asked("order", Scalar::String, json!({"minLength": 1}), "Which order?"),
        ],
        confirm: Some(TextTemplate::parse(confirm).unwrap()),
        access: Access::default(),
        limits: CallLimits::default(),
        cache: None,
    }
}

fn offering(server: &Server, confirm: &str) -> Result<Arc<Registry>, Vec<Problem>> {
    let (view, _) = node();
    let hosts = Arc::new(AllowedHosts::parse(&[server.host()]).unwrap());
    let client = HttpClient::new(hosts, "1.2.3").unwrap();
    Ok(registry(&view, declared(server, confirm).prepare(&view, &client)?))
}

/// What is asked and answered, and the requests that came, their first lines and bodies.
async fn check(arguments: Value, answers: &[InputAnswer]) -> String {
    let mut told = Vec::new();
    for way in [Way::Rounds, Way::Live] {
        let mut server = Server::answering(json_response(r#"[{"refund":1}]"#)).await;
        let registry = offering(&server, "Refund {{amount}} {{currency}} to order {{order}}?").unwrap();
        let text = talk(&registry, by_client("refund", arguments.clone()), way, answers).await;
        let ends = |request: &String| [request.lines().next(), request.lines().last()].map(Option::unwrap).join(" … ");
        let sent: Vec<String> = server.seen().iter().map(ends).collect();
        told.push(format!("{text}\nsent: {sent:?}"));
    }
    assert_eq!(told[0], told[1]);
    told.swap_remove(0)
}

#[tokio::test]
async fn a_request_is_sent_once_and_after_consent() {
    let text = check(json!({"amount": 40}), &[filled(json!({"order": "A 17"})), yes()]).await;
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
    for answer in [filled(json!({"confirm": false})), InputAnswer::Declined, InputAnswer::Cancelled] {
        let text = check(given.clone(), &[answer]).await;
        assert!(text.contains("Refund 40 \"USD\" to order \"A-17\"?"), "{text}");
        assert!(text.contains("forbidden: nothing was done") && text.ends_with("sent: []"), "{text}");
    }
    let text = check(given, &[]).await;
    assert!(text.ends_with("(no answer)\nsent: []"), "{text}");
}

#[tokio::test]
async fn a_client_without_forms_sends_nothing() {
    let mut server = Server::answering(json_response("[]")).await;
    let registry = offering(&server, "Refund?").unwrap();
    let given = crate::fake::ask(&registry, "refund", json!({"amount": 40, "order": "A-17"})).await;
    assert!(given.starts_with("incapable: "), "{given}");
    let missing = crate::fake::ask(&registry, "refund", json!({})).await;
    insta::assert_snapshot!(missing, @r#"
    invalid_arguments: the arguments do not suffice:
    - amount: is missing, and your client cannot ask a person for it: How much?
    - order: is missing, and your client cannot ask a person for it: Which order?
    Give what is missing as arguments, or call from a client that shows forms (elicitation).
    "#);
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_question_with_an_unknown_name_is_complained_about() {
    let server = Server::answering(json_response("[]")).await;
    let Err(problems) = offering(&server, "Refund {{sum}}?") else { panic!("there is no sum") };
    insta::assert_snapshot!(format!("{}: {}", problems[0].at, problems[0].error), @r#"
    confirm: {{sum}} is not declared under input
    Valid choices: amount, currency, order
    "#);
}
