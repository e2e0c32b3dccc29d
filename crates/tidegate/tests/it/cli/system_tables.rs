//! Live system tables as a database: SQL, joins, masks and hidden tables.

use insta::assert_snapshot;
use serde_json::json;

use super::ConfiguredFolder;
use super::token_server::{TokenServer, detail, token};

const CONFIGURATION: &str = "
databases:
  - {name: shop, files: shop}
  - name: system
    system: {sensitive: machine.secrets, access: {users: [machine.users]}}
  - {name: all, federated: [shop, system]}
limits: {inline_bytes: 1KiB}
roles:
  - {name: admin, toolsets: ['*'], databases: ['*'], access: [machine.*], claims: {groups: admins}}
  - {name: clerk, toolsets: ['*'], databases: [system, all], claims: {groups: clerks}}
";

/// `admin` may read everything, `clerk` neither sensitive columns nor users.
fn start() -> TokenServer {
    TokenServer::start(CONFIGURATION, |_| {})
}

#[tokio::test]
async fn tables_show_the_server_itself() {
    let node = start();
    let (pid, port) = (node.server.pid(), node.server.address().port());
    let admin = &node.admin;
    let own = format!("SELECT name, is_kernel_thread, memory_bytes > 0 AS has_memory FROM processes WHERE pid = {pid}");
    assert_eq!(node.sql(admin, "system", &own).await, "name,is_kernel_thread,has_memory\ntidegate,false,true\n");
    let ports = format!("SELECT pid, protocol FROM system.listening_ports WHERE local_port = {port}");
    assert_eq!(node.sql(admin, "system", &ports).await, format!("pid,protocol\n{pid},tcp\n"));
    let joined = format!(
        "SELECT DISTINCT p.name, l.local_port FROM processes p JOIN listening_ports l ON l.pid = p.pid \
         WHERE p.pid = {pid}"
    );
    assert_eq!(node.sql(admin, "system", &joined).await, format!("name,local_port\ntidegate,{port}\n"));
    // The connection over which the question comes.
    let connections = format!(
        "SELECT count(*) > 0 AS found FROM processes p JOIN connections c ON c.pid = p.pid \
         WHERE p.pid = {pid} AND c.local_port = {port} AND c.state = 'established'"
    );
    assert_eq!(node.sql(admin, "system", &connections).await, "found\ntrue\n");
    let query = json!({"database": "system", "table": "processes", "select": ["pid"],
        "where": {"column": "pid", "op": "=", "value": pid}});
    assert_eq!(node.call(admin, "query", query).await, format!("pid\n{pid}\n"));
    for table in ["mounts", "disks", "interfaces", "services", "users", "load", "memory"] {
        let counted = node.sql(admin, "system", &format!("SELECT count(*) >= 0 AS ok FROM {table}")).await;
        assert_eq!(counted, "ok\ntrue\n", "{table}");
    }
    let memory = "SELECT used_bytes < total_bytes AS ok, count(*) OVER () AS rows FROM memory";
    assert_eq!(node.sql(admin, "system", memory).await, "ok,rows\ntrue,1\n");
}

#[tokio::test]
async fn system_tables_join_with_files() {
    let node = start();
    let pid = node.server.pid();
    let sql = format!(
        "SELECT o.id, p.name FROM shop.orders o JOIN system.processes p ON p.pid = o.id + {} WHERE o.customer = 'Ann' \
         AND o.id = 1",
        pid - 1
    );
    assert_eq!(node.sql(&node.admin, "all", &sql).await, "id,name\n1,tidegate\n");
    let hidden = node.sql(&node.clerk, "all", "SELECT name FROM system.users").await;
    assert!(hidden.contains("there is no table"), "{hidden}");
    let masked = format!("SELECT DISTINCT environment FROM system.processes WHERE pid = {pid}");
    assert_eq!(node.sql(&node.clerk, "all", &masked).await, "environment\n***\n");
}

#[tokio::test]
async fn sensitive_columns_are_masked_unless_granted() {
    let node = start();
    let pid = node.server.pid();
    let sql = format!(
        "SELECT command_line LIKE '%serve%' AS is_real, environment = '***' AS is_mask FROM processes \
                       WHERE pid = {pid}"
    );
    assert_eq!(node.sql(&node.admin, "system", &sql).await, "is_real,is_mask\ntrue,false\n");
    assert_eq!(node.sql(&node.clerk, "system", &sql).await, "is_real,is_mask\nfalse,true\n");
    let schema = |token: String| {
        let node = &node;
        async move { node.call(&token, "get_schema", json!({"database": "system", "table": "processes"})).await }
    };
    let line = |schema: String| schema.lines().find(|line| line.starts_with("command_line")).unwrap().to_owned();
    assert_snapshot!(line(schema(node.clerk.clone()).await), @"command_line,text,true,Program with its arguments. Null for kernel threads. Masked for you.");
    assert_snapshot!(line(schema(node.admin.clone()).await), @"command_line,text,true,Program with its arguments. Null for kernel threads.");
}

#[tokio::test]
async fn tables_without_access_do_not_exist() {
    let node = start();
    let tables = |token: String| {
        let node = &node;
        async move { node.call(&token, "list_tables", json!({"database": "system", "extract": "name"})).await }
    };
    assert_snapshot!(tables(node.clerk.clone()).await, @"
    connections
    disks
    interfaces
    jobs
    listening_ports
    load
    memory
    mounts
    pools
    processes
    services
    sessions
    ");
    assert!(tables(node.admin.clone()).await.contains("users"));
    let (hidden, absent) = (
        node.sql(&node.clerk, "system", "SELECT * FROM users").await,
        node.sql(&node.clerk, "system", "SELECT * FROM usres").await,
    );
    assert_eq!(detail(&hidden).replace("users", "usres"), detail(&absent));
    let catalog = "SELECT count(*) AS found FROM information_schema.tables WHERE table_name = 'users'";
    assert_eq!(node.sql(&node.clerk, "system", catalog).await, "found\n0\n");
    assert_eq!(node.sql(&node.admin, "system", catalog).await, "found\n1\n");
}

#[tokio::test]
async fn functions_are_listed_and_executed() {
    let node = start();
    let pid = node.server.pid();
    let listed = node.call(&node.clerk, "list_functions", json!({"extract": "function"})).await;
    assert_snapshot!(listed, @"
    connections
    disks
    interfaces
    jobs
    listening_ports
    load
    memory
    mounts
    pools
    processes
    services
    sessions
    ");
    let details = node.call(&node.clerk, "list_functions", json!({"function": "connections"})).await;
    let first: Vec<&str> = details.lines().take(4).collect();
    assert_snapshot!(first.join("\n"), @r#"
    kind,name,type,unit,description
    parameter,protocol,text,,"Only this protocol. Default: both. Options: tcp, udp."
    column,protocol,text,,tcp or udp.
    column,network_type,text,,ipv4 or ipv6. IPv4 addresses within IPv6 sockets count as ipv4.
    "#);
    let own = json!({"function": "processes", "columns": ["pid", "name", "command_line"], "limit": 1,
        "conditions": [["pid", "=", pid], ["name", "match", "tide*|nginx"]]});
    let masked = node.call(&node.clerk, "execute_function", own.clone()).await;
    assert_eq!(masked, format!("pid,name,command_line\n{pid},tidegate,***\n"));
    let (rest, client) = (node.server.url.replace("/mcp", "/rest/functions"), reqwest::Client::new());
    let body = json!({"columns": ["pid"], "conditions": [["pid", "=", pid]]});
    let posted = client.post(format!("{rest}/processes?format=csv")).bearer_auth(&node.clerk).json(&body);
    assert_eq!(posted.send().await.unwrap().text().await.unwrap(), format!("pid\r\n{pid}\r\n"));
    let get = async |path: &str| {
        let sent = client.get(format!("{rest}{path}")).bearer_auth(&node.clerk).send().await.unwrap();
        (sent.status().as_u16(), sent.text().await.unwrap())
    };
    let (status, memory) = get("/memory/rows?columns=used_bytes&format=csv").await;
    assert!(status == 200 && memory.starts_with("used_bytes\r\n"), "{memory}");
    assert_eq!(get("/memory?format=csv").await.0, 200);
    assert_eq!(get("/users").await.0, 404);
    let listed = client.get(&rest).bearer_auth(&node.clerk).send().await.unwrap();
    assert_eq!(listed.headers()["cache-control"], "private, max-age=60");
    let document: serde_json::Value =
        serde_json::from_str(&get("/../openapi.json").await.1).unwrap_or_else(|error| panic!("{error}"));
    let operation = &document["paths"]["/rest/functions/{function}"]["post"];
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    assert!(schema["properties"]["function"].is_null() && schema["properties"]["node"].is_object(), "{operation}");
    let granted = node.call(&node.admin, "execute_function", own).await;
    assert!(granted.contains("serve"), "{granted}");
    let ports = json!({"function": "listening_ports", "columns": ["pid"], "parameters": {"protocol": "tcp"},
        "conditions": [["local_port", "=", node.server.address().port()]]});
    assert_eq!(node.call(&node.clerk, "execute_function", ports).await, format!("pid\n{pid}\n"));
    let pseudo = json!({"function": "mounts", "columns": ["mount_point", "mount_point"],
        "parameters": {"include_pseudo": true}, "conditions": [["mount_point", "=", "/proc"]]});
    assert!(node.call(&node.clerk, "execute_function", pseudo).await.starts_with("mount_point\n/proc\n"));
}

#[tokio::test]
async fn the_conditions_of_a_function_have_their_meaning() {
    let node = start();
    let pid = node.server.pid();
    let is_found = async |further: serde_json::Value| {
        let mut conditions = vec![json!(["pid", "==", pid])];
        conditions.extend(further.as_array().unwrap().iter().cloned());
        let arguments = json!({"function": "processes", "columns": ["pid"], "conditions": conditions});
        let text = node.call(&node.clerk, "execute_function", arguments).await;
        assert!(text.starts_with("pid\n"), "{text}");
        text.lines().count() > 1
    };
    assert!(is_found(json!([["name", "match", "my*|TIDE* | *gate"], ["name", "NOT  MATCH", "*x*|y"]])).await);
    assert!(!is_found(json!([["name", "match", "t_degate"]])).await, "an underscore is one");
    assert!(!is_found(json!([["name", "not match", "tidegate"]])).await);
    assert!(is_found(json!([["pid", "<", f64::from(pid) + 0.5], ["start_time", ">=", "2024-02-29"]])).await);
    assert!(is_found(json!([["name", "<>", null], ["is_kernel_thread", "=", false]])).await);
    assert!(!is_found(json!([["name", "=", null]])).await);
    let sorted = json!({"function": "processes", "columns": ["name"], "conditions": [["pid", "=", pid]],
        "sort": [{"column": "memory_swap_bytes", "direction": "DESC"}, "pid"]});
    assert_eq!(node.call(&node.clerk, "execute_function", sorted).await, "name\ntidegate\n");
}

#[tokio::test]
async fn a_function_answer_that_is_too_large_is_one_example() {
    let node = start();
    // More than two processes run: the test and the server.
    let all = json!({"function": "processes", "limit": 5000, "sort": [{"column": "pid"}]});
    let text = node.call_as_model(&node.admin, "execute_function", all).await;
    assert!(text.contains("One row as an example:\n{\"pid\": ") && text.contains("Good filters:"), "{text}");
    let one = json!({"function": "processes", "columns": ["pid"], "limit": 1});
    let text = node.call_as_model(&node.admin, "execute_function", one).await;
    assert!(text.contains("1 of ") && text.contains(" rows that match."), "{text}");
}

#[tokio::test]
async fn all_violations_of_a_function_are_reported_at_once() {
    let node = start();
    let wrong = json!({"function": "connections", "columns": ["local_prot", "state"], "sort": ["stat"],
        "conditions": [["pid", "=", "x"], ["state", "like", "a"]], "parameters": {"protocol": "sctp", "user": 1}});
    assert_snapshot!(detail(&node.call(&node.clerk, "execute_function", wrong).await), @r#"
    the request for "connections" has 6 problems:
    columns[0]: column "local_prot" is unknown; did you mean "local_port"?
    sort[0]: column "stat" is unknown; did you mean "state"?
    conditions[0][2]: must be a number, as column "pid" has the type integer
    conditions[1][1]: unknown operator "like"; valid are =, !=, <, <=, >, >=, match, not match
    parameters.protocol: must be "tcp" or "udp"
    parameters.user: is unknown; expected one of protocol
    "#);
    let masked = json!({"function": "processes", "conditions": [["environment", "match", "*SECRET*"]]});
    assert_snapshot!(detail(&node.call(&node.clerk, "execute_function", masked).await), @r#"
    the request for "processes" has 1 problem:
    conditions[0][0]: column "environment" is masked for you, so that it can only be selected
    "#);
    let hidden = detail(&node.call(&node.clerk, "execute_function", json!({"function": "users"})).await);
    let absent = detail(&node.call(&node.clerk, "execute_function", json!({"function": "usres"})).await);
    assert_eq!(hidden.replace("users", "usres"), absent);
    let log = node.call(&node.clerk, "execute_function", json!({"function": "systemd-journal"})).await;
    assert!(log.contains("query_logs"), "{log}");
}

#[tokio::test]
async fn the_node_shows_its_jobs_and_pools() {
    let node = start();
    let jobs = "SELECT DISTINCT target, status, subject FROM jobs WHERE status = 'running'";
    assert_eq!(node.sql(&node.clerk, "system", jobs).await, "target,status,subject\nsql,running,ann\n");
    assert_eq!(node.sql(&node.clerk, "system", "SELECT count(*) AS n FROM pools").await, "n\n0\n");
    let caches = node.sql(&node.clerk, "system", "SELECT name FROM caches").await;
    assert!(caches.contains("there is no table"), "{caches}");
}

#[tokio::test]
async fn the_node_shows_callers_their_own_sessions() {
    let node = start();
    let sessions = "SELECT number, transport, subject, toolset, opened_at <= now() AS was_before FROM sessions";
    let nothing = "number,transport,subject,toolset,was_before\n";
    assert_eq!(node.sql(&node.clerk, "system", sessions).await, nothing);
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let request = node.client.post(&node.server.url).header("accept", "application/json, text/event-stream");
    let opened = request.bearer_auth(&node.clerk).json(&initialize).send().await.unwrap();
    let id = opened.headers().get("mcp-session-id").unwrap().clone();
    assert_eq!(node.sql(&node.clerk, "system", sessions).await, format!("{nothing}1,http,ann,,true\n"));
    let stranger = token(&node.configured, "bob", "clerks");
    assert_eq!(node.sql(&stranger, "system", sessions).await, nothing);
    let end = node.client.delete(&node.server.url).header("mcp-session-id", id).bearer_auth(&node.clerk);
    assert!(end.send().await.unwrap().status().is_success());
    assert_eq!(node.sql(&node.clerk, "system", sessions).await, nothing);
}

#[tokio::test]
async fn operators_see_pools_and_caches() {
    let configuration = "
databases:
  - {name: shop, files: shop}
  - {name: lite, sqlite: lite.db, connections: 3}
  - {name: hidden, sqlite: hidden.db}
  - {name: system, system: {}}
limits: {inline_bytes: 1KiB}
results: {folder: stored}
roles:
  - {name: admin, toolsets: ['*'], databases: [shop, lite, system], access: [operator], claims: {groups: admins}}
  - {name: clerk, toolsets: ['*'], databases: [system], claims: {groups: clerks}}
";
    let node = TokenServer::start(configuration, |folder| {
        for name in ["lite.db", "hidden.db"] {
            let file = rusqlite::Connection::open(folder.join(name)).unwrap();
            file.execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('a')").unwrap();
        }
    });
    let pools = "SELECT database, kind, connections_in_use, connections_free FROM pools";
    let header = "database,kind,connections_in_use,connections_free\n";
    assert_eq!(node.sql(&node.admin, "system", pools).await, format!("{header}lite,sqlite,,3\n"));
    assert_eq!(node.sql(&node.clerk, "system", pools).await, header);
    let names = node.sql(&node.admin, "system", "SELECT name FROM caches ORDER BY name").await;
    assert_eq!(names, "name\ndecoded_parquet\nquery_memory\nspilled_rows\nstored_results\n");
    let stored = "SELECT entries, used_bytes > 0 AS is_used FROM caches WHERE name = 'stored_results'";
    assert_eq!(node.sql(&node.admin, "system", stored).await, "entries,is_used\n0,false\n");
    // An answer that is longer than its budget is stored.
    let sql = "SELECT a.id, b.id AS other, repeat('x', 400) AS text FROM orders a CROSS JOIN orders b";
    let long = node.call_as_model(&node.admin, "sql", json!({"database": "shop", "sql": sql})).await;
    assert!(long.contains("tidegate://results/"), "{long}");
    assert_eq!(node.sql(&node.admin, "system", stored).await, "entries,is_used\n1,true\n");
}

#[test]
fn the_command_line_reads_everything_but_masks() {
    let configured = ConfiguredFolder::new("databases: [{name: system, system: {}}]");
    let query = |sql: &str| configured.run(&["query", sql]).stdout.replace('\r', "");
    assert_eq!(query("SELECT environment FROM processes GROUP BY 1"), "environment\n***\n");
    assert_eq!(query("SELECT name FROM caches WHERE name = 'query_memory'"), "name\nquery_memory\n");
    let oversized = configured.run(&["call", "execute_function", "function=processes", "limit=5000"]);
    assert_eq!(oversized.code, Some(0), "{oversized:?}");
}

#[test]
fn policies_hold_for_system_tables() {
    let configured = ConfiguredFolder::new(
        "databases:
  - name: system
    system: {}
    policies: [{table: processes, rows: pid = 1, columns: {user_name: 'null', executable_path: deny}}]
",
    );
    let query = |sql: &str| {
        let ran = configured.run(&["query", sql]);
        format!("{}{}", ran.stdout, ran.stderr).replace('\r', "")
    };
    assert_eq!(query("SELECT pid, user_name FROM processes"), "pid,user_name\n1,\n");
    let denied = query("SELECT executable_path FROM processes");
    assert!(denied.contains("executable_path") && denied.contains("error"), "{denied}");
    let function = configured.run(&["call", "execute_function", "function=processes"]);
    assert!(function.stderr.contains("a row policy restricts"), "{function:?}");
}

#[test]
fn configuration_is_checked() {
    let configured = ConfiguredFolder::new(
        "databases:
  - {name: one, system: {tables: [proceses, memory], access: {loads: [x]}}}
  - {name: two, system: {}}
  - {name: three, system: {}, files: shop}
  - {name: four, system: {}, cache: 1s}
",
    );
    assert_snapshot!(configured.usage_error(&["config", "check"]), @r#"
    error: the configuration cannot be used
    tidegate.yaml:2:35: databases[0].system.tables[0]: there is no system table "proceses"; did you mean "processes"?
    tidegate.yaml:2:63: databases[0].system.access.loads: there is no system table "loads"; did you mean "load"?
    tidegate.yaml:3:5: databases[1]: is a second database of system tables, and one is enough
    tidegate.yaml:4:19: databases[2].system: is for a database of its own; this one has files
    tidegate.yaml:5:5: databases[3]: is a second database of system tables, and one is enough
    tidegate.yaml:5:30: databases[3].cache: is for a database with sqlite, postgres or mysql; this one has system
    "#);
    configured.write("databases: [{name: system, system: {tables: [memory, load]}}]");
    let ran = configured.run(&["call", "list_tables", "extract=name", "format=csv"]);
    assert_snapshot!(ran.stdout, @"
    load
    memory
    ");
}
