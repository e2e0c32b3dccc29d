//! What is checked before a handler runs, and how a caller is helped.

use serde_json::{Value, json};
use tidegate_core::{Format, Limits};
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};

use crate::host::{Host, tool_call, tool_with_text, with_arguments};

fn orders() -> Host {
    let echo = handler_fn(|call| async move { Ok(Answer::text(Value::Object(call.arguments().clone()).to_string())) });
    let schema = json!({
        "type": "object",
        "properties": {
            "customer": {"type": "integer", "minimum": 1},
            "order_by": {
                "type": "array",
                "items": {"type": "object", "properties": {"direction": {"enum": ["asc", "desc"]}}},
            },
        },
        "required": ["customer"],
        "additionalProperties": false,
    });
    let tool = Tool::new("orders", "", echo).with_input_schema(schema).unwrap();
    Host::new(SnapshotBuilder::new().tool(tool).tool(tool_with_text("flights", "")))
}

async fn check(name: &str, arguments: Value) -> String {
    orders().call_to_text(with_arguments(tool_call(name), arguments)).await
}

#[tokio::test]
async fn valid_arguments_reach_the_handler_in_their_order() {
    let arguments = json!({"order_by": [{"direction": "desc"}], "customer": 7});
    insta::assert_snapshot!(check("orders", arguments).await, @r#"
    block {"order_by":[{"direction":"desc"}],"customer":7}
    done {}
    "#);
}

#[tokio::test]
async fn all_violations_come_together() {
    let arguments = json!({"order_by": [{"direction": "asc"}, {"direction": "up"}], "customer": 0, "colour": "red"});
    insta::assert_snapshot!(check("orders", arguments).await, @r#"
    refused invalid_arguments: the arguments of tool "orders" are wrong:
    - order_by[1].direction: "up" is not one of "asc" or "desc"
    - customer: 0 is less than the minimum of 1
    - colour: is unknown; expected one of customer, order_by
    "#);
    insta::assert_snapshot!(check("orders", json!({"customer": "seven"})).await, @r#"
    refused invalid_arguments: the arguments of tool "orders" are wrong:
    - customer: "seven" is not of type "integer"
    "#);
    insta::assert_snapshot!(check("orders", json!({})).await, @r#"
    refused invalid_arguments: the arguments of tool "orders" are wrong:
    - customer: is required
    "#);
}

#[tokio::test]
async fn values_of_the_wrong_type_are_converted_if_only_one_value_can_be_meant() {
    let arguments = json!({"customer": "7", "order_by": {"direction": "desc"}});
    insta::assert_snapshot!(check("orders", arguments).await, @r#"
    block {"customer":7,"order_by":[{"direction":"desc"}]}
    done {}
    "#);
    insta::assert_snapshot!(check("orders", json!({"customer": "0"})).await, @r#"
    refused invalid_arguments: the arguments of tool "orders" are wrong:
    - customer: 0 is less than the minimum of 1
    "#);
}

#[tokio::test]
async fn null_counts_as_absent_and_the_text_of_json_as_json() {
    insta::assert_snapshot!(check("orders", json!({"customer": 7, "order_by": null})).await, @r#"
    block {"customer":7}
    done {}
    "#);
    insta::assert_snapshot!(check("orders", json!({"customer": 7, "order_by": [{"direction": null}]})).await, @r#"
    block {"customer":7,"order_by":[{}]}
    done {}
    "#);
    insta::assert_snapshot!(check("orders", json!({"customer": 7, "order_by": "[{\"direction\": \"asc\"}]"})).await, @r#"
    block {"customer":7,"order_by":[{"direction":"asc"}]}
    done {}
    "#);
    insta::assert_snapshot!(check("orders", json!({"customer": null})).await, @r#"
    refused invalid_arguments: the arguments of tool "orders" are wrong:
    - customer: is required
    "#);
}

#[tokio::test]
async fn a_tool_without_arguments_takes_none() {
    insta::assert_snapshot!(check("flights", json!({"year": 2013, "month": 1})).await, @r#"
    refused invalid_arguments: the arguments of tool "flights" are wrong:
    - year: is unknown; no names are expected here
    - month: is unknown; no names are expected here
    "#);
}

#[tokio::test]
async fn violations_are_bounded_in_number_and_length() {
    let items: Vec<Value> = (0..100).map(|n| json!({"direction": format!("{n}{}", "x".repeat(10_000))})).collect();
    let answer = check("orders", json!({"customer": 1, "order_by": items})).await;
    assert_eq!(answer.lines().count(), 1 + 20);
    assert!(answer.len() < 20 * 500, "{} bytes", answer.len());
    assert!(answer.lines().last().unwrap().ends_with("… is not one of \"asc\" or \"desc\""));
}

#[tokio::test]
async fn unknown_tool_suggests_similar_names() {
    insta::assert_snapshot!(check("flight", json!({})).await, @r#"
    refused not_found: there is no tool "flight"
    Valid choices: flights
    "#);
    insta::assert_snapshot!(check("Orders ", json!({})).await, @r#"
    refused not_found: there is no tool "Orders "
    Valid choices: orders
    "#);
    let endless = "flights".repeat(1_000_000);
    let answer = check(&endless, json!({})).await;
    assert_eq!(answer, format!("refused not_found: there is no tool {endless:?}"));
}

#[tokio::test]
async fn applies_tightest_budget() {
    use tidegate_core::{Budget, CallLimits};
    let says_budget = handler_fn(|call| async move { Ok(Answer::text(format!("{:?}", call.limits().inline))) });
    let bytes = |bytes| Budget { rows: None, bytes: Some(bytes) };
    let own = CallLimits { inline: Some(Budget { rows: Some(10), bytes: None }), ..CallLimits::default() };
    let body = CallLimits { body: Some(bytes(77)), inline: Some(bytes(5)), ..CallLimits::default() };
    let host = Host::with_limits(
        Limits { inline: bytes(40_000), ..Limits::default() },
        SnapshotBuilder::new()
            .tool(Tool::new("usual", "", says_budget.clone()))
            .tool(Tool::new("own", "", says_budget.clone()).with_limits(own))
            .tool(Tool::new("body", "", says_budget).with_limits(body)),
    );
    let mut answers = String::new();
    for (name, carries) in [("usual", bytes(9_000)), ("usual", Budget::default()), ("own", bytes(9_000))] {
        let mut call = tool_call(name);
        call.inline_limit = carries;
        answers.push_str(&format!("{name}: {}\n", host.call_to_text(call).await.lines().next().unwrap()));
    }
    // An answer that is a body of its own has no budget but that of its entry.
    for name in ["usual", "own", "body"] {
        let mut call = tool_call(name);
        call.format = Some(Format::Csv);
        answers.push_str(&format!("{name} as csv: {}\n", host.call_to_text(call).await.lines().next().unwrap()));
    }
    insta::assert_snapshot!(answers, @r"
    usual: block Budget { rows: None, bytes: Some(9000) }
    usual: block Budget { rows: None, bytes: Some(40000) }
    own: block Budget { rows: Some(10), bytes: Some(9000) }
    usual as csv: block Budget { rows: None, bytes: None }
    own as csv: block Budget { rows: Some(10), bytes: None }
    body as csv: block Budget { rows: None, bytes: Some(77) }
    ");
}
