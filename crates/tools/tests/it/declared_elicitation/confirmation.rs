//! Confirmation before a tool runs: the question contains the values, and nothing is done without it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_core::{ErrorKind, InputAnswer, ProvidedAnswer};
use tidegate_runtime::{Call, Registry};
use tidegate_sql::Transaction;
use tidegate_tools::DISCOVER_TOOLSET;
use tidegate_tools::declared::{DeclaredSql, DeclaredTool, ScalarType, TextTemplate};

use super::conversation::{
    ElicitationMode, call_with_forms, collect_text, consent_answer, filled_form, run_conversation,
};
use super::recording_database::{declaration_problems, elicited_input, input, refund, registry_offering, writing_tool};

const MODES: [ElicitationMode; 2] = [ElicitationMode::Rounds, ElicitationMode::Live];

/// The conversation, and the statements that the database ran; the same in both ways.
async fn check(tool: impl Fn() -> DeclaredTool<DeclaredSql>, arguments: Value, answers: &[InputAnswer]) -> String {
    let mut message = Vec::new();
    for way in MODES {
        let (registry, ran) = registry_offering(tool()).await;
        let text = run_conversation(&registry, call_with_forms("refund", arguments.clone()), way, answers).await;
        message.push(format!("{text}\nran: {:?}", ran.lock()));
    }
    assert_eq!(message[0], message[1]);
    message.swap_remove(0)
}

fn order_arguments() -> Value {
    json!({"amount": 12.5, "order": "A-17"})
}

#[tokio::test]
async fn a_write_happens_once_and_after_consent() {
    insta::assert_snapshot!(check(refund, order_arguments(), &[consent_answer()]).await, @r#"
    asked: Refund 12.5 to order "A-17"?
      {"confirm":{"type":"boolean","title":"Yes, do it"}}
    answer: [{"done":1}]
    ran: ["SELECT refund($1, $2) [Float(12.5), Text(\"A-17\")]"]
    "#);
}

#[tokio::test]
async fn nothing_is_done_without_consent() {
    let answers = [filled_form(json!({"confirm": false})), InputAnswer::Declined, InputAnswer::Cancelled];
    let mut message = Vec::new();
    for answer in answers {
        let text = check(refund, order_arguments(), &[answer]).await;
        message.push(text.lines().skip(2).collect::<Vec<_>>().join("\n"));
    }
    message.push(check(refund, order_arguments(), &[]).await.lines().skip(2).collect::<Vec<_>>().join("\n"));
    insta::assert_snapshot!(message.join("\n"), @r#"
    forbidden: nothing was done: the person declined
    ran: []
    forbidden: nothing was done: the person declined
    ran: []
    forbidden: nothing was done: the person closed the question
    ran: []
    (no answer)
    ran: []
    "#);
}

#[tokio::test]
async fn malformed_answers_are_not_consent() {
    for content in [json!({}), json!({"confirm": "true"}), json!({"confirm": 1}), json!({"agreed": true})] {
        for way in MODES {
            let (registry, ran) = registry_offering(refund()).await;
            let text = run_conversation(
                &registry,
                call_with_forms("refund", order_arguments()),
                way,
                &[filled_form(content.clone())],
            )
            .await;
            assert!(!text.contains("answer: ") && ran.lock().is_empty(), "{text}");
        }
    }
}

#[tokio::test]
async fn client_without_forms_gets_incapable_error() {
    for is_live in [false, true] {
        let (registry, ran) = registry_offering(refund()).await;
        let call = crate::fake::call(tidegate_core::CallTarget::Tool("refund".to_owned()), order_arguments());
        let error = crate::fake::collect_answer(registry.call(Call { supports_live_input: is_live, ..call }).unwrap())
            .await
            .unwrap_err();
        assert!(error.kind() == ErrorKind::MissingClientCapability && error.missing_capabilities().forms);
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @r#"
            the call needs client capabilities that your client did not declare: elicitation (form)
            Nothing was done: a person has to agree first. Call from a client that supports elicitation, or with tidegate call at a terminal.
            "#);
        }
        assert!(ran.lock().is_empty());
    }
}

/// The key of the input request in the first round, for `arguments`, and the marker of its answer.
async fn first_question(tool: DeclaredTool<DeclaredSql>, arguments: Value) -> (String, String) {
    let (registry, _) = registry_offering(tool).await;
    let reply = registry.call(call_with_forms("refund", arguments)).unwrap();
    let (key, request) =
        collect_text(reply, |_| panic!("the call waits for input")).await.unwrap_err().input_requests()[0].clone();
    (key, request.fingerprint())
}

#[tokio::test]
async fn consent_is_bound_to_the_exact_request() {
    let (key, mark) = first_question(refund(), order_arguments()).await;
    let agreed = |was_requested: bool| {
        let requested = was_requested.then(|| mark.clone());
        BTreeMap::from([(key.clone(), ProvidedAnswer { value: consent_answer(), request_fingerprint: requested })])
    };
    let other_question = || DeclaredTool { confirm: Some(TextTemplate::parse("Refund?").unwrap()), ..refund() };
    let more = json!({"amount": 1_250, "order": "A-17"});
    let cases = [
        ("the same", refund(), order_arguments(), true, true),
        ("it came unasked", refund(), order_arguments(), false, false),
        ("another amount", refund(), more, true, false),
        ("another question", other_question(), order_arguments(), true, false),
    ];
    for (subject, tool, arguments, was_requested, counts) in cases {
        let (registry, ran) = registry_offering(tool).await;
        let call = Call { input_answers: agreed(was_requested), ..call_with_forms("refund", arguments) };
        let ended = collect_text(registry.call(call).unwrap(), |_| panic!("the call waits for input")).await;
        assert_eq!(ran.lock().len(), usize::from(counts), "{subject}");
        assert!(counts || ended.unwrap_err().kind() == ErrorKind::InputRequired, "{subject}");
    }
}

#[tokio::test]
async fn values_are_quoted() {
    let arguments = json!({"amount": 1, "order": "A\"?\n\nNo, refund 0 to \"B"});
    let text = check(refund, arguments, &[InputAnswer::Declined]).await;
    insta::assert_snapshot!(text.lines().next().unwrap(), @r#"asked: Refund 1 to order "A\"?\n\nNo, refund 0 to \"B"?"#);
}

#[tokio::test]
async fn arguments_are_validated_before_elicitation() {
    let text = check(refund, json!({"amount": -1, "order": "A-17"}), &[]).await;
    assert!(text.starts_with("invalid_arguments") && text.ends_with("ran: []"), "{text}");
    let text = check(refund, json!({"amount": 1, "order": "A-17", "format": "xml"}), &[]).await;
    assert!(text.starts_with("invalid_arguments") && text.ends_with("ran: []"), "{text}");
}

#[tokio::test]
async fn read_only_tool_may_require_consent() {
    let reading = || {
        let tool = refund();
        let action = DeclaredSql { transaction: Transaction::read_only(), ..tool.action };
        DeclaredTool { action, ..tool }
    };
    let declined = check(reading, order_arguments(), &[InputAnswer::Declined]).await;
    assert!(declined.ends_with("ran: []"), "{declined}");
    let agreed = check(reading, order_arguments(), &[consent_answer()]).await;
    assert!(agreed.contains("answer: "), "{agreed}");
}

#[tokio::test]
async fn parameters_are_elicited_before_consent() {
    let tool = || {
        let inputs = vec![
            elicited_input("amount", ScalarType::Integer, json!({"maximum": 100}), "How much?"),
            input("order", ScalarType::String, json!({})),
        ];
        writing_tool("SELECT refund(:amount, :order)", inputs, Some("Refund {{amount}} to order {{order}}?"))
    };
    let text = check(tool, json!({"order": "A-17"}), &[filled_form(json!({"amount": 40})), consent_answer()]).await;
    insta::assert_snapshot!(text, @r#"
    asked: How much?
      {"amount":{"type":"integer","maximum":100,"title":"How much?"}}
    asked: Refund 40 to order "A-17"?
      {"confirm":{"type":"boolean","title":"Yes, do it"}}
    answer: [{"done":1}]
    ran: ["SELECT refund($1, $2) [Integer(40), Text(\"A-17\")]"]
    "#);
}

/// A call through the toolset that finds tools and calls them.
fn call_in_discover_toolset(registry: &Registry, tool: &str, arguments: Value) -> Call {
    let owner = crate::fake::owner();
    let toolset = registry.snapshot().toolset(DISCOVER_TOOLSET, &owner).cloned();
    Call { caller: owner.with_toolset(toolset), ..call_with_forms(tool, arguments) }
}

#[tokio::test]
async fn call_tool_forwards_elicitation() {
    for way in MODES {
        let (registry, ran) = registry_offering(refund()).await;
        let find = call_in_discover_toolset(&registry, "find_tool", json!({"words": "money back"}));
        let found = run_conversation(&registry, find, way, &[]).await;
        assert!(found.contains("\"amount\""), "{found}");
        for answer in [InputAnswer::Declined, consent_answer()] {
            let call = call_in_discover_toolset(
                &registry,
                "call_tool",
                json!({"name": "refund", "arguments": order_arguments()}),
            );
            let text = run_conversation(&registry, call, way, std::slice::from_ref(&answer)).await;
            assert!(text.starts_with("asked: Refund 12.5 to order \"A-17\"?"), "{text}");
            assert_eq!(ran.lock().len(), usize::from(answer == consent_answer()), "{text}");
        }
    }
}

#[tokio::test]
async fn rejects_invalid_confirm_templates() {
    let confirm = |text: &str| DeclaredTool { confirm: Some(TextTemplate::parse(text).unwrap()), ..refund() };
    insta::assert_snapshot!(declaration_problems(confirm("Refund {{sum}} to {{to}}?")).await, @r#"
    confirm: {{sum}} is not declared under input
    Valid choices: amount, order, changed_rows
    confirm: {{to}} is not declared under input
    Valid choices: amount, order, changed_rows
    "#);
    insta::assert_snapshot!(declaration_problems(confirm(" ")).await, @r#"confirm: is empty; write what the person agrees to, such as "Delete order {{order}}?""#);
}
