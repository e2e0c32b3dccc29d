//! Logs and metrics over the paths of REST, which answer as the tools do.

use reqwest::Client;
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::logs::EVENTS;
use super::metric_sources::samples;
use super::rmcp_client::serve;
use super::server::Server;

const CONFIGURATION: &str = "
databases: [{name: shop, files: shop}]
logs: [{name: app, table: shop.events}]
metrics: [{name: plant, table: shop.samples}]
";

struct TelemetryServer {
    server: Server,
    _configured: ConfiguredFolder,
}

impl TelemetryServer {
    fn start() -> Self {
        let configured = ConfiguredFolder::new(CONFIGURATION);
        for (name, rows) in [("events", EVENTS), ("samples", &samples())] {
            std::fs::write(configured.folder().join(format!("shop/{name}.csv")), rows).unwrap();
        }
        Self { server: serve(&configured), _configured: configured }
    }

    fn url(&self, path: &str) -> String {
        self.server.url.replace("/mcp", &format!("/rest/{path}"))
    }

    async fn get(&self, path: &str) -> Value {
        Client::new().get(self.url(path)).send().await.unwrap().json().await.unwrap()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let request = Client::new().post(self.url(&format!("tools/{tool}/call"))).json(&arguments);
        without_time(request.send().await.unwrap().json().await.unwrap())
    }
}

fn without_time(mut answer: Value) -> Value {
    answer.as_object_mut().unwrap().remove("elapsed_ms");
    answer
}

#[tokio::test]
async fn paths_answer_as_the_tools_do() {
    let node = TelemetryServer::start();
    let window = json!({"after": "2026-03-01T12:00:00Z", "before": "2026-03-01T12:04:00Z"});
    let with = |more: Value| {
        let all = window.as_object().unwrap().clone().into_iter().chain(more.as_object().unwrap().clone());
        Value::Object(all.collect())
    };
    let query = "after=2026-03-01T12:00:00Z&before=2026-03-01T12:04:00Z";
    for (path, tool, arguments) in [
        ("logs".to_owned(), "list_logs_sources", json!({})),
        ("logs/app/fields".to_owned(), "list_logs_fields", json!({"source": "app"})),
        (
            format!("logs/app?{query}&query=connection&limit=1&facets=level,service&columns=body"),
            "query_logs",
            with(json!({"source": "app", "query": "connection", "limit": 1, "facets": ["level", "service"],
                "columns": ["body"]})),
        ),
        (
            format!("logs/app/fields/level?{query}&limit=2"),
            "list_logs_fields_values",
            with(json!({"source": "app", "fields": ["level"], "limit": 2})),
        ),
        ("metrics?pattern=temp*".to_owned(), "list_metrics", json!({"pattern": "temp*"})),
        ("metrics/plant?limit=1".to_owned(), "list_metrics", json!({"source": "plant", "limit": 1})),
        (
            format!("metrics/plant/requests_total?{query}&points=4&aggregation=increase&by=host"),
            "query_metrics",
            with(json!({"source": "plant", "metric": "requests_total", "points": 4, "aggregation": "increase",
                "by": ["host"]})),
        ),
    ] {
        let expected = node.call(tool, arguments).await;
        assert!(expected.get("detail").is_none(), "{tool}: {expected}");
        assert_eq!(without_time(node.get(&path).await), expected, "{path}");
    }
    let problem = node.get("logs/ap").await;
    assert_eq!(problem["violations"][0]["message"], "there is no log source \"ap\"; nearest: app", "{problem}");
}

#[tokio::test]
async fn the_document_has_these_paths_only_where_there_are_sources() {
    let path_names = |document: Value| -> Vec<String> {
        let names = document["paths"].as_object().unwrap().keys().filter(|path| path.contains("metrics/{"));
        names.cloned().collect()
    };
    let node = TelemetryServer::start();
    let names = path_names(node.get("openapi.json").await);
    assert_eq!(names, ["/rest/metrics/{source}", "/rest/metrics/{source}/{metric}"]);
    let configured = ConfiguredFolder::new("databases: [{name: shop, files: shop}]\n");
    let plain = TelemetryServer { server: serve(&configured), _configured: configured };
    assert!(path_names(plain.get("openapi.json").await).is_empty());
}
