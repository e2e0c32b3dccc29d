//! `list_functions` and `execute_function` in the tool list. The system tables behind them are tested with the binary.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{Database, Databases, Executor};
use tidegate_runtime::{Job, Registry, event::EventDispatcher};
use tidegate_system::{FunctionRequest, RequestViolations, SystemTable, SystemTableDescription};
use tidegate_tools::{FunctionRows, FunctionSource, NodeIdentity, ToolContext, snapshot};

use crate::fake::{call_tool, owner, shop};
use crate::tool_list::listed;

/// The tokens that both tools may cost in the list.
const FUNCTION_TOKENS_MAX: usize = 700;

/// One table of the database `shop`, which cannot be read.
struct FakeFunctions;

#[async_trait]
impl FunctionSource for FakeFunctions {
    fn database(&self) -> &str {
        "shop"
    }

    fn functions(&self, _: &Principal) -> Vec<&SystemTableDescription> {
        vec![SystemTable::Connections.description()]
    }

    fn validate(
        &self,
        _: &str,
        arguments: &Map<String, Value>,
        _: &Principal,
    ) -> Result<Result<FunctionRequest, RequestViolations>, Error> {
        Ok(FunctionRequest::validate(SystemTable::Connections.description(), arguments, false))
    }

    async fn run(&self, name: &str, _: FunctionRequest, _: &Arc<Job>) -> Result<FunctionRows, Error> {
        Err(Error::new(ErrorKind::Unavailable, format!("{name} cannot be read")))
    }
}

fn registry(database: Option<Arc<dyn Database>>) -> Arc<Registry> {
    let identity = NodeIdentity { name: "tidegate".into(), title: "Tidegate".into(), version: "1.2.3".into() };
    let executor = Executor::new(EventDispatcher::default());
    let functions = Some(Arc::new(FakeFunctions) as Arc<dyn FunctionSource>);
    let view = ToolContext::with_functions(Databases::new(database), executor, identity, functions);
    let registry = Registry::new(snapshot(&view), EventDispatcher::default());
    view.attach(&registry);
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
    let call = |name: &str| call_tool(&registry, "execute_function", serde_json::json!({"function": name}));
    let near = call("conections").await;
    assert!(near.contains("connections") && near.contains("there is no function"), "{near}");
    let log = call("systemd-journal").await;
    assert!(log.contains("list_logs_sources") && log.contains("query_logs"), "{log}");
    assert!(call("connections").await.contains("connections cannot be read"));
}
