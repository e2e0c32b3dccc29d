//! `list_databases`, `list_tables`, `get_schema`.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tidegate_runtime::Registry;
use tidegate_runtime::event::{Event, EventDispatcher, Subscriber};
use tidegate_tools::snapshot;

use crate::fake::{call_tool, node, services, shop, tables_with_ids, typed_values_database, unreachable};

/// The details of errors that the log has.
#[derive(Default)]
struct ErrorDetails(Mutex<Vec<String>>);

impl Subscriber for ErrorDetails {
    fn on_event(&self, event: Event<'_>) {
        if let Event::ErrorDetail { detail, .. } = event {
            self.0.lock().push(detail.to_owned());
        }
    }
}

#[tokio::test]
async fn databases_are_listed_with_their_state() {
    let registry = node([shop(), unreachable()]);
    insta::assert_snapshot!(call_tool(&registry, "list_databases", json!({"format": "ndjson"})).await, @r#"
    {"name":"shop","kind":"memory","dialect":"PostgreSQL (embedded engine)","tables":5,"status":"1 table cannot be read; see list_tables"}
    {"name":"warehouse","kind":"memory","dialect":"PostgreSQL (embedded engine)","tables":null,"status":"the disk is away"}
    "#);
}

#[tokio::test]
async fn unreadable_tables_are_listed_with_the_reason() {
    let registry = node([shop(), unreachable()]);
    insta::assert_snapshot!(call_tool(&registry, "list_tables", json!({"format": "ndjson"})).await, @r#"
    {"database":"shop","name":"broken","rows":null,"comment":"cannot be read: line 3 has 4 fields, not 3"}
    {"database":"shop","name":"customers","rows":2,"comment":null}
    {"database":"shop","name":"endless","rows":2,"comment":null}
    {"database":"shop","name":"odd \"name\", 2024","rows":2,"comment":null}
    {"database":"shop","name":"orders","rows":3,"comment":"One row an order"}
    {"database":"warehouse","name":null,"rows":null,"comment":"the database cannot be read: the disk is away"}
    "#);
}

#[tokio::test]
async fn a_pattern_is_a_glob_or_a_part_of_the_name() {
    let registry = node([shop()]);
    let names =
        async |pattern: &str| call_tool(&registry, "list_tables", json!({"pattern": pattern, "extract": "name"})).await;
    assert_eq!(names("ord*").await, r#"["orders"]"#);
    assert_eq!(names("ORD").await, r#"["orders"]"#);
    assert_eq!(names("rder").await, r#"["orders"]"#);
    assert_eq!(names("rder*").await, "[]");
}

#[tokio::test]
async fn a_model_gets_no_nulls_and_what_a_word_found() {
    let registry = node([shop()]);
    let list = async |pattern: &str| call_tool(&registry, "list_tables", json!({"pattern": pattern})).await;
    // By its comment, and by a column, whose name is then a part of the answer.
    assert_eq!(list("row an").await, r#"[{"name":"orders","rows":3,"comment":"One row an order"}]"#);
    assert_eq!(list("note").await, r#"[{"name":"orders","rows":3,"comment":"One row an order","columns":"note"}]"#);
    assert_eq!(
        list("customer").await,
        r#"[{"name":"customers","rows":2},{"name":"orders","rows":3,"comment":"One row an order","columns":"customer"}]"#
    );
    assert_eq!(list("note missing").await, "[]");
    let every_column = call_tool(&registry, "list_tables", json!({"pattern": "note", "format": "ndjson"})).await;
    assert_eq!(every_column.trim_end(), r#"{"database":"shop","name":"orders","rows":3,"comment":"One row an order"}"#);
}

/// Two tables are read together with one that takes too long; the last one would be read after them.
#[tokio::test(start_paused = true)]
async fn a_search_of_columns_ends_in_time_and_names_what_it_has_not_searched() {
    let mut names = vec!["a", "slow", "b"];
    names.extend(["other"; 13]);
    names.push("last");
    let registry = node([tables_with_ids(&names)]);
    let answer = call_tool(&registry, "list_tables", json!({"pattern": "id a"})).await;
    assert_eq!(
        answer,
        "[{\"name\":\"a\",\"rows\":1,\"columns\":\"id\"}]\nNotes:\n- The columns of 2 tables were not read within 3 seconds, \
         and only their names and comments were searched. What was read of files is kept: repeat the call, or use a glob of \
         the name."
    );
    let by_name = call_tool(&registry, "list_tables", json!({"pattern": "la*"})).await;
    assert_eq!(by_name, r#"[{"name":"last","rows":1}]"#);
}

#[tokio::test]
async fn the_log_has_the_detail_of_an_error_within_an_answer() {
    for tool in ["list_databases", "list_tables"] {
        let (details, services) = (Arc::new(ErrorDetails::default()), services([shop(), unreachable()]));
        let events = EventDispatcher::new([details.clone() as Arc<dyn Subscriber>]);
        let registry = Registry::new(snapshot(&services), events);
        services.attach(&registry);
        let answer = call_tool(&registry, tool, json!({})).await;
        assert!(answer.contains("the disk is away") && !answer.contains("detail of"), "{answer}");
        assert_eq!(*details.0.lock(), ["detail of warehouse"], "{tool}");
    }
}

#[tokio::test]
async fn an_unreachable_database_is_an_error_when_it_is_requested_by_name() {
    let registry = node([shop(), unreachable()]);
    insta::assert_snapshot!(call_tool(&registry, "list_tables", json!({"database": "warehouse"})).await, @"unavailable: the disk is away");
    insta::assert_snapshot!(call_tool(&registry, "list_tables", json!({"database": "shpo"})).await, @r#"
    not_found: there is no database "shpo"
    Valid choices: shop
    "#);
}

#[tokio::test]
async fn a_schema_names_columns_and_types() {
    let registry = node([shop()]);
    insta::assert_snapshot!(call_tool(&registry, "get_schema", json!({"table": "orders", "format": "ndjson"})).await, @r#"
    {"name":"id","type":"INT64","nullable":true,"comment":null}
    {"name":"customer","type":"UTF8","nullable":true,"comment":null}
    {"name":"note","type":"UTF8","nullable":true,"comment":null}
    "#);
}

#[tokio::test]
async fn samples_are_distinct_values() {
    let registry = node([shop()]);
    let arguments = json!({"table": "orders", "samples": 2, "format": "ndjson"});
    insta::assert_snapshot!(call_tool(&registry, "get_schema", arguments).await, @r#"
    {"name":"id","type":"INT64","nullable":true,"comment":null,"samples":["1","2"]}
    {"name":"customer","type":"UTF8","nullable":true,"comment":null,"samples":["Ann","Bob"]}
    {"name":"note","type":"UTF8","nullable":true,"comment":null,"samples":["said \"hello\"","plain"]}
    "#);
    let arguments = json!({"table": "odd \"name\", 2024", "samples": 5, "format": "csv"});
    insta::assert_snapshot!(call_tool(&registry, "get_schema", arguments).await, @r#"
    name,type,nullable,comment,samples
    name,UTF8,false,,"[""Ann"",""Bob""]"
    "#);
}

#[tokio::test]
async fn samples_keep_typed_values() {
    let registry = node([typed_values_database()]);
    let arguments = json!({"table": "values", "samples": 5, "extract": "samples"});
    assert_eq!(call_tool(&registry, "get_schema", arguments).await, r#"[["north","10","two\nlines","YWI="]]"#);
}

#[tokio::test]
async fn missing_schema_error_gives_the_reason() {
    let registry = node([shop(), unreachable()]);
    let schema = async |arguments| call_tool(&registry, "get_schema", arguments).await;
    insta::assert_snapshot!(schema(json!({"database": "shop", "table": "oders"})).await, @r#"
    not_found: there is no table "oders" in database "shop"
    Valid choices: orders
    "#);
    insta::assert_snapshot!(schema(json!({"database": "shop", "table": "broken"})).await, @"unavailable: line 3 has 4 fields, not 3");
    insta::assert_snapshot!(schema(json!({"table": "orders"})).await, @r#"
    invalid_arguments: name the database to query in the argument "database"
    Valid choices: shop, warehouse
    Or write it before the table: database.table.
    "#);
    insta::assert_snapshot!(schema(json!({"database": "shop", "samples": true, "tabel": 3})).await, @r#"
    invalid_arguments: the arguments of tool "get_schema" are wrong:
    - samples: true is not of type "integer"
    - tabel: is unknown; did you mean "table"?
    - table: is required
    "#);
}

#[tokio::test]
async fn empty_node_lists_no_databases() {
    let registry = node([]);
    assert_eq!(call_tool(&registry, "list_databases", json!({})).await, "[]");
    insta::assert_snapshot!(call_tool(&registry, "get_schema", json!({"table": "orders"})).await, @"not_found: there are no databases to query");
}

#[tokio::test]
async fn a_wrong_format_or_extract_names_the_choices() {
    let registry = node([shop()]);
    insta::assert_snapshot!(call_tool(&registry, "list_tables", json!({"format": "xml"})).await, @r#"
    invalid_arguments: there is no format "xml"
    Valid choices: mcp, json, table, csv, markdown, ndjson, toon
    "#);
    insta::assert_snapshot!(call_tool(&registry, "list_tables", json!({"extract": "nmae"})).await, @r#"
    invalid_arguments: extract: the answer has no column "nmae"
    Valid choices: name, database, rows, comment
    "#);
}

#[tokio::test]
async fn one_schema_describes_several_tables() {
    let registry = node([shop()]);
    let schema = async |arguments| call_tool(&registry, "get_schema", arguments).await;
    insta::assert_snapshot!(schema(json!({"table": ["customers", "shop.orders"], "samples": "2", "format": "csv"})).await, @r#"
    table,name,type,nullable,comment,samples
    customers,name,UTF8,false,,"[""Ann"",""Bob""]"
    shop.orders,id,INT64,true,,"[""1"",""2""]"
    shop.orders,customer,UTF8,true,,"[""Ann"",""Bob""]"
    shop.orders,note,UTF8,true,,"[""said \""hello\"""",""plain""]"
    "#);
    insta::assert_snapshot!(schema(json!({"table": ["customers", "oders"]})).await, @r#"
    not_found: there is no table "oders" in database "shop"
    Valid choices: orders
    "#);
    insta::assert_snapshot!(schema(json!({"table": []})).await, @"invalid_arguments: table has 0 names; expected 1 to 100");
}

#[tokio::test]
async fn the_name_of_the_database_may_come_before_a_table() {
    let registry = node([shop(), unreachable()]);
    let names = r#"["customer","id","note"]"#;
    for arguments in [
        json!({"table": "shop.orders", "extract": "name"}),
        json!({"database": "shop", "table": "shop.orders", "extract": "name"}),
        json!({"database": "shop", "table": "orders", "extract": "name"}),
    ] {
        assert_eq!(call_tool(&registry, "get_schema", arguments).await, names);
    }
    let customers = r#"["Ann","Bob"]"#;
    let query = json!({"table": "shop.orders", "select": "shop.orders.customer", "extract": "customer"});
    assert_eq!(call_tool(&registry, "query", query.clone()).await, customers);
    let explained = call_tool(&registry, "explain", json!({ "query": query })).await;
    assert!(explained.starts_with("Statement: SELECT \"customer\" FROM \"orders\""), "{explained}");
    for sql in ["SELECT orders.customer FROM shop.orders", "SELECT shop.orders.customer FROM Shop.orders"] {
        let answer = call_tool(&registry, "sql", json!({"sql": sql, "extract": "customer"})).await;
        assert_eq!(answer, customers);
        let explained = call_tool(&registry, "explain", json!({ "sql": sql })).await;
        assert!(explained.starts_with("Statement: SELECT orders.customer FROM orders\n"), "{explained}");
    }
    insta::assert_snapshot!(call_tool(&registry, "get_schema", json!({"table": "orders"})).await, @r#"
    invalid_arguments: name the database to query in the argument "database"
    Valid choices: shop, warehouse
    Or write it before the table: database.table.
    "#);
    let sql = json!({"sql": "SELECT * FROM shop.orders, warehouse.stock"});
    insta::assert_snapshot!(call_tool(&registry, "sql", sql).await, @"
    invalid_arguments: the tables are in several databases, and there is no federated database to join them
    Query each database by itself.
    ");
    insta::assert_snapshot!(call_tool(&registry, "get_schema", json!({"table": "shop.oders"})).await, @r#"
    not_found: there is no table "oders" in database "shop"
    Valid choices: orders
    "#);
}
