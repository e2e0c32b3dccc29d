//! Another server of Tidegate as a database of the kind `flight_sql`: its tables in each tool, and as a member of a
//! federated database.

use serde_json::{Value, json};
use tidegate_sql::{SqlDialect, Statement};

use super::flight_server::{FlightReader, FlightServer};
use super::site_network::Answer;

const LAKE: &str = "
server: {listen: '127.0.0.1:0', flight: '127.0.0.1:0'}
databases: [{name: plant, files: data}]
roles: [{name: reader, toolsets: ['*'], databases: [plant]}]
auth: {keys: keys.json}
";
const LAKE_FILES: [(&str, &str); 2] = [
    ("data/readings.csv", "id,machine,degrees\n1,press,12\n2,oven,180\n3,press,15\n4,oven,210\n"),
    ("data/machines.csv", "machine,hall\npress,1\noven,2\n"),
];
const LOCAL: &str = "
server: {listen: '127.0.0.1:0', flight: '127.0.0.1:0'}
databases:
  - {name: lake, flight_sql: 'LAKE_URL', token: '${file:lake.token}', catalog: plant}
  - {name: rules, files: rules}
  - {name: both, federated: [lake, rules]}
roles: [{name: reader, toolsets: ['*'], databases: [lake, rules, both]}]
auth: {keys: keys.json}
";
const RULES: (&str, &str) = ("rules/limits.csv", "machine,maximum\npress,14\noven,200\n");

/// The server with the tables, and the one with it as a database.
struct Servers {
    lake: FlightServer,
    local: FlightServer,
}

impl Servers {
    fn start() -> Self {
        let lake = FlightServer::start(LAKE, &LAKE_FILES, &[("service", "reader")]);
        let local = start_local(&lake, lake.key("service"));
        Self { lake, local }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.local.call("ann", tool, arguments).await
    }

    async fn rows(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.json()
    }
}

/// A server with `lake` as a database, where `token` identifies it.
fn start_local(lake: &FlightServer, token: &str) -> FlightServer {
    let configuration = LOCAL.replace("LAKE_URL", &lake.flight);
    FlightServer::start(&configuration, &[("lake.token", token), RULES], &[("ann", "reader")])
}

#[tokio::test(flavor = "multi_thread")]
async fn catalog_tools_list_the_tables_of_the_other_server() {
    let servers = Servers::start();
    let listed = servers.rows("list_tables", json!({"database": "lake", "format": "mcp"})).await;
    let tables: Vec<(&str, Option<u64>)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|table| (table["name"].as_str().unwrap(), table["rows"].as_u64()))
        .collect();
    assert_eq!(tables, [("machines", Some(2)), ("readings", Some(4))], "{listed}");
    let schema = servers.rows("get_schema", json!({"database": "lake", "table": "readings", "format": "mcp"})).await;
    let columns: Vec<(&str, &str)> = schema
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["name"].as_str().unwrap(), column["type"].as_str().unwrap()))
        .collect();
    assert_eq!(columns, [("id", "bigint"), ("machine", "text"), ("degrees", "bigint")], "{schema}");
    let absent = servers.call("get_schema", json!({"database": "lake", "table": "reading"})).await;
    assert!(absent.is_error && absent.text.contains("readings"), "{absent:?}");
    // The other server decides what is masked.
    let profile = servers.call("get_schema", json!({"database": "lake", "table": "readings", "profile": true})).await;
    assert!(profile.is_error && profile.text.contains("cannot be profiled"), "{profile:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_run_on_the_other_server() {
    let servers = Servers::start();
    let query = |column: &str, operator: &str, value: Value| {
        json!({
            "database": "lake", "table": "readings", "select": ["id", "degrees"],
            "where": {"column": column, "op": operator, "value": value}, "order_by": ["id"],
        })
    };
    let hot = json!([{"id": 2, "degrees": 180}, {"id": 3, "degrees": 15}, {"id": 4, "degrees": 210}]);
    assert_eq!(servers.rows("query", query("degrees", ">", json!(14))).await, hot);
    let presses = json!([{"id": 1, "degrees": 12}, {"id": 3, "degrees": 15}]);
    assert_eq!(servers.rows("query", query("machine", "=", json!("press"))).await, presses);
    let quoted = servers.rows("query", query("machine", "=", json!("it's \\ \"press\""))).await;
    assert_eq!(quoted, json!([]));
    let join = "SELECT r.id, m.hall FROM readings r JOIN machines m ON m.machine = r.machine \
                WHERE r.degrees > $1 ORDER BY r.id";
    let joined = servers.rows("sql", json!({"database": "lake", "sql": join, "parameters": [14]})).await;
    assert_eq!(joined, json!([{"id": 2, "hall": 2}, {"id": 3, "hall": 1}, {"id": 4, "hall": 2}]));
    // A client of this server reads those tables, too.
    let reader = FlightReader::open(&servers.local.flight, servers.local.key("ann"), "lake");
    let highest = "SELECT machine, max(degrees) AS highest FROM readings GROUP BY machine ORDER BY machine";
    assert_eq!(reader.rows(highest).await.unwrap(), ["oven,210", "press,15"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_write_are_refused_by_both_servers() {
    let servers = Servers::start();
    let delete = "DELETE FROM readings";
    let refused = servers.call("sql", json!({"database": "lake", "sql": delete})).await;
    assert!(refused.is_error && refused.text.contains("it would change data"), "{refused:?}");
    // It is sent without a check, so that the other server refuses it.
    let reader = FlightReader::open(&servers.lake.flight, servers.lake.key("service"), "plant");
    let unchecked = Statement::from_owner(delete, Vec::new(), SqlDialect::DataFusion);
    let refused = reader.rows_of(&unchecked).await.unwrap_err();
    assert!(refused.message().contains("it would change data"), "{refused}");
    let count = "SELECT count(*) AS n FROM readings";
    assert_eq!(servers.rows("sql", json!({"database": "lake", "sql": count})).await, json!([{"n": 4}]));
    assert_eq!(reader.rows(count).await.unwrap(), ["4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_of_a_federated_database_are_sent_to_the_other_server() {
    let servers = Servers::start();
    let sql = "SELECT r.id, l.maximum FROM lake.readings r JOIN rules.limits l ON l.machine = r.machine \
               WHERE r.degrees > 14 AND r.degrees > l.maximum ORDER BY r.id";
    let rows = servers.rows("sql", json!({"database": "both", "sql": sql})).await;
    assert_eq!(rows, json!([{"id": 3, "maximum": 14}, {"id": 4, "maximum": 200}]));
    let explained = servers.call("explain", json!({"database": "both", "sql": sql})).await;
    assert!(!explained.is_error, "{explained:?}");
    let sent = |member: &str| {
        let statements = explained.text.lines().skip_while(|line| !line.starts_with("Queries sent to the databases:"));
        let mut statements = statements.filter_map(|line| line.trim_start().strip_prefix(member));
        statements.next().unwrap_or_else(|| panic!("nothing is sent to {member} {explained:?}")).to_owned()
    };
    let (lake, rules) = (sent("lake: "), sent("rules: "));
    let condition = lake.split_once(" WHERE ").unwrap_or_else(|| panic!("{lake}")).1;
    assert!(lake.contains("\"readings\"") && condition.contains("\"degrees\" > "), "{lake}");
    assert!(rules.contains("\"limits\"") && !rules.contains(" WHERE "), "{rules}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_an_error_without_the_token() {
    let lake = FlightServer::start(LAKE, &LAKE_FILES, &[("service", "reader")]);
    let local = start_local(&lake, "sesame");
    for (tool, arguments) in [
        ("list_tables", json!({"database": "lake"})),
        ("sql", json!({"database": "lake", "sql": "SELECT count(*) AS n FROM readings"})),
        ("sql", json!({"database": "both", "sql": "SELECT count(*) AS n FROM lake.readings"})),
    ] {
        let refused = local.call("ann", tool, arguments).await;
        assert!(refused.is_error && refused.text.contains("lake"), "{tool}: {refused:?}");
        assert!(!refused.text.contains("sesame"), "{tool}: {refused:?}");
    }
    let count = json!({"database": "rules", "sql": "SELECT count(*) AS n FROM limits"});
    assert_eq!(local.call("ann", "sql", count).await.json(), json!([{"n": 2}]));
    let (_folder, log) = local.stop();
    assert!(!log.contains("sesame"), "{log}");
}
