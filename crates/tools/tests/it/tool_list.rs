//! The tool list, and what it costs in every conversation.

use serde_json::{Map, Value, json};
use tidegate_core::AllowedNames;
use tidegate_runtime::{SnapshotBuilder, Tool};
use tidegate_tools::{
    INSTRUCTIONS, LogSource, LogSources, MetricSource, MetricSourceKind, MetricSources, MetricTable,
    entries_of_every_server, register_log_tools, register_metric_tools,
};

use crate::fake::{call_tool, node, owner, services, shop};

/// The tokens that the list may cost.
const LIST_TOKENS_MAX: usize = 1_450;

/// A tool as in `tools/list`.
pub(crate) fn listed(tool: &Tool) -> Value {
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
    let text = Value::Array(list()).to_string();
    for tokenizer in [tiktoken_rs::o200k_base().unwrap(), tiktoken_rs::cl100k_base().unwrap()] {
        let tokens = tokenizer.encode_ordinary(&text).len();
        assert!(tokens < LIST_TOKENS_MAX, "{tokens} tokens");
    }
}

/// The tokens that the four log tools may cost.
const LOG_TOOLS_TOKENS_MAX: usize = 1_200;

#[tokio::test]
async fn the_log_tools_stay_cheap_and_exist_only_with_a_source() {
    let services = services([shop()]);
    let tools = |sources: Vec<LogSource>| {
        let sources = LogSources::new(sources);
        let builder = register_log_tools(SnapshotBuilder::new(), &services, &sources, &AllowedNames::Everything);
        builder.build().tools(&owner()).map(|tool| listed(tool)).collect::<Vec<_>>()
    };
    let source = |database: &str| LogSource {
        name: "app".to_owned(),
        database: database.to_owned(),
        table: "orders".to_owned(),
        ..LogSource::default()
    };
    assert!(tools(Vec::new()).is_empty());
    assert!(tools(vec![source("elsewhere")]).is_empty());
    let listed = tools(vec![source("shop")]);
    assert_eq!(listed.len(), 4);
    let text = Value::Array(listed).to_string();
    for tokenizer in [tiktoken_rs::o200k_base().unwrap(), tiktoken_rs::cl100k_base().unwrap()] {
        let tokens = tokenizer.encode_ordinary(&text).len();
        assert!(tokens < LOG_TOOLS_TOKENS_MAX, "{tokens} tokens");
    }
}

/// The tokens that the three metric tools may cost.
const METRIC_TOOLS_TOKENS_MAX: usize = 750;
/// The tokens that the list may cost with the tools of logs and metrics.
const WHOLE_LIST_TOKENS_MAX: usize = 3_100;

#[tokio::test]
async fn the_metric_tools_stay_cheap_and_exist_only_with_a_source() {
    let services = services([shop()]);
    let tools = |sources: Vec<MetricSource>| {
        let sources = MetricSources::new(sources);
        let builder = register_metric_tools(SnapshotBuilder::new(), &services, &sources, &AllowedNames::Everything);
        builder.build().tools(&owner()).map(|tool| listed(tool)).collect::<Vec<_>>()
    };
    let table = |database: &str| {
        let (database, table) = (database.to_owned(), "orders".to_owned());
        let kind = MetricSourceKind::Table(Box::new(MetricTable { database, table, ..MetricTable::default() }));
        MetricSource { name: "plant".to_owned(), access: Vec::new(), kind }
    };
    assert!(tools(Vec::new()).is_empty());
    assert!(tools(vec![table("elsewhere")]).is_empty());
    let metric_tools = tools(vec![table("shop")]);
    assert_eq!(metric_tools.len(), 3);
    let logs = LogSources::new([LogSource {
        name: "app".to_owned(),
        database: "shop".to_owned(),
        table: "orders".to_owned(),
        ..LogSource::default()
    }]);
    let log_tools = register_log_tools(SnapshotBuilder::new(), &services, &logs, &AllowedNames::Everything).build();
    let log_tools: Vec<Value> = log_tools.tools(&owner()).map(|tool| listed(tool)).collect();
    let whole = Value::Array([list(), log_tools, metric_tools.clone()].concat()).to_string();
    let metric_tools = Value::Array(metric_tools).to_string();
    for tokenizer in [tiktoken_rs::o200k_base().unwrap(), tiktoken_rs::cl100k_base().unwrap()] {
        for (text, max) in [(&metric_tools, METRIC_TOOLS_TOKENS_MAX), (&whole, WHOLE_LIST_TOKENS_MAX)] {
            let tokens = tokenizer.encode_ordinary(text).len();
            assert!(tokens < max, "{tokens} tokens");
        }
    }
}

#[tokio::test]
async fn rarely_used_arguments_are_accepted_though_unlisted() {
    let registry = node([shop()]);
    let arguments = json!({"sql": "SELECT 1", "mode": "batch", "delivery": "inline", "no_cache": true});
    assert!(!call_tool(&registry, "sql", arguments.clone()).await.contains("wrong"));
    let snapshot = registry.snapshot();
    let sql = snapshot.tool("sql", &owner()).unwrap();
    let has = |schema: &Value| ["mode", "delivery", "no_cache"].map(|name| schema["properties"].get(name).is_some());
    assert_eq!(has(sql.input_schema.json()), [false; 3]);
    assert_eq!(has(sql.call_schema().json()), [true; 3]);
    let advanced = SnapshotBuilder::new().tool(Tool::clone(sql)).list_all_arguments(true).build();
    assert_eq!(has(advanced.tool("sql", &owner()).unwrap().input_schema.json()), [true; 3]);
}

#[test]
fn instructions_snapshot() {
    insta::assert_snapshot!(INSTRUCTIONS);
    assert!(INSTRUCTIONS.chars().count() < 2_000);
    let registered = entries_of_every_server();
    let words = INSTRUCTIONS.split(|c: char| !c.is_alphanumeric() && !"_{}".contains(c));
    for name in words.filter(|word| word.contains('_') && !word.starts_with('{')) {
        assert!(registered.has_tool(name), "the instructions name {name}");
    }
}
