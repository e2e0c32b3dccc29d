//! Answers whose rows are divided into several text items, as a foreign client reads them.

use rmcp::model::{CallToolRequestParams, CallToolResult};
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::{CLIENT_TRANSPORTS, connect, serve};

const CONFIGURATION: &str = "
databases: [{name: shop, files: shop}]
tools:
  - name: ids
    description: I
    sql: SELECT value AS id FROM generate_series(1, 5) AS g(value)
    limits: {batch_rows: 1}
limits: {batch_rows: 2}
";

fn texts(result: &CallToolResult) -> Vec<String> {
    result.content.iter().map(|item| item.as_text().unwrap().text.trim_end().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_batch_is_a_text_item() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = serve(&configured);
    for way in CLIENT_TRANSPORTS {
        let client = connect((), way, &server, &configured).await;
        let call = async |tool: &'static str, arguments: Value| {
            let params = CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone());
            texts(&client.call_tool(params).await.unwrap())
        };
        let sql = "SELECT value AS n FROM generate_series(1, 5) AS g(value)";
        let rows = call("sql", json!({"sql": sql})).await;
        assert_eq!(rows, [r#"[{"n":1},{"n":2}]"#, r#"[{"n":3},{"n":4}]"#, r#"[{"n":5}]"#], "{way:?}");
        let even = call("sql", json!({"sql": sql, "max_rows": 4})).await;
        assert_eq!(even.len(), 3, "two items and the notice, without an empty item: {even:?}");
        let csv = call("sql", json!({"sql": sql, "format": "csv"})).await;
        assert_eq!(csv.iter().map(|item| item.lines().count()).collect::<Vec<_>>(), [3, 3, 2], "{way:?}: {csv:?}");
        assert_eq!(call("sql", json!({"sql": sql, "format": "table"})).await.len(), 1, "{way:?}");
        assert_eq!(call("ids", json!({})).await.len(), 5, "{way:?}");
        client.cancel().await.unwrap();
    }
}
