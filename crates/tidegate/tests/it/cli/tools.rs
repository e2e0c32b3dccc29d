//! `tidegate tools`.

use serde_json::Value;

use super::run;

#[test]
fn tools_are_listed_with_their_arguments() {
    let ran = run(&["tools"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(
        ran.stdout.contains("get_schema(database?, table, samples?, profile?, format?, extract?)\n    "),
        "{}",
        ran.stdout
    );
}

#[test]
fn as_json_they_carry_their_schemas() {
    let tools: Value = serde_json::from_str(&run(&["tools", "--json"]).stdout).unwrap();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names[..5], ["list_databases", "list_tables", "get_schema", "query", "sql"]);
    assert_eq!(tools[2]["inputSchema"]["required"], serde_json::json!(["table"]));
}
