//! `list_functions` and `execute_function`: the tool list, arguments, counts, and answers that are too large. The system
//! tables behind them are tested with the binary.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::{Budget, CallTarget, Error, ErrorKind, Principal};
use tidegate_query::{Database, Databases, Executor};
use tidegate_results::{ResultStore, StoreLimits};
use tidegate_runtime::{Registry, event::EventDispatcher};
use tidegate_system::{
    SystemColumn, SystemColumnType, SystemParameter, SystemTable, SystemTableDescription, SystemValue,
};
use tidegate_tools::{NodeIdentity, TableFunctions, ToolServices, snapshot};

use crate::fake::{call, call_tool, collect_answer, owner, shop};
use crate::network_tools::{SOUND, network};
use crate::tool_list::listed;

/// The tokens that both tools may cost in the list.
const FUNCTION_TOKENS_MAX: usize = 700;

/// The table `orders` of the database `shop`, and one that cannot be read.
struct FakeFunctions {
    orders: SystemTableDescription,
}

impl FakeFunctions {
    fn new() -> Self {
        let column = |name, column_type| SystemColumn::new(name, column_type, "A column.");
        let orders = SystemTableDescription {
            name: "orders".into(),
            description: "Orders.".into(),
            columns: vec![
                column("id", SystemColumnType::Integer).good_filter(),
                column("customer", SystemColumnType::Text).good_filter(),
                column("note", SystemColumnType::Text).good_filter().sensitive(),
            ],
            parameters: vec![
                SystemParameter::new("region", SystemColumnType::Text, "The region.").with_options(["north", "south"]),
            ],
        };
        Self { orders }
    }
}

impl TableFunctions for FakeFunctions {
    fn database(&self) -> &str {
        "shop"
    }

    fn functions(&self, _: &Principal) -> Vec<&SystemTableDescription> {
        vec![SystemTable::Connections.description(), &self.orders]
    }

    fn grants_sensitive(&self, _: &Principal) -> bool {
        false
    }

    fn with_parameters(
        &self,
        name: &str,
        _: BTreeMap<String, SystemValue>,
        _: &Principal,
    ) -> Result<Arc<dyn Database>, Error> {
        if name == "orders" {
            return Ok(Arc::new(shop()));
        }
        Err(Error::new(ErrorKind::Unavailable, format!("{name} cannot be read")))
    }
}

fn registry(database: Option<Arc<dyn Database>>) -> Arc<Registry> {
    registry_with(Databases::new(database), None)
}

fn registry_with(databases: Databases, store: Option<Arc<ResultStore>>) -> Arc<Registry> {
    let identity = NodeIdentity { name: "tidegate".into(), title: "Tidegate".into(), version: "1.2.3".into() };
    let executor = Executor::new(EventDispatcher::default()).with_store(store);
    let functions = Some(Arc::new(FakeFunctions::new()) as Arc<dyn TableFunctions>);
    let services = ToolServices::with_functions(databases, executor, identity, functions);
    let registry = Registry::new(snapshot(&services), EventDispatcher::default());
    services.attach(&registry);
    registry
}

fn function_tools(registry: &Arc<Registry>) -> Vec<Value> {
    let snapshot = registry.snapshot();
    let caller = owner();
    let tools = snapshot.tools(&caller).filter(|tool| tool.name.ends_with("function") || tool.name == "list_functions");
    tools.map(|tool| listed(tool)).collect()
}

#[tokio::test]
async fn the_function_tools_stay_cheap() {
    let tools = function_tools(&registry(Some(Arc::new(shop()))));
    assert_eq!(tools.len(), 2);
    let text = Value::Array(tools).to_string();
    for tokenizer in [tiktoken_rs::o200k_base().unwrap(), tiktoken_rs::cl100k_base().unwrap()] {
        let tokens = tokenizer.encode_ordinary(&text).len();
        assert!(tokens < FUNCTION_TOKENS_MAX, "{tokens} tokens");
    }
}

#[tokio::test]
async fn the_function_tools_exist_only_with_their_database() {
    assert_eq!(function_tools(&registry(None)), Vec::<Value>::new());
    assert_eq!(function_tools(&crate::fake::node([shop()])), Vec::<Value>::new());
}

#[tokio::test]
async fn unknown_functions_and_logs_are_explained() {
    let registry = registry(Some(Arc::new(shop())));
    let call = |name: &str| call_tool(&registry, "execute_function", json!({"function": name}));
    let near = call("conections").await;
    assert!(near.contains("connections") && near.contains("there is no function"), "{near}");
    let log = call("systemd-journal").await;
    assert!(log.contains("list_logs_sources") && log.contains("query_logs"), "{log}");
    assert!(call("connections").await.contains("connections cannot be read"));
}

#[tokio::test]
async fn rows_beyond_the_limit_are_counted() {
    let registry = registry(Some(Arc::new(shop())));
    let limited = call_tool(&registry, "execute_function", json!({"function": "orders", "limit": 2})).await;
    assert!(limited.contains("Bob") && !limited.contains("plain"), "{limited}");
    assert!(limited.ends_with("2 of 3 rows that match."), "{limited}");
    let complete = call_tool(&registry, "execute_function", json!({"function": "orders", "limit": 3})).await;
    assert!(complete.contains("plain") && !complete.contains("rows that match"), "{complete}");
}

#[tokio::test]
async fn a_cursor_continues_in_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let limits = StoreLimits { free_bytes: 0, ..StoreLimits::default() };
    let store = ResultStore::open(folder.path(), limits).await.unwrap();
    let registry = registry_with(Databases::new([Arc::new(shop()) as Arc<dyn Database>]), Some(store));
    let first = call_tool(&registry, "execute_function", json!({"function": "orders", "limit": 2})).await;
    let (rows, rest) =
        first.split_once("2 of 3 rows that match. To continue, repeat the call with \"cursor\": \"").unwrap();
    assert!(rows.contains("Bob") && !rows.contains("plain"), "{first}");
    let (cursor, _) = rest.split_once('"').unwrap();
    let next = json!({"function": "orders", "limit": 2, "cursor": cursor});
    let second = call_tool(&registry, "execute_function", next).await;
    assert!(second.contains("plain") && !second.contains("Bob") && !second.contains("cursor"), "{second}");
    let other = json!({"function": "orders", "limit": 2, "columns": ["id"], "cursor": cursor});
    let refused = call_tool(&registry, "execute_function", other).await;
    assert!(refused.contains("the cursor belongs to a call with other arguments"), "{refused}");
}

#[tokio::test]
async fn a_node_without_functions_is_explained() {
    let sites = network("sites", &[("oslo", SOUND)]);
    let registry = registry_with(Databases::new([Arc::new(shop()) as Arc<dyn Database>, sites]), None);
    for tool in ["list_functions", "execute_function"] {
        let unknown = call_tool(&registry, tool, json!({"function": "orders", "node": "olso"})).await;
        assert!(unknown.contains("there is no node \"olso\"") && unknown.contains("oslo"), "{unknown}");
        // Its table with the name of a function has other columns.
        let without = call_tool(&registry, tool, json!({"function": "orders", "node": "oslo"})).await;
        assert!(without.contains("the node \"oslo\" has no functions for you"), "{without}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_has_an_example_and_advice() {
    let registry = registry(Some(Arc::new(shop())));
    let arguments = json!({"function": "orders", "conditions": [["id", "<", 9]]});
    let mut call = call(CallTarget::Tool("execute_function".to_owned()), arguments);
    call.inline_limit = Budget { rows: None, bytes: Some(30) };
    let answer = collect_answer(registry.call(call).unwrap()).await.unwrap();
    insta::assert_snapshot!(answer.texts.join("\n"), @r#"
    The answer has 3 rows (3 match) and about 61 bytes; at most 30 fit.
    One row as an example:
    {"id": 1, "customer": "Ann", "note": null}
    Add conditions, select fewer columns, or use a limit of 1. Good filters:
    - customer (=, !=, match, not match)
    "#);
}

#[tokio::test]
async fn all_problems_are_reported_at_once() {
    let registry = registry(Some(Arc::new(shop())));
    let arguments = json!({
        "function": "orders",
        "columns": ["custmer", "note"],
        "sort": ["id", {"column": "id", "direction": "down"}],
        "conditions": [
            ["customer", "like", "a"],
            ["id", "=", "x"],
            ["note", "=", null],
            ["customer", "<", null],
            ["id", "match", "1*"],
            ["customer", "match", "|"],
            ["id = 1"]
        ],
        "parameters": {"region": "east", "regoin": "north"}
    });
    insta::assert_snapshot!(call_tool(&registry, "execute_function", arguments).await, @r#"
    invalid_arguments: the request for "orders" has 11 problems:
    columns[0]: column "custmer" is unknown; did you mean "customer"?
    sort[1].direction: expected one of asc, desc, got "down"
    conditions[0][1]: unknown operator "like"; valid are =, !=, <, <=, >, >=, match, not match
    conditions[1][2]: must be a number, as column "id" has the type integer
    conditions[2][0]: column "note" is masked for you, so that it can only be selected
    conditions[3][2]: null can only be compared with = and !=
    conditions[4][2]: only text can match, and column "id" is integer
    conditions[5][2]: must be a pattern such as "post*|*sql"
    conditions[6]: must be a list of three: [column, operator, value]
    parameters.region: must be "north" or "south"
    parameters.regoin: is unknown; did you mean "region"?
    "#);
    let mistyped = json!({"function": "orders", "columns": [7], "conditions": ["id = 1"]});
    insta::assert_snapshot!(call_tool(&registry, "execute_function", mistyped).await, @r#"
    invalid_arguments: the arguments of tool "execute_function" are wrong:
    - columns[0]: 7 is not of type "string"
    "#);
    let sorted = json!({"function": "orders", "sort": ["note"], "columns": vec!["id"; 101]});
    insta::assert_snapshot!(call_tool(&registry, "execute_function", sorted).await, @r#"
    invalid_arguments: the request for "orders" has 2 problems:
    columns: has 101 items; at most 100 are allowed
    sort[0]: column "note" is masked for you, so that it can only be selected
    "#);
}
