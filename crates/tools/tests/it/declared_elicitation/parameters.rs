//! Missing parameters that the person behind the call supplies.

use serde_json::{Value, json};
use tidegate_core::{CallTarget, ErrorKind, InputAnswer};
use tidegate_sql::Transaction;
use tidegate_tools::declared::{
    DeclaredInput, DeclaredResource, DeclaredSql, DeclaredTool, InputKind, ResourceContent, ScalarType,
};

use super::conversation::{ElicitationMode, call_with_forms, filled_form, run_conversation};
use super::recording_database::{declaration_problems, elicited_input, input, node, registry_offering, writing_tool};

/// Takes a year and a code, both with `ask`.
fn tool() -> DeclaredTool<DeclaredSql> {
    let year = elicited_input("year", ScalarType::Integer, json!({"minimum": 2000, "maximum": 2030}), "Which year?");
    let code =
        elicited_input("code", ScalarType::String, json!({"pattern": "^[A-Z]{2}$", "maxLength": 2}), "Whose flights?");
    let day = DeclaredInput { required: false, ..input("day", ScalarType::Date, json!({})) };
    let reading = writing_tool("SELECT flights(:year, :code, :day)", vec![year, code, day], None);
    DeclaredTool { action: DeclaredSql { transaction: Transaction::read_only(), ..reading.action }, ..reading }
}

/// The conversation, and the statements that the database ran; the same in both ways.
async fn check(arguments: Value, answers: &[InputAnswer]) -> String {
    let mut message = Vec::new();
    for way in [ElicitationMode::Rounds, ElicitationMode::Live] {
        let (registry, ran) = registry_offering(tool()).await;
        let text = run_conversation(&registry, call_with_forms("refund", arguments.clone()), way, answers).await;
        message.push(format!("{text}\nran: {:?}", ran.lock()));
    }
    assert_eq!(message[0], message[1]);
    message.swap_remove(0)
}

#[tokio::test]
async fn elicited_parameters_are_optional_in_the_schema() {
    let (registry, _) = registry_offering(tool()).await;
    let snapshot = registry.snapshot();
    let schema = snapshot.tool("refund", &crate::fake::owner()).unwrap().input_schema.json().clone();
    assert!(schema.get("required").is_none());
    insta::assert_snapshot!(schema["properties"]["year"], @r#"{"type":"integer","minimum":2000,"maximum":2030,"description":"if omitted, the person is asked"}"#);
}

#[tokio::test]
async fn given_parameters_are_not_elicited() {
    let text = check(json!({"year": 2013, "code": "UA"}), &[]).await;
    insta::assert_snapshot!(text, @r#"
    answer: [{"done":1}]
    ran: ["SELECT flights($1, $2, CAST($3 AS DATE)) [Integer(2013), Text(\"UA\"), Null]"]
    "#);
}

#[tokio::test]
async fn missing_parameters_are_elicited_in_one_form() {
    let text =
        check(json!({"day": "2013-01-31"}), &[filled_form(json!({"year": 2013, "code": "UA", "day": "x"}))]).await;
    insta::assert_snapshot!(text, @r#"
    asked: Which year?
    Whose flights?
      {"year":{"type":"integer","minimum":2000,"maximum":2030,"title":"Which year?"},"code":{"type":"string","maxLength":2,"title":"Whose flights?"}}
    answer: [{"done":1}]
    ran: ["SELECT flights($1, $2, CAST($3 AS DATE)) [Integer(2013), Text(\"UA\"), Text(\"2013-01-31\")]"]
    "#);
    let text = check(json!({"year": 2013}), &[filled_form(json!({"code": "UA"}))]).await;
    insta::assert_snapshot!(text, @r#"
    asked: Whose flights?
      {"code":{"type":"string","maxLength":2,"title":"Whose flights?"}}
    answer: [{"done":1}]
    ran: ["SELECT flights($1, $2, CAST($3 AS DATE)) [Integer(2013), Text(\"UA\"), Null]"]
    "#);
}

#[tokio::test]
async fn invalid_answer_is_elicited_again() {
    let text =
        check(json!({"year": 2013}), &[filled_form(json!({"code": "ua"})), filled_form(json!({"code": "UA"}))]).await;
    insta::assert_snapshot!(text, @r#"
    asked: Whose flights?
      {"code":{"type":"string","maxLength":2,"title":"Whose flights?"}}
    asked: Whose flights?
    (The last answer did not fit: code: "ua" does not match "^[A-Z]{2}$")
      {"code":{"type":"string","maxLength":2,"title":"Whose flights?"}}
    answer: [{"done":1}]
    ran: ["SELECT flights($1, $2, CAST($3 AS DATE)) [Integer(2013), Text(\"UA\"), Null]"]
    "#);
    let wrong = filled_form(json!({"code": "ua"}));
    let text = check(json!({"year": 2013}), &[wrong.clone(), wrong.clone(), wrong]).await;
    let end: Vec<&str> = text.lines().rev().take(3).collect();
    insta::assert_snapshot!(end.into_iter().rev().collect::<Vec<_>>().join("\n"), @r#"
    invalid_arguments: nothing was done: the person's answers are invalid:
    - code: "ua" does not match "^[A-Z]{2}$"
    ran: []
    "#);
}

#[tokio::test]
async fn declined_form_runs_nothing() {
    for way in [ElicitationMode::Rounds, ElicitationMode::Live] {
        for content in [json!({}), json!({"code": 7}), json!({"code": null}), json!({"code": "UAL"})] {
            let (registry, ran) = registry_offering(tool()).await;
            let text = run_conversation(
                &registry,
                call_with_forms("refund", json!({"year": 2013})),
                way,
                &[filled_form(content)],
            )
            .await;
            assert!(!text.contains("answer: ") && ran.lock().is_empty(), "{text}");
        }
    }
}

#[tokio::test]
async fn cancelled_form_ends_the_call() {
    for answer in [InputAnswer::Declined, InputAnswer::Cancelled] {
        let text = check(json!({}), &[answer]).await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(text.lines().skip(3).collect::<Vec<_>>().join("\n"), @r#"
            forbidden: nothing was done: the person was asked for year, code and gave no answer
            ran: []
            "#);
        }
    }
}

#[tokio::test]
async fn client_without_forms_gets_missing_arguments() {
    let (registry, ran) = registry_offering(tool()).await;
    let call = crate::fake::call(CallTarget::Tool("refund".to_owned()), json!({"code": "UA"}));
    let error = crate::fake::collect_answer(registry.call(call).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    insta::assert_snapshot!(error, @r#"
    arguments are missing:
    - year: is missing, and your client does not support elicitation: Which year?
    Pass them, or call from a client that supports elicitation.
    "#);
    assert!(ran.lock().is_empty());
}

#[tokio::test]
async fn rejects_parameters_that_cannot_be_elicited() {
    let question = || Some("Which?".to_owned());
    let inputs = vec![
        DeclaredInput { ask: question(), ..DeclaredInput::new("ids", InputKind::List(ScalarType::Integer)) },
        DeclaredInput { ask: question(), default: Some(json!(1)), ..input("page", ScalarType::Integer, json!({})) },
        DeclaredInput { ask: question(), required: false, ..input("day", ScalarType::Date, json!({})) },
        DeclaredInput { ask: Some(" ".to_owned()), ..input("code", ScalarType::String, json!({})) },
    ];
    let tool = writing_tool("SELECT f(:ids, :page, :day, :code)", inputs, None);
    insta::assert_snapshot!(declaration_problems(tool).await, @r#"
    input.ids.ask: a form cannot prompt for a list: a field takes one value; give it a default
    input.page.ask: has no effect together with default; remove one of them
    input.day.ask: has no effect when required is false; remove one of them
    input.code.ask: is empty; write the question, such as "Which year?"
    "#);
}

#[tokio::test]
async fn resources_cannot_elicit() {
    let resource = DeclaredResource {
        uri: "reports://{year}".to_owned(),
        name: "report".to_owned(),
        title: None,
        description: None,
        mime_type: None,
        source: ResourceContent::Sql {
            database: None,
            sql: "SELECT :year".to_owned(),
            inputs: vec![elicited_input("year", ScalarType::Integer, json!({}), "Which year?")],
            format: tidegate_core::Format::Mcp,
        },
        access: tidegate_core::Access::default(),
        limits: tidegate_core::CallLimits::default(),
        cache: None,
    };
    let (services, _) = node();
    let Err(problems) = resource.prepare(&services).await else { panic!("it would never ask") };
    insta::assert_snapshot!(format!("{}: {}", problems[0].path, problems[0].error), @"input.year.ask: year is part of the URI and always has a value; only tools support ask");
}
