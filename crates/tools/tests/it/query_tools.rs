//! `query`, `sql`, `explain`.

use serde_json::json;

use crate::fake::{call_tool, node, shop, unreachable};

#[tokio::test]
async fn query_answers_rows() {
    let registry = node([shop()]);
    insta::assert_snapshot!(call_tool(&registry, "query", json!({"table": "orders"})).await, @r#"[{"id":1,"customer":"Ann","note":null},{"id":2,"customer":"Bob","note":"said \"hello\""},{"id":3,"customer":"Ann","note":"plain"}]"#);
    insta::assert_snapshot!(call_tool(&registry, "query", json!({"table": "orders", "limit": 2, "format": "csv"})).await, @r#"
    id,customer,note
    1,Ann,
    2,Bob,"said ""hello"""
    "#);
    insta::assert_snapshot!(call_tool(&registry, "query", json!({"table": "orders", "extract": "customer"})).await, @r#"["Ann","Bob"]"#);
}

#[tokio::test]
async fn a_limit_that_the_caller_chose_needs_no_notice() {
    let registry = node([shop()]);
    let chosen = call_tool(&registry, "query", json!({"table": "orders", "limit": 2, "format": "json"})).await;
    // Programs still see that there are more.
    assert!(chosen.contains("\"rows\":2") && chosen.contains("\"truncated\":true"), "{chosen}");
    assert!(!chosen.contains("more exist"), "{chosen}");
    let values = call_tool(&registry, "query", json!({"table": "orders", "extract": "customer", "limit": 1})).await;
    assert_eq!(values, r#"["Ann"]"#);
}

#[tokio::test]
async fn the_number_of_parameters_is_bounded() {
    let registry = node([shop()]);
    let sql = async |parameters: serde_json::Value| {
        call_tool(&registry, "sql", json!({"sql": "SELECT $1", "parameters": parameters})).await
    };
    let many = sql(json!(vec![1; 65_536])).await;
    assert!(many.contains("- parameters: has 65536 values; the maximum is 65535"), "{many}");
    let wrong = sql(json!(vec![json!({}); 65_536])).await;
    assert!(wrong.contains("- parameters[0]: {} is not of type") && wrong.lines().count() < 30, "{wrong}");
}

#[tokio::test]
async fn query_errors_suggest_fixes() {
    let registry = node([shop(), unreachable()]);
    let query = async |arguments| call_tool(&registry, "query", arguments).await;
    insta::assert_snapshot!(query(json!({"table": "orders"})).await, @r#"
    invalid_arguments: name the database to query in the argument "database"
    Valid choices: shop, warehouse
    Or write it before the table: database.table.
    "#);
    insta::assert_snapshot!(query(json!({"database": "shop", "table": "oders"})).await, @r#"
    not_found: there is no table "oders" in database "shop"
    Valid choices: orders
    "#);
    insta::assert_snapshot!(query(json!({"database": "shop", "table": "orders", "select": ["costumer"]})).await, @r#"
    invalid_arguments: the query does not match the tables:
    - select[0]: there is no column "costumer"; nearest: customer, note
    Columns of orders: id, customer, note
    "#);
    insta::assert_snapshot!(query(json!({"database": "shop", "table": "orders", "limit": "many"})).await, @r#"
    invalid_arguments: the arguments of tool "query" are wrong:
    - limit: "many" is not of type "integer"
    "#);
}

#[tokio::test]
async fn sql_answers_rows() {
    let registry = node([shop()]);
    let arguments =
        json!({"sql": "SELECT * FROM orders WHERE id > $1", "parameters": [0], "max_rows": 2, "format": "csv"});
    insta::assert_snapshot!(call_tool(&registry, "sql", arguments).await, @r#"
    id,customer,note
    1,Ann,
    2,Bob,"said ""hello"""

    Showing the first 2 rows; more exist. Narrow the statement (WHERE, GROUP BY) or raise max_rows.
    "#);
}

#[tokio::test]
async fn sql_errors_suggest_fixes() {
    let registry = node([shop()]);
    let sql = async |arguments| call_tool(&registry, "sql", arguments).await;
    insta::assert_snapshot!(sql(json!({"sql": "DROP TABLE orders"})).await, @"
    invalid_arguments: DROP TABLE is refused: it would change the schema, and only reading is allowed
    Only SELECT statements are allowed, including those with WITH, UNION or VALUES.
    ");
    insta::assert_snapshot!(sql(json!({"sql": "SELECT * FROM oders"})).await, @r#"
    not_found: there is no table "oders" in database "shop"
    Valid choices: orders
    "#);
    insta::assert_snapshot!(sql(json!({"sql": "SELECT id FROM orders WHERE id = $1"})).await, @"
    invalid_arguments: the statement has 1 placeholder ($1), but parameters has 0 values
    Give exactly one value for each placeholder, in their order.
    ");
    let arguments = json!({"sql": "SELECT id FROM orders WHERE id IN ($1, $2)", "parameters": [[1], {"a": 1}]});
    insta::assert_snapshot!(sql(arguments).await, @r#"
    invalid_arguments: the arguments of tool "sql" are wrong:
    - parameters[0]: [1] is not of type "string", "number", "boolean" or "null"
    - parameters[1]: {"a":1} is not of type "string", "number", "boolean" or "null"
    "#);
    let text = json!({"sql": "SELECT id FROM orders WHERE id IN ($1, $2)", "parameters": "[1, 2", "format": ""});
    insta::assert_snapshot!(sql(text).await, @r#"
    invalid_arguments: the arguments of tool "sql" are wrong:
    - parameters: "[1, 2" is not of type "array"
    "#);
    insta::assert_snapshot!(sql(json!({"sql": "SELECT 1", "max_rows": 0, "mode": "fast"})).await, @r#"
    invalid_arguments: the arguments of tool "sql" are wrong:
    - max_rows: 0 is less than the minimum of 1
    - mode: "fast" is not one of "streaming", "batch" or "auto"
    "#);
}

#[tokio::test]
async fn explain_shows_the_plan_of_sql_and_of_a_query() {
    let registry = node([shop()]);
    insta::assert_snapshot!(call_tool(&registry, "explain", json!({"sql": "SELECT id FROM orders"})).await, @"
    Statement: SELECT id FROM orders
    Estimated rows: 3
    Estimated bytes read: unknown
    First row: at once

    Scan: memory
    ");
    insta::assert_snapshot!(call_tool(&registry, "explain", json!({"query": {"table": "orders"}})).await, @r#"
    Statement: SELECT * FROM "orders" LIMIT 101
    Estimated rows: 3
    Estimated bytes read: unknown
    First row: at once

    Scan: memory
    "#);
}

#[tokio::test]
async fn explain_errors_suggest_fixes() {
    let registry = node([shop()]);
    let explain = async |arguments| call_tool(&registry, "explain", arguments).await;
    insta::assert_snapshot!(explain(json!({})).await, @r#"
    invalid_arguments: give either sql (with its parameters) or query, not both
    Example: {"query": {"table": "orders"}}
    "#);
    insta::assert_snapshot!(explain(json!({"sql": "SELECT 1", "query": {"table": "orders"}})).await, @r#"
    invalid_arguments: give either sql (with its parameters) or query, not both
    Example: {"query": {"table": "orders"}}
    "#);
    insta::assert_snapshot!(explain(json!({"query": {"tabel": "orders", "limit": "x"}})).await, @r#"
    invalid_arguments: the arguments of tool "explain" are wrong:
    - query.limit: "x" is not of type "integer"
    - query.tabel: is unknown; did you mean "table"?
    - query.table: is required
    "#);
}

#[tokio::test]
async fn arguments_of_the_wrong_type_are_converted_if_only_one_value_can_be_meant() {
    let registry = node([shop()]);
    let statement = async |query: serde_json::Value| {
        let explained = call_tool(&registry, "explain", json!({ "query": query })).await;
        explained.lines().next().unwrap_or_default().to_owned()
    };
    let query = json!({"table": "orders", "select": "customer", "limit": "2", "offset": "1", "distinct": "true"});
    insta::assert_snapshot!(statement(query.clone()).await, @r#"Statement: SELECT DISTINCT "customer" FROM "orders" LIMIT 3 OFFSET 1"#);
    assert!(call_tool(&registry, "query", query).await.starts_with('['));
    let sql = json!({"sql": "SELECT * FROM orders", "max_rows": "1", "format": "csv"});
    assert!(call_tool(&registry, "sql", sql).await.contains("more exist"));
}
