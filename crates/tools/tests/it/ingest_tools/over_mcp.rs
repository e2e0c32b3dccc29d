//! Rows in an argument.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::{CallOrigin, CallTarget, Caller, TransportKind};
use tidegate_runtime::{Call, Registry};
use tidegate_tools::{IngestToolOptions, TABLE_TOOLS};

use super::memory_target::{MemoryTarget, sensor_columns, table};
use super::{answer, counts, device, registry, registry_with};
use crate::tool_list::listed;

/// The tokens that the tools may cost in the list.
const TOKENS_MAX: usize = 250;

fn caller() -> Caller {
    Caller::new(Arc::new(device(&["*"])), CallOrigin { transport: TransportKind::StreamableHttp, peer: None })
}

async fn call(registry: &Arc<Registry>, tool: &str, arguments: Value) -> Result<Value, String> {
    let mut call = Call::new(CallTarget::Tool(tool.to_owned()), caller());
    call.arguments = arguments.as_object().unwrap().clone();
    answer(registry, call).await
}

#[tokio::test]
async fn the_list_has_what_a_model_needs() {
    let plant = MemoryTarget::plant();
    let names = |registry: &Arc<Registry>| {
        let snapshot = registry.snapshot();
        snapshot.tools(&caller()).map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    let plain = registry(&[&plant]);
    assert_eq!(names(&plain), ["append_rows"]);
    let advanced = registry_with(&[&plant], IngestToolOptions { is_advanced: true, ..IngestToolOptions::default() });
    assert_eq!(names(&advanced), TABLE_TOOLS);
    let all: Vec<Value> = advanced.snapshot().tools(&caller()).map(|tool| listed(tool)).collect();
    insta::assert_json_snapshot!(all);
    let text = all[0].to_string();
    for tokenizer in [tiktoken_rs::o200k_base().unwrap(), tiktoken_rs::cl100k_base().unwrap()] {
        let tokens = tokenizer.encode_ordinary(&text).len();
        assert!(tokens < TOKENS_MAX, "{tokens} tokens");
    }
}

#[tokio::test]
async fn rows_are_an_argument() {
    let plant = MemoryTarget::plant();
    let registry = registry(&[&plant]);
    let rows =
        json!([{"time": "2024-02-29T12:00:00Z", "value": 1.5, "price": 12.25}, {"time": "2024-02-29T12:00:01Z"}]);
    let arguments = json!({"database": "plant", "table": "sensors", "rows": rows, "key": "k"});
    let first = call(&registry, "append_rows", arguments.clone()).await.unwrap();
    assert_eq!(counts(&first), (2, 0, false, false));
    assert_eq!(counts(&call(&registry, "append_rows", arguments).await.unwrap()), (2, 0, false, true));
    assert_eq!(plant.row_count("sensors"), 2);
}

#[tokio::test]
async fn a_table_may_have_the_name_of_its_database_before_it() {
    let (plant, lab) = (MemoryTarget::plant(), MemoryTarget::creating("lab"));
    let one = registry(&[&plant]);
    let advanced = IngestToolOptions { is_advanced: true, ..IngestToolOptions::default() };
    let several = registry_with(&[&plant, &lab], advanced);
    let rows = json!([{"time": "2024-02-29T12:00:00Z"}]);
    for (registry, mut arguments) in [
        (&several, json!({"table": "plant.sensors"})),
        (&several, json!({"table": "Plant.sensors"})),
        (&several, json!({"database": "plant", "table": "plant.sensors"})),
        (&one, json!({"table": "plant.sensors"})),
        (&one, json!({"table": "sensors"})),
    ] {
        arguments["rows"] = rows.clone();
        let answer = call(registry, "append_rows", arguments).await.unwrap();
        assert_eq!((&answer["database"], &answer["table"]), (&json!("plant"), &json!("sensors")));
    }
    assert_eq!(plant.row_count("sensors"), 5);
    let replaced = json!({"table": "lab.runs", "rows": rows, "create": true});
    call(&several, "replace_rows", replaced).await.unwrap();
    assert_eq!(lab.row_count("runs"), 1);
    call(&several, "drop_table", json!({"table": "lab.runs"})).await.unwrap();
    assert_eq!(lab.row_count("runs"), 0);
    // The whole name may be that of a table.
    let schema = MemoryTarget::with_tables("shop", vec![table("shop.orders", sensor_columns())]);
    call(&registry(&[&schema]), "append_rows", json!({"table": "shop.orders", "rows": rows})).await.unwrap();
    assert_eq!(schema.row_count("shop.orders"), 1);
}

#[tokio::test]
async fn texts_of_arguments_that_are_refused() {
    let (plant, creating) = (MemoryTarget::plant(), MemoryTarget::creating("lab"));
    let registry = registry(&[&plant, &creating]);
    let row = json!({"time": "2024-02-29T12:00:00Z"});
    let mut text = String::new();
    for (subject, arguments) in [
        ("no rows", json!({"database": "plant", "table": "sensors"})),
        ("numbers", json!({"database": "plant", "table": "sensors", "rows": [1]})),
        ("no database", json!({"table": "sensors", "rows": [row]})),
        ("a value that does not fit", json!({"database": "plant", "table": "sensors", "rows": [{"time": 1}]})),
        (
            "digits",
            json!({"database": "plant", "table": "sensors", "rows": [{"time": "2024-02-29T12:00:00Z", "price": 1_234_567_890_123_456.8}]}),
        ),
        ("a misspelled table", json!({"database": "lab", "table": "sensers", "rows": [row]})),
    ] {
        let error = call(&registry, "append_rows", arguments).await.unwrap_err();
        text.push_str(&format!("{subject}: {error}\n"));
    }
    insta::assert_snapshot!(text);
    let created = json!({"database": "lab", "table": "sensers", "rows": [row], "create": true});
    assert_eq!(counts(&call(&registry, "append_rows", created).await.unwrap()), (1, 0, true, false));
    assert_eq!(plant.row_count("sensors"), 0);
}

#[tokio::test]
async fn tools_that_remove_rows_are_not_called_over_mcp() {
    let plant = MemoryTarget::plant();
    let arguments = json!({"database": "plant", "table": "sensors"});
    let error = call(&registry(&[&plant]), "drop_table", arguments).await.unwrap_err();
    assert!(error.starts_with("not_found: there is no tool \"drop_table\""), "{error}");
}
