//! Live system tables as a database: SQL, joins, masks and hidden tables.

use insta::assert_snapshot;
use reqwest::Client;
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::serve;
use super::server::Server;

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

/// A server with two callers: `admin` may read everything, `clerk` neither sensitive columns nor users.
struct SystemServer {
    server: Server,
    client: Client,
    admin: String,
    clerk: String,
    configured: ConfiguredFolder,
}

fn token(configured: &ConfiguredFolder, subject: &str, group: &str) -> String {
    let claim = format!("groups={group}");
    let ran = configured.run(&["token", "new", "--subject", subject, "--claim", &claim]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout.trim().to_owned()
}

impl SystemServer {
    fn start() -> Self {
        let configured = ConfiguredFolder::new("");
        let ran = configured.run(&["token", "key"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        configured.write(&format!("{CONFIGURATION}{}", ran.stdout));
        let (admin, clerk) = (token(&configured, "ann", "admins"), token(&configured, "ann", "clerks"));
        Self { server: serve(&configured), client: Client::new(), admin, clerk, configured }
    }

    /// The text that a tool answers over REST.
    async fn call(&self, token: &str, tool: &str, arguments: Value) -> String {
        let url = self.server.url.replace("/mcp", &format!("/rest/tools/{tool}/call"));
        let request = self.client.post(url).bearer_auth(token).json(&arguments);
        let text = request.header("accept", "text/csv").send().await.unwrap().text().await.unwrap();
        text.replace('\r', "")
    }

    async fn sql(&self, token: &str, database: &str, sql: &str) -> String {
        self.call(token, "sql", json!({"database": database, "sql": sql})).await
    }
}

/// The message of a problem document.
fn detail(problem: &str) -> String {
    let problem: Value = serde_json::from_str(problem).unwrap_or_else(|_| panic!("{problem}"));
    problem["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn tables_show_the_server_itself() {
    let node = SystemServer::start();
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
    let node = SystemServer::start();
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
    let node = SystemServer::start();
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
    assert_snapshot!(line(schema(node.clerk.clone()).await), @"command_line,text,true,The program with its arguments. Null for kernel threads. Masked for you.");
    assert_snapshot!(line(schema(node.admin.clone()).await), @"command_line,text,true,The program with its arguments. Null for kernel threads.");
}

#[tokio::test]
async fn tables_without_access_do_not_exist() {
    let node = SystemServer::start();
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
    let node = SystemServer::start();
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
    let granted = node.call(&node.admin, "execute_function", own).await;
    assert!(granted.contains("serve"), "{granted}");
    let ports = json!({"function": "listening_ports", "columns": ["pid"], "parameters": {"protocol": "tcp"},
        "conditions": [["local_port", "=", node.server.address().port()]]});
    assert_eq!(node.call(&node.clerk, "execute_function", ports).await, format!("pid\n{pid}\n"));
}

/// The text of a tool over MCP, where answers have a budget.
async fn call_as_model(node: &SystemServer, tool: &str, arguments: Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let request = node.client.post(&node.server.url).bearer_auth(&node.admin);
    let request = request
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", tool)
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    content.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_function_answer_that_is_too_large_is_one_example() {
    let node = SystemServer::start();
    // More than two processes run: the test and the server.
    let all = json!({"function": "processes", "limit": 5000, "sort": [{"column": "pid"}]});
    let text = call_as_model(&node, "execute_function", all).await;
    assert!(text.contains("One row as an example:\n{\"pid\": ") && text.contains("Good filters:"), "{text}");
    let one = json!({"function": "processes", "columns": ["pid"], "limit": 1});
    let text = call_as_model(&node, "execute_function", one).await;
    assert!(text.contains("1 of ") && text.contains(" rows that match."), "{text}");
}

#[tokio::test]
async fn all_violations_of_a_function_are_reported_at_once() {
    let node = SystemServer::start();
    let wrong = json!({"function": "connections", "columns": ["local_prot", "state"], "sort": ["stat"],
        "conditions": [["pid", "=", "x"], ["state", "like", "a"]], "parameters": {"protocol": "sctp", "user": 1}});
    assert_snapshot!(detail(&node.call(&node.clerk, "execute_function", wrong).await), @r#"
    the request for "connections" has 6 problems:
    columns[0]: unknown column "local_prot" in table "connections"; did you mean "local_port"?
    sort[0]: unknown column "stat" in table "connections"; did you mean "state"?
    conditions[0][2]: must be a number, as column "pid" has the type integer, not the text "x"
    conditions[1][1]: unknown operator "like"; valid are "=", "!=", "match" or "not match"
    parameters.user: unknown parameter "user"; valid are "protocol"
    parameters.protocol: must be one of "tcp" or "udp", not the text "sctp"
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
    let node = SystemServer::start();
    let jobs = "SELECT DISTINCT target, status, subject FROM jobs WHERE status = 'running'";
    assert_eq!(node.sql(&node.clerk, "system", jobs).await, "target,status,subject\nsql,running,ann\n");
    assert_eq!(node.sql(&node.clerk, "system", "SELECT count(*) AS n FROM pools").await, "n\n0\n");
    let caches = node.sql(&node.clerk, "system", "SELECT name FROM caches").await;
    assert!(caches.contains("there is no table"), "{caches}");
}

#[tokio::test]
async fn the_node_shows_callers_their_own_sessions() {
    let node = SystemServer::start();
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
    tidegate.yaml:4:5: databases[2]: is a second database of system tables, and one is enough
    tidegate.yaml:5:5: databases[3]: is a second database of system tables, and one is enough
    "#);
    configured.write("databases: [{name: system, system: {tables: [memory, load]}}]");
    let ran = configured.run(&["call", "list_tables", "extract=name", "format=csv"]);
    assert_snapshot!(ran.stdout, @"
    load
    memory
    ");
}
