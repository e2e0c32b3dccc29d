//! Declared tools that call a built-in one with arguments of the configuration.

use std::fs;

use reqwest::Client;
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::serve;

const CONFIGURATION: &str = "
databases: [{name: shop, files: shop}]
tools:
  - name: orders_of_ann
    title: Orders of Ann
    description: What Ann has ordered.
    tool: query
    arguments: {table: orders, where: \"customer = 'Ann'\", order_by: [id]}
    defaults: {limit: 1, select: [id]}
";

#[test]
fn fixed_arguments_are_out_of_reach_and_defaults_are_not() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let call = |arguments: &[&str]| {
        let ran = configured.run(&[&["call", "orders_of_ann"], arguments].concat());
        format!("{}{}", ran.stdout, ran.stderr)
    };
    assert_eq!(call(&[]).trim_end(), r#"[{"id":1}]"#);
    assert_eq!(call(&["limit=5", r#"select=["amount"]"#]).trim_end(), r#"[{"amount":12.5},{"amount":null}]"#);
    let refused = call(&["table=2024"]);
    assert!(refused.contains("the arguments of tool \"orders_of_ann\" are wrong:\n- table: is unknown"), "{refused}");
}

#[test]
fn schema_is_that_of_the_built_in_tool_without_fixed_arguments() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let tools: Value = serde_json::from_str(&configured.run(&["tools", "--json"]).stdout).unwrap();
    let named = |name: &str| tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
    let (preset, built_in) = (named("orders_of_ann"), named("query"));
    assert_eq!((&preset["title"], &preset["description"]), (&json!("Orders of Ann"), &json!("What Ann has ordered.")));
    assert_eq!(preset["annotations"]["readOnlyHint"], true);
    let mut expected = built_in["inputSchema"].clone();
    for fixed in ["table", "where", "order_by"] {
        expected["properties"].as_object_mut().unwrap().shift_remove(fixed);
    }
    expected["properties"]["limit"]["default"] = json!(1);
    expected["properties"]["select"]["default"] = json!(["id"]);
    expected["required"] = json!([]);
    assert_eq!(preset["inputSchema"], expected);
}

#[test]
fn config_check_reports_wrong_arguments_where_they_are_written() {
    let configured = ConfiguredFolder::new(
        "databases: [{name: shop, files: shop}]
tools:
  - {name: a, description: A, tool: query, arguments: {table: orders, limit: many, wher: x}, defaults: {table: b}}
  - {name: b, description: B, tool: quary}
  - {name: c, description: C, tool: query, sql: SELECT 1, format: csv}
  - {name: d, description: D, sql: SELECT 1 AS one, arguments: {a: 1}}
  - {name: e, description: E, tool: query, defaults: {offset: null}}
  - {name: f, description: F, tool: query, arguments: {limit: 'null'}}
",
    );
    let text = configured.usage_error(&["config", "check"]);
    for part in [
        "tidegate.yaml:3:71: tools[0].arguments.limit: \"many\" is not of type \"integer\"",
        "tidegate.yaml:3:84: tools[0].arguments.wher: is unknown; did you mean \"where\"?",
        "tidegate.yaml:3:105: tools[0].defaults.table: is in arguments too, whose values callers cannot change",
        "tidegate.yaml:4:31: tools[1].tool: this server offers no built-in tool \"quary\"; did you mean \"query\"?",
        "tidegate.yaml:5:5: tools[2]: needs one of sql, insert_into, http and tool",
        "tidegate.yaml:5:59: tools[2].format: has no effect with tool",
        "tidegate.yaml:6:53: tools[3].arguments: needs tool",
        "tidegate.yaml:7:55: tools[4].defaults.offset: is null, which is no value",
        "tidegate.yaml:8:56: tools[5].arguments.limit: counts as absent in a call",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn config_check_reports_a_cache_of_a_tool_that_writes() {
    let configured = ConfiguredFolder::new(
        "databases: [{name: shop, files: shop}, {name: plant, ingest: plant}]
tools:
  - {name: a, description: A, tool: append_rows, cache: {ttl: 5m}}
  - {name: b, description: B, tool: cancel_job, cache: {ttl: 5m}}
  - {name: c, description: C, tool: ingest_status, cache: {ttl: 5m}}
  - {name: d, description: D, tool: query, cache: {ttl: 5m}}
",
    );
    let text = configured.usage_error(&["config", "check"]);
    let reported = text.lines().filter(|line| line.contains(".cache: has no effect on a tool that writes; remove it"));
    assert_eq!(reported.count(), 2, "{text}");
    assert!(text.contains("tools[0].cache: ") && text.contains("tools[1].cache: "), "{text}");
}

#[test]
fn callers_need_the_rights_to_both_tools() {
    let configured = ConfiguredFolder::new(&format!(
        "{CONFIGURATION}    access: [orders]
toolsets: {{presets: [orders_of_ann], both: [orders_of_ann, query]}}
roles:
  - {{name: clerk, toolsets: [presets], access: [orders], databases: [shop]}}
  - {{name: guest, toolsets: [presets, both], databases: [shop]}}
  - {{name: analyst, toolsets: [presets, both], access: [orders], databases: [shop]}}
auth: {{keys: keys.json}}
"
    ));
    let explain = |arguments: &[&str]| {
        let ran = configured.run(&[&["access", "explain"], arguments, &["orders_of_ann"]].concat());
        format!("{}{}", ran.stdout, ran.stderr).trim_end().to_owned()
    };
    assert_eq!(
        explain(&["--role", "clerk"]),
        "no   tool orders_of_ann: \"query\", which it calls: no toolset of the caller's roles contains it"
    );
    assert_eq!(
        explain(&["--role", "guest"]),
        "no   tool orders_of_ann: none of the caller's roles grants the access \"orders\""
    );
    assert!(explain(&["--role", "analyst"]).starts_with("yes  tool orders_of_ann"));
    // An endpoint may offer the declared tool alone.
    assert!(explain(&["--role", "analyst", "--toolset", "presets"]).starts_with("yes  tool orders_of_ann"));
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_names_both_tools() {
    let configured = ConfiguredFolder::new(&format!("{CONFIGURATION}audit: {{file: audit.jsonl}}\n"));
    let server = serve(&configured);
    let url = server.url.replace("/mcp", "/rest/tools/orders_of_ann/call?format=mcp");
    let response = Client::new().post(url).json(&json!({"limit": 2})).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), r#"[{"id":1},{"id":3}]"#);
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
    let log = fs::read_to_string(configured.folder().join("audit.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let line = lines.into_iter().find(|line| line["kind"] == "call").unwrap();
    assert_eq!(line["target"], json!({"kind": "tool", "name": "orders_of_ann", "calls": "query"}));
    let arguments: Vec<&str> =
        line["arguments"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(["limit", "table", "where", "select"].iter().all(|name| arguments.contains(name)), "{arguments:?}");
}
