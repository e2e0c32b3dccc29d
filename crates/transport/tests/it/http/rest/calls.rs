//! The call that results from each request, and the format of its answer.

use serde_json::json;

use super::fixture::{get, post, request, script, start, summary};

#[tokio::test]
async fn every_path_calls_a_tool() {
    let server = start().await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for (method, path) in [
        ("GET", "/rest/databases"),
        ("GET", "/rest/databases/shop/tables"),
        ("GET", "/rest/databases/shop/tables?pattern=ord*&extract=name"),
        ("GET", "/rest/databases/a%2Fb/tables/odd%20%C3%A9%22?samples=3"),
        ("GET", "/rest/databases/shop/tables/orders/rows?limit=5&select=id,%20total&order_by=-id&where=id%20%3E%201"),
        ("GET", "/rest/jobs"),
        ("GET", "/rest/jobs/7"),
        ("DELETE", "/rest/jobs/7"),
        ("POST", "/rest/query"),
    ] {
        let answer = connection.ask(&request(method, path, &[], "")).await;
        table.push_str(&format!("{method} {path}\n  {}\n", answer.text()));
        assert_eq!(answer.head.status, 200);
    }
    insta::assert_snapshot!(table, @r#"
    GET /rest/databases
      {"tool":"list_databases","arguments":{},"format":"json"}
    GET /rest/databases/shop/tables
      {"tool":"list_tables","arguments":{"database":"shop"},"format":"json"}
    GET /rest/databases/shop/tables?pattern=ord*&extract=name
      {"tool":"list_tables","arguments":{"pattern":"ord*","extract":"name","database":"shop"},"format":"json"}
    GET /rest/databases/a%2Fb/tables/odd%20%C3%A9%22?samples=3
      {"tool":"get_schema","arguments":{"samples":3,"database":"a/b","table":"odd é\""},"format":"json"}
    GET /rest/databases/shop/tables/orders/rows?limit=5&select=id,%20total&order_by=-id&where=id%20%3E%201
      {"tool":"query","arguments":{"limit":5,"select":["id","total"],"order_by":["-id"],"where":"id > 1","database":"shop","table":"orders"},"format":"json"}
    GET /rest/jobs
      {"tool":"list_jobs","arguments":{},"format":"json"}
    GET /rest/jobs/7
      {"tool":"list_jobs","arguments":{"id":"7"},"format":"json"}
    DELETE /rest/jobs/7
      {"tool":"cancel_job","arguments":{"id":"7"},"format":"json"}
    POST /rest/query
      {"tool":"query","arguments":{},"format":"json"}
    "#);
}

#[tokio::test]
async fn reads_arguments_from_json_or_plain_sql() {
    let server = start().await;
    let mut connection = server.connect().await;
    let sql = "SELECT 'é' AS \"x\"";
    let mut table = String::new();
    for request in [
        post("/rest/tools/query/call", &json!({"table": "orders", "limit": 5})),
        post("/rest/query", &json!({"table": "orders"})),
        post("/rest/sql", &json!({"sql": sql})),
        request("POST", "/rest/sql?max_rows=5&database=shop", &[("Content-Type", "application/sql")], sql),
        request("POST", "/rest/sql", &[("Content-Type", "text/plain; charset=UTF-8")], sql),
        request("POST", "/rest/tools/sql/call", &[("Content-Type", "Application/JSON;charset=utf-8")], "{}"),
    ] {
        table.push_str(&format!("{}\n", summary(&connection.ask(&request).await)));
    }
    insta::assert_snapshot!(table, @r#"
    200 application/json {"tool":"query","arguments":{"table":"orders","limit":5},"format":"json"}
    200 application/json {"tool":"query","arguments":{"table":"orders"},"format":"json"}
    200 application/json {"tool":"sql","arguments":{"sql":"SELECT 'é' AS \"x\""},"format":"json"}
    200 application/json {"tool":"sql","arguments":{"max_rows":5,"database":"shop","sql":"SELECT 'é' AS \"x\""},"format":"json"}
    200 application/json {"tool":"sql","arguments":{"sql":"SELECT 'é' AS \"x\""},"format":"json"}
    200 application/json {"tool":"sql","arguments":{},"format":"json"}
    "#);
}

#[tokio::test]
async fn format_parameter_overrides_accept() {
    let server = start().await;
    let mut connection = server.connect().await;
    let mut table = String::new();
    for (accept, parameters) in [
        (None, ""),
        (Some("*/*"), ""),
        (Some("text/csv"), ""),
        (Some("application/x-ndjson"), ""),
        (Some("application/vnd.apache.arrow.stream"), ""),
        (Some("application/vnd.apache.parquet"), ""),
        (Some("text/plain"), ""),
        (Some("text/markdown, application/json;q=0.9"), ""),
        (Some("application/json"), "?format=csv"),
        (Some("application/xml"), "?format=arrow"),
        (Some("text/csv"), "?format=mcp"),
    ] {
        let headers: Vec<_> = accept.map(|accept| ("Accept", accept)).into_iter().collect();
        let answer = connection.ask(&request("GET", &format!("/rest/jobs{parameters}"), &headers, "")).await;
        let requested: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        let media_type = answer.header("content-type").unwrap();
        table.push_str(&format!("{:45} {parameters:13} {} {media_type}\n", accept.unwrap_or("-"), requested["format"]));
    }
    insta::assert_snapshot!(table, @r#"
    -                                                           "json" application/json
    */*                                                         "json" application/json
    text/csv                                                    "csv" text/csv
    application/x-ndjson                                        "ndjson" application/x-ndjson
    application/vnd.apache.arrow.stream                         "arrow" application/vnd.apache.arrow.stream
    application/vnd.apache.parquet                              "parquet" application/vnd.apache.parquet
    text/plain                                                  "table" text/plain
    text/markdown, application/json;q=0.9                       "markdown" text/markdown
    application/json                              ?format=csv   "csv" text/csv
    application/xml                               ?format=arrow "arrow" application/vnd.apache.arrow.stream
    text/csv                                      ?format=mcp   "mcp" application/json
    "#);
}

#[tokio::test]
async fn head_returns_headers_only() {
    let server = start().await;
    let mut connection = server.connect().await;
    connection.send(&request("HEAD", "/rest/databases", &[], "")).await;
    let head = connection.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("application/json")));
    // The next response follows immediately, so there was no body.
    assert_eq!(connection.ask(&get("/rest/jobs")).await.head.status, 200);
}

#[tokio::test]
async fn answer_carries_its_job_id() {
    let server = start().await;
    let answer = server.rest(&script(json!([["text", "hello"]]), &[])).await;
    assert_eq!(answer.header("tidegate-job").unwrap().len(), 36);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
    server.rest(&get("/rest/nothing")).await;
    let calls = r#"tidegate_calls_total{kind="tool",name="script",outcome="done",transport="rest"}"#;
    assert_eq!(server.figure(calls).await, "1");
    assert_eq!(server.figure(r#"tidegate_messages_refused_total{transport="rest"}"#).await, "1");
}
