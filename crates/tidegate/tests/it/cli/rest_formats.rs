//! The format of an answer of REST, which the query string, the body or `Accept` name.

use reqwest::{Client, Response};
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::serve;
use super::server::Server;

const CONFIGURATION: &str = "databases: [{name: shop, files: shop}]\n";
const ROWS: &str = r#"[{"n":1},{"n":2}]"#;

async fn call(server: &Server, tool: &str, parameters: &str, mut arguments: Value) -> Response {
    let url = server.url.replace("/mcp", &format!("/rest/tools/{tool}/call{parameters}"));
    if tool == "sql" {
        arguments["sql"] = "SELECT 1 AS n UNION ALL SELECT 2 ORDER BY n".into();
    }
    Client::new().post(url).header("accept", "text/csv, application/json;q=0.9").json(&arguments).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn bare_rows_are_requested_by_parameter_or_by_body() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = serve(&configured);
    let cases = [
        ("?format=mcp", json!({}), ROWS),
        ("", json!({"format": "mcp"}), ROWS),
        ("?format=csv", json!({"format": "mcp"}), ROWS),
        ("?format=mcp", json!({"format": "ndjson"}), "{\"n\":1}\n{\"n\":2}\n"),
        ("?format=mcp", json!({"extract": "n"}), "[1,2]"),
        ("", json!({"format": ""}), "n\r\n1\r\n2\r\n"),
    ];
    for (parameters, arguments, expected) in cases {
        let response = call(&server, "sql", parameters, arguments.clone()).await;
        let is_json = expected.starts_with('[');
        let media_type = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!(media_type == "application/json", is_json, "{parameters} {arguments}: {media_type}");
        assert_eq!(response.text().await.unwrap(), expected, "{parameters} {arguments}");
    }
    // An answer that is no table has the form that it has as `json`.
    let content = call(&server, "explain", "?format=mcp", json!({"sql": "SELECT 1 AS n"})).await;
    assert_eq!(content.status(), 200);
    assert!(content.json::<Value>().await.unwrap()["content"].is_array());
}

#[tokio::test(flavor = "multi_thread")]
async fn formats_that_do_not_exist_are_refused_with_those_that_do() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = serve(&configured);
    for (tool, parameters, arguments) in [
        ("sql", "?format=xml", json!({})),
        ("sql", "", json!({"format": "xml"})),
        ("sql", "", json!({"format": "parquet"})),
        ("sql", "?format=mcp", json!({"format": "xml"})),
        ("query", "", json!({"table": "orders", "format": "xml"})),
        ("list_tables", "", json!({"format": "xml"})),
        ("list_databases", "?format=json", json!({"format": "xml"})),
    ] {
        let response = call(&server, tool, parameters, arguments.clone()).await;
        assert!(response.status().is_client_error(), "{tool}{parameters} {arguments}: {}", response.status());
        let problem = response.text().await.unwrap();
        assert!(["mcp", "json", "csv"].iter().all(|name| problem.contains(name)), "{tool} {arguments}: {problem}");
    }
}
