//! Two tenants over three nodes: nothing of one reaches the other, by any tool, as a stored result, or over Flight SQL.

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tidegate_core::ErrorKind;

use super::flight_server::FlightReader;
use super::site_network::{KeyPair, NODES, NodeData, SiteNode, UnitingServer, configuration};

/// Each caller has the rows of its tenant; auditors have those of all.
const FILES: NodeData = NodeData {
    database: "files: data, policies: [{table: readings, rows: 'tenant = :tenant', except_roles: [auditor]}]",
    roles: &[("reader", ""), ("auditor", "")],
};
/// Callers with what they may see: tenants, and degrees on all nodes.
const CALLERS: [(&str, &[&str], &[&str]); 3] =
    [("ann", &["north"], &["1", "2", "3", "4"]), ("bob", &["south"], &["10", "20", "30", "40"]), ("eve", &[], &[])];
const DATABASES: [&str; 2] = ["sites", "whole"];
/// An id that no stored result has.
const ABSENT: &str = "01234567-89ab-4cde-8f01-23456789abcd";

/// The nodes, and the server that unites them. Zoe is an auditor.
struct Tenants {
    _nodes: Vec<SiteNode>,
    server: UnitingServer,
}

impl Tenants {
    fn start() -> Self {
        let key = KeyPair::generate();
        let nodes: Vec<SiteNode> =
            NODES.map(|name| SiteNode::start_with(name, &key.public, FILES)).into_iter().collect();
        let configuration = configuration(&nodes)
            .replace("listen: '127.0.0.1:0'", "listen: '127.0.0.1:0', flight: '127.0.0.1:0'")
            .replace("{name: guest, toolsets: ['*']}", "{name: auditor, toolsets: ['*'], databases: [sites, whole]}");
        let configuration = format!("{configuration}results: {{folder: spool, keep_free: 0B}}\n");
        let callers = [
            ("ann", "reader", Some("north")),
            ("bob", "reader", Some("south")),
            ("eve", "reader", None),
            ("zoe", "auditor", None),
        ];
        let server = UnitingServer::start_with(&key, &configuration, &callers);
        Self { _nodes: nodes, server }
    }

    /// The rows that `tool` answers with.
    async fn rows(&self, caller: &str, tool: &str, arguments: Value) -> Vec<Value> {
        let answer = self.server.call(caller, tool, arguments).await;
        serde_json::from_value(answer.json()).unwrap()
    }

    fn reader(&self, token: &str, database: &str) -> FlightReader {
        FlightReader::open(self.server.flight.as_ref().unwrap(), token, database)
    }

    /// The id of a stored result of `sql` in `sites`.
    async fn store(&self, caller: &str, sql: &str) -> String {
        let url = self.server.url().replace("/mcp", "/rest/sql");
        let request = Client::new().post(url).bearer_auth(self.server.key(caller)).header("accept", "application/json");
        let arguments = json!({"database": "sites", "sql": sql, "delivery": "blocks"});
        let answer: Value = request.json(&arguments).send().await.unwrap().json().await.unwrap();
        answer["structured"]["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// The status and the text of a path below `/results/`.
    async fn result(&self, caller: &str, path: &str) -> (StatusCode, String) {
        let url = self.server.url().replace("/mcp", &format!("/results/{path}"));
        let answer = Client::new().get(url).bearer_auth(self.server.key(caller)).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }
}

/// The lists of tables are kept by identity, so each caller comes twice.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_rows_are_those_that_the_caller_may_know() {
    let tenants = Tenants::start();
    for database in DATABASES.into_iter().chain(DATABASES) {
        let list = json!({"database": database, "format": "mcp"});
        let locate = json!({"database": database, "table": "readings"});
        let listed = tenants.rows("zoe", "list_tables", list.clone()).await;
        assert_eq!((&listed[0]["name"], &listed[0]["rows"]), (&json!("readings"), &json!(8)), "{listed:?}");
        let located = tenants.rows("zoe", "locate", locate.clone()).await;
        let rows: Vec<Option<u64>> = located.iter().map(|part| part["rows"].as_u64()).collect();
        assert_eq!(rows, [Some(3), Some(3), Some(2)], "{located:?}");
        assert!(located.iter().all(|part| part["bytes"].as_u64().is_some_and(|bytes| bytes > 0)), "{located:?}");
        assert!(located.iter().all(|part| part["ranges"] == "tenant: north to south"), "{located:?}");
        for (caller, own, _) in CALLERS {
            let listed = tenants.rows(caller, "list_tables", list.clone()).await;
            assert_eq!((listed.len(), &listed[0]["name"]), (1, &json!("readings")), "{listed:?}");
            assert!(listed[0]["rows"].is_null(), "{caller}: {listed:?}");
            let located = tenants.rows(caller, "locate", locate.clone()).await;
            let names: Vec<&str> = located.iter().map(|part| part["node"].as_str().unwrap()).collect();
            assert_eq!(names, NODES, "{located:?}");
            for hidden in ["rows", "share", "bytes"] {
                assert!(located.iter().all(|part| part[hidden].is_null()), "{hidden}: {located:?}");
            }
            let range = own.first().map(|name| format!("tenant: {name} to {name}"));
            assert!(located.iter().all(|part| part["ranges"].as_str() == range.as_deref()), "{located:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn example_values_are_those_of_the_tenant() {
    let tenants = Tenants::start();
    for database in DATABASES.into_iter().chain(DATABASES) {
        for (caller, names, degrees) in CALLERS {
            let arguments = json!({"database": database, "table": "readings", "samples": 20, "format": "mcp"});
            let columns = tenants.rows(caller, "get_schema", arguments).await;
            for (name, expected) in [("tenant", names), ("degrees", degrees)] {
                let column = columns.iter().find(|column| column["name"] == name).unwrap();
                let examples = column["samples"].as_array().into_iter().flatten();
                let mut examples: Vec<&str> = examples.map(|example| example.as_str().unwrap()).collect();
                examples.sort_unstable();
                assert_eq!(examples, expected, "{name} for {caller}: {columns:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_results_belong_to_their_tenant() {
    let tenants = Tenants::start();
    let sql = "SELECT tenant, degrees FROM readings ORDER BY degrees";
    let own = tenants.store("ann", sql).await;
    let (status, rows) = tenants.result("ann", &format!("{own}/data?format=csv")).await;
    assert_eq!((status, rows.lines().count()), (StatusCode::OK, 5), "{rows}");
    assert!(rows.contains("north,4") && !rows.contains("south"), "{rows}");
    for (caller, expected) in [("bob", "south,40"), ("eve", "tenant,degrees")] {
        for path in ["", "/data", "/data?format=csv", "/blocks/0"] {
            let (status, text) = tenants.result(caller, &format!("{own}{path}")).await;
            let absent = tenants.result(caller, &format!("{ABSENT}{path}")).await;
            let expected = (StatusCode::NOT_FOUND, absent.1.replace(ABSENT, "ID"));
            assert_eq!((status, text.replace(&own, "ID")), expected, "{caller} {path}");
        }
        // The same statement has a result of its own.
        let other = tenants.store(caller, sql).await;
        assert_ne!(other, own, "{caller}");
        let (status, rows) = tenants.result(caller, &format!("{other}/data?format=csv")).await;
        assert!(status == StatusCode::OK && rows.contains(expected) && !rows.contains("north"), "{status} {rows}");
    }
    let page = json!({"database": "sites", "sql": sql, "delivery": "blocks"});
    let first = tenants.server.call("ann", "sql", page).await;
    assert!(!first.is_error, "{first:?}");
    let cursor = first.meta["dev.tidegate/cursor"].as_str().unwrap_or_else(|| panic!("{first:?}"));
    for caller in ["bob", "eve"] {
        let next = json!({"database": "sites", "sql": sql, "cursor": cursor});
        let refused = tenants.server.call(caller, "sql", next).await;
        assert!(refused.is_error && refused.text.contains("the cursor is unknown"), "{caller}: {refused:?}");
        assert!(!refused.text.contains("north"), "{caller}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_separate_over_flight_sql() {
    let tenants = Tenants::start();
    for database in DATABASES.into_iter().chain(DATABASES) {
        for (caller, names, degrees) in CALLERS {
            let reader = tenants.reader(tenants.server.key(caller), database);
            for (sql, expected) in [
                ("SELECT DISTINCT tenant FROM readings", names),
                ("SELECT tenant FROM readings WHERE tenant = 'south' OR tenant = 'north' GROUP BY tenant", names),
                ("SELECT a.tenant FROM readings a JOIN readings b ON a.degrees = b.degrees GROUP BY a.tenant", names),
                ("SELECT degrees FROM readings ORDER BY degrees", degrees),
                ("SELECT degrees FROM readings WHERE _node IN ('oslo', 'rome', 'cork') ORDER BY degrees", degrees),
            ] {
                assert_eq!(reader.rows(sql).await.unwrap(), expected, "{sql} for {caller} in {database}");
            }
            let count = [degrees.len().to_string()];
            assert_eq!(reader.rows("SELECT count(*) AS n FROM readings").await.unwrap(), count, "{caller}");
            assert_eq!(reader.row_counts().await, [("readings".to_owned(), None::<u64>)], "{caller}");
            reader.close().await;
        }
    }
    let auditor = tenants.reader(tenants.server.key("zoe"), "sites");
    assert_eq!(auditor.row_counts().await, [("readings".to_owned(), Some(8))]);
    let unknown = tenants.reader("nonsense", "sites");
    let refused = unknown.rows("SELECT tenant FROM readings").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unauthenticated, "{refused}");
}
