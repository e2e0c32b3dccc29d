//! Consent before a tool does anything: asked with the values, and nothing is done without it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_core::{Call, ErrorKind, GivenAnswer, InputAnswer, Registry};
use tidegate_query::Transaction;
use tidegate_tools::DISCOVER;
use tidegate_tools::declared::{Scalar, SqlTool, TextTemplate};

use super::ledger::{asked, complaints, input, offering, refund, writing};
use super::talk::{Way, by_client, filled, gather, talk, yes};

const WAYS: [Way; 2] = [Way::Rounds, Way::Live];

/// What is asked and answered, and what the database ran: the same in both ways.
async fn check(tool: impl Fn() -> SqlTool, arguments: Value, answers: &[InputAnswer]) -> String {
    let mut told = Vec::new();
    for way in WAYS {
        let (registry, ran) = offering(tool()).await;
        let text = talk(&registry, by_client("refund", arguments.clone()), way, answers).await;
        told.push(format!("{text}\nran: {:?}", ran.lock()));
    }
    assert_eq!(told[0], told[1]);
    told.swap_remove(0)
}

fn order() -> Value {
    json!({"amount": 12.5, "order": "A-17"})
}

#[tokio::test]
async fn a_write_happens_once_and_after_consent() {
    insta::assert_snapshot!(check(refund, order(), &[yes()]).await, @r#"
    asked: Refund 12.5 to order "A-17"?
      {"confirm":{"type":"boolean","title":"Yes, do it"}}
    answer: [{"done":1}]
    ran: ["SELECT refund($1, $2) [Float(12.5), Text(\"A-17\")]"]
    "#);
}

#[tokio::test]
async fn nothing_is_done_without_consent() {
    let answers = [filled(json!({"confirm": false})), InputAnswer::Declined, InputAnswer::Cancelled];
    let mut told = Vec::new();
    for answer in answers {
        let text = check(refund, order(), &[answer]).await;
        told.push(text.lines().skip(2).collect::<Vec<_>>().join("\n"));
    }
    told.push(check(refund, order(), &[]).await.lines().skip(2).collect::<Vec<_>>().join("\n"));
    insta::assert_snapshot!(told.join("\n"), @r#"
    forbidden: nothing was done: the person who was asked did not agree
    ran: []
    forbidden: nothing was done: the person who was asked did not agree
    ran: []
    forbidden: nothing was done: the person who was asked did not choose
    ran: []
    (no answer)
    ran: []
    "#);
}

#[tokio::test]
async fn what_is_no_answer_is_no_consent() {
    for content in [json!({}), json!({"confirm": "true"}), json!({"confirm": 1}), json!({"agreed": true})] {
        for way in WAYS {
            let (registry, ran) = offering(refund()).await;
            let text = talk(&registry, by_client("refund", order()), way, &[filled(content.clone())]).await;
            assert!(!text.contains("answer: ") && ran.lock().is_empty(), "{text}");
        }
    }
}

#[tokio::test]
async fn a_client_without_forms_is_told_what_is_missing() {
    for is_asked_live in [false, true] {
        let (registry, ran) = offering(refund()).await;
        let call = crate::fake::call(tidegate_core::Target::Tool("refund".to_owned()), order());
        let error = crate::fake::gather(registry.call(Call { is_asked_live, ..call }).unwrap()).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Incapable && error.needs().forms);
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @r#"
            the call needs what your client has not declared that it can do: elicitation (form)
            Nothing was done: a person has to agree first. Call from a client that shows forms (elicitation), or with tidegate call at a terminal.
            "#);
        }
        assert!(ran.lock().is_empty());
    }
}

/// The key of what is asked in the first round, for `arguments`, and what marks its answer.
async fn first_question(tool: SqlTool, arguments: Value) -> (String, String) {
    let (registry, _) = offering(tool).await;
    let reply = registry.call(by_client("refund", arguments)).unwrap();
    let (key, request) = gather(reply, |_| panic!("nobody waits")).await.unwrap_err().requests()[0].clone();
    (key, request.mark())
}

#[tokio::test]
async fn consent_counts_for_what_was_asked_alone() {
    let (key, mark) = first_question(refund(), order()).await;
    let agreed = |was_asked: bool| {
        let asked = was_asked.then(|| mark.clone());
        BTreeMap::from([(key.clone(), GivenAnswer { answer: yes(), asked })])
    };
    let other_question = || SqlTool { confirm: Some(TextTemplate::parse("Refund?").unwrap()), ..refund() };
    let more = json!({"amount": 1_250, "order": "A-17"});
    let cases = [
        ("the same", refund(), order(), true, true),
        ("it came unasked", refund(), order(), false, false),
        ("another amount", refund(), more, true, false),
        ("another question", other_question(), order(), true, false),
    ];
    for (what, tool, arguments, was_asked, counts) in cases {
        let (registry, ran) = offering(tool).await;
        let call = Call { answers: agreed(was_asked), ..by_client("refund", arguments) };
        let ended = gather(registry.call(call).unwrap(), |_| panic!("nobody waits")).await;
        assert_eq!(ran.lock().len(), usize::from(counts), "{what}");
        assert!(counts || ended.unwrap_err().kind() == ErrorKind::InputRequired, "{what}");
    }
}

#[tokio::test]
async fn values_are_quoted() {
    let arguments = json!({"amount": 1, "order": "A\"?\n\nNo, refund 0 to \"B"});
    let text = check(refund, arguments, &[InputAnswer::Declined]).await;
    insta::assert_snapshot!(text.lines().next().unwrap(), @r#"asked: Refund 1 to order "A\"?\n\nNo, refund 0 to \"B"?"#);
}

#[tokio::test]
async fn wrong_arguments_are_told_before_anybody_is_asked() {
    let text = check(refund, json!({"amount": -1, "order": "A-17"}), &[]).await;
    assert!(text.starts_with("invalid_arguments") && text.ends_with("ran: []"), "{text}");
    let text = check(refund, json!({"amount": 1, "order": "A-17", "format": "xml"}), &[]).await;
    assert!(text.starts_with("invalid_arguments") && text.ends_with("ran: []"), "{text}");
}

#[tokio::test]
async fn a_tool_that_reads_may_ask_too() {
    let reading = || SqlTool { transaction: Transaction::read_only(), ..refund() };
    let declined = check(reading, order(), &[InputAnswer::Declined]).await;
    assert!(declined.ends_with("ran: []"), "{declined}");
    let agreed = check(reading, order(), &[yes()]).await;
    assert!(agreed.contains("answer: "), "{agreed}");
}

#[tokio::test]
async fn parameters_are_asked_for_before_consent() {
    let tool = || {
        let inputs = vec![
            asked("amount", Scalar::Integer, json!({"maximum": 100}), "How much?"),
            input("order", Scalar::String, json!({})),
        ];
        writing("SELECT refund(:amount, :order)", inputs, Some("Refund {{amount}} to order {{order}}?"))
    };
    let text = check(tool, json!({"order": "A-17"}), &[filled(json!({"amount": 40})), yes()]).await;
    insta::assert_snapshot!(text, @r#"
    asked: How much?
      {"amount":{"type":"integer","maximum":100,"title":"How much?"}}
    asked: Refund 40 to order "A-17"?
      {"confirm":{"type":"boolean","title":"Yes, do it"}}
    answer: [{"done":1}]
    ran: ["SELECT refund($1, $2) [Integer(40), Text(\"A-17\")]"]
    "#);
}

/// A call through the door of the toolset that finds tools and calls them.
fn discovering(registry: &Registry, tool: &str, arguments: Value) -> Call {
    let owner = crate::fake::owner();
    let toolset = registry.snapshot().toolset(DISCOVER, &owner).cloned();
    Call { caller: owner.through(toolset), ..by_client(tool, arguments) }
}

#[tokio::test]
async fn a_tool_asks_through_call_tool() {
    for way in WAYS {
        let (registry, ran) = offering(refund()).await;
        let find = discovering(&registry, "find_tool", json!({"words": "money back"}));
        let found = talk(&registry, find, way, &[]).await;
        assert!(found.contains("\"amount\""), "{found}");
        for answer in [InputAnswer::Declined, yes()] {
            let call = discovering(&registry, "call_tool", json!({"name": "refund", "arguments": order()}));
            let text = talk(&registry, call, way, std::slice::from_ref(&answer)).await;
            assert!(text.starts_with("asked: Refund 12.5 to order \"A-17\"?"), "{text}");
            assert_eq!(ran.lock().len(), usize::from(answer == yes()), "{text}");
        }
    }
}

#[tokio::test]
async fn questions_that_cannot_be_asked_are_complained_about() {
    let confirm = |text: &str| SqlTool { confirm: Some(TextTemplate::parse(text).unwrap()), ..refund() };
    insta::assert_snapshot!(complaints(confirm("Refund {{sum}} to {{to}}?")).await, @r#"
    confirm: {{sum}} is not declared under input
    Valid choices: amount, order
    confirm: {{to}} is not declared under input
    Valid choices: amount, order
    "#);
    insta::assert_snapshot!(complaints(confirm(" ")).await, @r#"confirm: asks nothing; write what the person agrees to, such as "Delete order {{order}}?""#);
}
