//! A question with the number of rows that the statement would change.

use serde_json::json;
use tidegate_core::ErrorKind;
use tidegate_runtime::Call;
use tidegate_sql::Transaction;
use tidegate_tools::declared::{DeclaredSql, DeclaredTool, ScalarType};

use super::conversation::{ElicitationMode, call_with_forms, consent_answer, run_conversation};
use super::recording_database::{declaration_problems, input, registry_offering, writing_tool};

const QUESTION: &str = "Delete {{changed_rows}} orders of {{customer}}?";

fn deletion() -> DeclaredTool<DeclaredSql> {
    let inputs = vec![input("customer", ScalarType::String, json!({}))];
    writing_tool("DELETE FROM orders WHERE customer = :customer", inputs, Some(QUESTION))
}

#[tokio::test]
async fn the_statement_is_counted_before_the_question() {
    let arguments = || call_with_forms("refund", json!({"customer": "Ann"}));
    let (registry, ran) = registry_offering(deletion()).await;
    let answers = [consent_answer()];
    let text = run_conversation(&registry, arguments(), ElicitationMode::Live, &answers).await;
    insta::assert_snapshot!(format!("{text}\n{}", ran.lock().join("\n")), @r#"
    asked: Delete 1 orders of "Ann"?
      {"confirm":{"type":"boolean","title":"Yes, do it"}}
    answer: [{"done":1}]
    DELETE FROM orders WHERE customer = $1 [Text("Ann")] Never
    DELETE FROM orders WHERE customer = $1 [Text("Ann")] IfRowsChanged(1)
    "#);
}

#[tokio::test]
async fn agreement_to_one_number_does_not_apply_to_another() {
    let (registry, ran) = registry_offering(deletion()).await;
    let answers = [consent_answer()];
    let call = call_with_forms("refund", json!({"customer": "Ann"}));
    // The handler runs again with the answer, and its count has changed.
    let text = run_conversation(&registry, call, ElicitationMode::Rounds, &answers).await;
    assert!(text.contains("Delete 1 orders") && text.contains("Delete 2 orders"), "{text}");
    assert!(ran.lock().iter().all(|statement| statement.ends_with("Never")), "{text}");
}

#[tokio::test]
async fn nothing_is_counted_for_a_client_without_forms() {
    let (registry, ran) = registry_offering(deletion()).await;
    let call = crate::fake::call(tidegate_core::CallTarget::Tool("refund".to_owned()), json!({"customer": "Ann"}));
    let answer = registry.call(Call { supports_live_input: true, ..call }).unwrap();
    let error = crate::fake::collect_answer(answer).await.unwrap_err();
    assert!(error.kind() == ErrorKind::MissingClientCapability && ran.lock().is_empty());
}

#[tokio::test]
async fn only_a_writing_tool_has_the_number() {
    let tool = deletion();
    let action = DeclaredSql { transaction: Transaction::read_only(), ..tool.action };
    insta::assert_snapshot!(declaration_problems(DeclaredTool { action, ..tool }).await, @r"
    confirm: {{changed_rows}} is not declared under input
    Valid choices: customer
    ");
    let inputs = vec![input("changed_rows", ScalarType::Integer, json!({}))];
    let (registry, ran) =
        registry_offering(writing_tool("SELECT :changed_rows", inputs, Some("Change {{changed_rows}}?"))).await;
    let call = call_with_forms("refund", json!({"changed_rows": 7}));
    let text = run_conversation(&registry, call, ElicitationMode::Live, &[consent_answer()]).await;
    assert!(text.starts_with("asked: Change 7?") && ran.lock().len() == 1, "a parameter keeps its name: {text}");
}
