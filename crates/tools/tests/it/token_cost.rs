//! The tokens that the catalog of a hundred tables costs, counted with two tokenizers.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_core::{Error, Principal};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, Databases, Executor, Plan, TableEntry, TableStatus,
};
use tidegate_runtime::{Registry, event::EventDispatcher};
use tidegate_sql::{SqlDialect, Statement};
use tidegate_tools::{NodeIdentity, ToolServices, snapshot};

use crate::fake::call_tool;

/// Tokens that a list of a hundred tables may cost.
const TOKENS_MAX: usize = 2_000;

/// A realistic set of tables in six schemas, that of the search path first, a third with a comment.
const TABLES: &str = include_str!("hundred_tables.tsv");

/// A PostgreSQL database with tables only.
struct Hundred;

impl Hundred {
    fn entry(line: &str) -> TableEntry {
        let [name, rows, comment] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line:?}") };
        TableEntry {
            name: name.to_owned(),
            rows: rows.parse().ok(),
            comment: Some(comment.to_owned()).filter(|comment| !comment.is_empty()),
            facts: None,
            status: TableStatus::Readable,
        }
    }
}

#[async_trait]
impl Database for Hundred {
    fn name(&self) -> &str {
        "shop"
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Postgres
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::Postgres
    }

    async fn catalog(&self, _: &Principal) -> Result<Arc<Catalog>, Error> {
        Ok(Arc::new(Catalog::from_tables(TABLES.lines().map(Self::entry).collect())))
    }

    async fn columns(&self, _: &str, _: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        panic!("columns are not read")
    }

    async fn plan(&self, _: &Statement, _: &Principal) -> Result<Box<dyn Plan>, Error> {
        panic!("no query is planned")
    }
}

async fn listed(arguments: Value) -> String {
    let identity = NodeIdentity { name: "tidegate".into(), title: "Tidegate".into(), version: "1.2.3".into() };
    let services = ToolServices::new(
        Databases::new([Arc::new(Hundred) as Arc<dyn Database>]),
        Executor::new(EventDispatcher::default()),
        identity,
    );
    let registry = Registry::new(snapshot(&services), EventDispatcher::default());
    services.attach(&registry);
    call_tool(&registry, "list_tables", arguments).await
}

#[tokio::test]
async fn a_hundred_tables_fit_in_two_thousand_tokens() {
    assert_eq!(TABLES.lines().count(), 100);
    let tokenizers = [tiktoken_rs::o200k_base().unwrap(), tiktoken_rs::cl100k_base().unwrap()];
    for arguments in [json!({}), json!({"database": "shop"})] {
        let text = listed(arguments).await;
        let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(rows.len(), 100);
        for tokenizer in &tokenizers {
            let tokens = tokenizer.encode_ordinary(&text).len();
            // Fewer tokens would mean that another list was counted.
            assert!((1_000..=TOKENS_MAX).contains(&tokens), "{tokens} tokens");
        }
    }
}

#[tokio::test]
async fn a_program_that_asks_for_a_format_gets_every_column() {
    let text = listed(json!({"format": "ndjson", "pattern": "shipping.carrier*"})).await;
    insta::assert_snapshot!(text, @r#"
    {"database":"shop","name":"shipping.carrier_rates","rows":1691,"comment":"Prices of carriers by weight and zone"}
    {"database":"shop","name":"shipping.carriers","rows":804970,"comment":null}
    "#);
    let text = listed(json!({"pattern": "shipping.carrier*"})).await;
    insta::assert_snapshot!(text, @r#"[{"name":"shipping.carrier_rates","rows":1691,"comment":"Prices of carriers by weight and zone"},{"name":"shipping.carriers","rows":804970}]"#);
}
