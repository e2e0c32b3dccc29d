//! Log messages of a call, as a foreign client receives them: over each transport, in both eras.

#![allow(deprecated, reason = "MCP deprecates log messages, and clients still request them")]

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, LoggingLevel, LoggingMessageNotificationParam, RequestMetaObject, SetLevelRequestParams,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::{CLIENT_TRANSPORTS, ClientTransport, connect, serve};
use super::server::{Server, wait_until};

/// The declared tool runs whenever it is called: an answer with a random number is never cached.
const CONFIGURATION: &str = r#"
databases: [{name: both, federated: [left, right]}, {name: left, files: shop}, {name: right, files: shop}]
tools:
  - {name: declared, description: D, database: left, sql: "SELECT 'secret-word' AS one, random() AS two"}
"#;
const JOIN: &str = "SELECT count(*) AS n FROM \"left\".orders AS a JOIN \"right\".orders AS b ON a.id = b.id";

/// Collects the messages that it receives, as `level logger data`.
#[derive(Clone, Default)]
struct LogCollector(Arc<Mutex<Vec<String>>>);

impl ClientHandler for LogCollector {
    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let level = serde_json::to_value(params.level).unwrap();
        let logger = params.logger.unwrap_or_default();
        let message = format!("{} {logger} {}", level.as_str().unwrap(), params.data);
        self.0.lock().unwrap().push(message);
    }
}

/// A server, and a way to reach it.
struct LogClient<'a> {
    way: ClientTransport,
    server: &'a Server,
    configured: &'a ConfiguredFolder,
}

impl LogClient<'_> {
    /// The messages of one call at `level`, or of a client that requests none. Waits for one with each of these words.
    async fn messages(
        &self,
        level: Option<&str>,
        tool: &'static str,
        arguments: Value,
        expected: &[&[&str]],
    ) -> Vec<String> {
        let collector = LogCollector::default();
        let client = connect(collector.clone(), self.way, self.server, self.configured).await;
        let mut params = CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone());
        match level {
            Some(level) if self.way.is_legacy => {
                let level: LoggingLevel = serde_json::from_value(json!(level)).unwrap();
                client.set_level(SetLevelRequestParams::new(level)).await.unwrap();
            }
            Some(level) => {
                let meta = json!({"io.modelcontextprotocol/logLevel": level});
                params.meta = Some(serde_json::from_value::<RequestMetaObject>(meta).unwrap());
            }
            None => {}
        }
        client.call_tool(params).await.unwrap();
        wait_until(async || {
            let messages = collector.0.lock().unwrap();
            let has = |words: &&[&str]| messages.iter().any(|message| words.iter().all(|word| message.contains(word)));
            expected.iter().all(has)
        })
        .await;
        client.cancel().await.unwrap();
        collector.0.lock().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_receive_the_stages_of_their_calls() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let server = serve(&configured);
    for way in CLIENT_TRANSPORTS {
        let client = LogClient { way, server: &server, configured: &configured };
        let join = json!({"database": "both", "sql": JOIN});
        let stages: [&[&str]; 4] = [
            &["debug query ", "the query is planned", "\"database\":\"both\""],
            &[" query ", "the query runs"],
            &[" query ", "a member database is queried", "\"member\":\"left\""],
            &[" query ", "a member database is queried", "\"member\":\"right\""],
        ];
        let debug = client.messages(Some("debug"), "sql", join.clone(), &stages).await;
        assert!(debug.iter().all(|message| message.starts_with("debug ")), "{way:?}: {debug:?}");
        let info = client.messages(Some("info"), "sql", join.clone(), &stages[1..]).await;
        assert!(info.iter().all(|message| message.starts_with("info ")), "{way:?}: {info:?}");
        assert_eq!(client.messages(Some("error"), "sql", join.clone(), &[]).await, [""; 0], "{way:?}");
        assert_eq!(client.messages(None, "sql", join, &[]).await, [""; 0], "{way:?}");

        let partial = json!({"database": "left", "sql": "SELECT * FROM orders", "max_rows": 1});
        let expected: &[&str] = &["warning query ", "the answer is partial", "\"rows\":1"];
        client.messages(Some("warning"), "sql", partial, &[expected]).await;

        // The owner chose the database and the statement of a declared tool: neither is in its messages.
        let runs: &[&str] = &["debug query ", "the query runs"];
        let declared = client.messages(Some("debug"), "declared", json!({}), &[runs]).await;
        let reveals = |message: &String| message.contains("left") || message.contains("secret-word");
        assert!(!declared.iter().any(reveals), "{way:?}: {declared:?}");
    }
}
