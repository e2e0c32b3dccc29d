//! The tool list, and what it costs in every conversation.

use serde_json::{Map, Value, json};
use tidegate_runtime::Tool;
use tidegate_tools::INSTRUCTIONS;

use crate::fake::{node, owner};

/// 1,500 tokens at four characters each.
const LIST_CHARACTERS_MAX: usize = 6_000;

/// A tool as in `tools/list`.
fn listed(tool: &Tool) -> Value {
    let hints = tool.annotations.clone().unwrap();
    let hints: Map<String, Value> = [
        ("readOnlyHint", hints.read_only),
        ("destructiveHint", hints.destructive),
        ("idempotentHint", hints.idempotent),
        ("openWorldHint", hints.open_world),
    ]
    .into_iter()
    .filter_map(|(name, hint)| Some((name.to_owned(), Value::from(hint?))))
    .collect();
    json!({
        "name": tool.name, "title": tool.title, "description": tool.description,
        "inputSchema": tool.input_schema.json(), "annotations": hints,
    })
}

fn list() -> Vec<Value> {
    let registry = node([]);
    registry.snapshot().tools(&owner()).map(|tool| listed(tool)).collect()
}

#[tokio::test]
async fn tool_list_snapshot() {
    insta::assert_json_snapshot!(list());
}

#[tokio::test]
async fn the_tool_list_stays_cheap() {
    let characters = Value::Array(list()).to_string().chars().count();
    assert!(characters < LIST_CHARACTERS_MAX, "{characters} characters");
}

#[test]
fn instructions_snapshot() {
    insta::assert_snapshot!(INSTRUCTIONS);
    assert!(INSTRUCTIONS.chars().count() < 2_000);
}
