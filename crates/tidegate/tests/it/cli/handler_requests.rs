//! What handlers in PostgreSQL receive of the client's request, and what a server takes from their database.

use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::postgres::{psql, server as postgres};
use super::server::{Server, wait_until};
use super::{ConfiguredFolder, run, tidegate};

/// A tool that returns its request, one whose rows contain it, and a resource whose text is NULL.
const HANDLERS: &str = r#"
    SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "echo", "readOnly": true, "requiresAuth": false}',
        'BEGIN RETURN api.mcp_structured_result(jsonb_build_object(''id'', (request).request_id, ''meta'', (request).meta),
            (request).request_id); END');
    SELECT api.create_or_replace_mcp_handler(
        '{"type": "tool", "name": "echo_rows", "readOnly": true, "requiresAuth": false, "rows": true}',
        'SELECT ((request).request_id)::text AS id, (request).meta ->> ''example.com/note'' AS note');
    SELECT api.create_or_replace_mcp_handler('{"type": "resource", "name": "empty", "uriTemplate": "shop://empty",
        "requiresAuth": false}', 'BEGIN RETURN api.mcp_resource_result(jsonb_build_array(jsonb_build_object(
            ''uri'', (request).uri, ''mimeType'', ''text/plain'', ''text'', NULL)), (request).request_id); END');"#;

struct Node {
    server: Server,
    database: String,
    _configured: ConfiguredFolder,
}

impl Node {
    fn start(name: &str, more: &str) -> Self {
        Self::start_with(name, "{schema: api, exchange_log: true}", "", more)
    }

    /// A server with these options of handlers, whose database has these further handlers.
    fn start_with(name: &str, handlers: &str, further_sql: &str, more: &str) -> Self {
        let database = format!("{name}_{}", std::process::id());
        psql("postgres", &format!("CREATE DATABASE {database}"));
        psql("postgres", &format!("ALTER DATABASE {database} SET mcp.server_name = 'corner shop'"));
        psql("postgres", &format!("ALTER DATABASE {database} SET mcp.server_version = '7.1'"));
        let target = format!("{} dbname={database}", postgres());
        let ran = run(&["pg", "install", &target]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        psql(&database, HANDLERS);
        psql(&database, further_sql);
        let databases = format!("databases: [{{name: shop, postgres: '{target}', handlers: {handlers}}}]\n{more}");
        let configured = ConfiguredFolder::new(&databases);
        let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "off"];
        let server = Server::start(tidegate().current_dir(configured.folder()).args(serve));
        Self { server, database, _configured: configured }
    }

    fn post(&self) -> RequestBuilder {
        Client::new().post(&self.server.url).header("accept", "application/json, text/event-stream")
    }

    /// The response to a modern request whose id is this JSON text.
    async fn modern(&self, id: &str, method: &str, name: &str, params: &str) -> Value {
        let meta = "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
                    \"io.modelcontextprotocol/clientCapabilities\":{},\"example.com/note\":\"n\\u00f6te\"";
        let message = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{{params},\"_meta\":{{{meta}}}}}}}"
        );
        let request = self.post().header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        let request = request.header("mcp-name", name).header("content-type", "application/json");
        request.body(message).send().await.unwrap().json().await.unwrap()
    }

    async fn call(&self, id: &str, tool: &str) -> Value {
        self.modern(id, "tools/call", tool, &format!("\"name\":\"{tool}\",\"arguments\":{{}}")).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_receive_the_clients_request() {
    let node = Node::start("requests", "");
    for id in ["42", "\"a\\u00e9-7\"", "1e2", "\"\"", "12345678901234567890123"] {
        let answer = node.call(id, "echo").await;
        let received = &answer["result"]["structuredContent"];
        let expected = if id == "1e2" { json!(100) } else { serde_json::from_str(id).unwrap() };
        assert_eq!(received["id"], expected, "{answer}");
        assert_eq!(received["meta"]["example.com/note"], "nöte", "{answer}");
    }
    let rows = node.call("\"row-id\"", "echo_rows").await;
    let text = rows["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("row-id") && text.contains("nöte"), "{rows}");

    let about =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about});
    let begun = node.post().json(&begin).send().await.unwrap();
    let session = begun.headers()["mcp-session-id"].clone();
    let server_info = &begun.json::<Value>().await.unwrap()["result"]["serverInfo"];
    assert_eq!(*server_info, json!({"name": "corner shop", "version": "7.1"}));
    let params = json!({"name": "echo", "arguments": {}, "_meta": {"progressToken": 5}});
    let call = json!({"jsonrpc": "2.0", "id": "legacy", "method": "tools/call", "params": params});
    let call = node.post().header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25").json(&call);
    let answer = call.send().await.unwrap().text().await.unwrap();
    assert!(answer.contains("\"progressToken\": 5") && answer.contains("\"id\": \"legacy\""), "{answer}");

    let url = node.server.url.replace("/mcp", "/rest/tools/echo/call");
    let rest = Client::new().post(url).json(&json!({})).send().await.unwrap();
    assert_eq!(rest.status(), 200);
    let rest: Value = rest.json().await.unwrap();
    assert!(rest.to_string().contains("\"meta\":null"), "{rest}");

    let refused = node.call("\"nul \\u0000\"", "echo").await;
    assert!(refused.to_string().contains("id: contains U+0000"), "{refused}");

    node.server.signal("TERM");
    assert_eq!(node.server.wait_for_exit().0.code(), Some(0));
    psql(
        &node.database,
        "DO $do$ DECLARE v_ids jsonb := (SELECT jsonb_agg(request_id) FROM api.exchange); BEGIN
            ASSERT v_ids @> '[42, \"aé-7\", 100, \"\", 12345678901234567890123, \"row-id\", \"legacy\"]', v_ids::text;
            ASSERT (SELECT count(*) = 8 AND bool_and(request_id IS NOT NULL) FROM api.exchange), v_ids::text;
        END $do$",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn null_text_of_a_resource_is_empty() {
    let node = Node::start("null_text", "server: {title: Our shop}\n");
    let answer = node.modern("1", "resources/read", "shop://empty", "\"uri\":\"shop://empty\"").await;
    assert_eq!(
        answer["result"]["contents"],
        json!([{"uri": "shop://empty", "mimeType": "text/plain", "text": ""}]),
        "{answer}"
    );
    let server_info = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(*server_info, json!({"name": "corner shop", "title": "Our shop", "version": "7.1"}));
}

/// A tool with an error of its own, one whose error is a builder's, and one that raises.
const FAILING_HANDLERS: &str = r#"
    SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "coded", "requiresAuth": false}',
        'BEGIN RETURN api.mcp_error(-32603, ''Error: told'', (request).request_id, ''{"a": 1}''); END');
    SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "plain", "requiresAuth": false}',
        'BEGIN RETURN api.mcp_tool_error(''it failed'', (request).request_id); END');
    SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "raises", "requiresAuth": false}',
        'BEGIN RAISE EXCEPTION ''stock is empty''; END');"#;

#[tokio::test(flavor = "multi_thread")]
async fn compatibility_with_pgmi_has_its_errors_and_ids() {
    let node = Node::start_with("pgmi", "{schema: api, compatibility: pgmi}", FAILING_HANDLERS, "");
    let errors = [
        ("coded", json!({"code": -32603, "message": "Error: told", "data": {"a": 1}})),
        ("plain", json!({"code": -32603, "message": "it failed"})),
        ("raises", json!({"code": -32603, "message": "stock is empty"})),
    ];
    for (tool, expected) in errors {
        let answer = node.call("7", tool).await;
        assert_eq!(answer["error"], expected, "{tool}: {answer}");
        assert_eq!(answer["id"], 7, "{answer}");
    }
    assert_eq!(node.call("1", "nothing").await["error"]["code"], -32601);
    let absent = node.modern("1", "resources/read", "shop://nothing", "\"uri\":\"shop://nothing\"").await;
    assert_eq!(absent["error"]["code"], -32601, "{absent}");
    let received = &node.call("42", "echo").await["result"]["structuredContent"];
    assert_eq!(received["id"], "42", "{received}");

    let own = Node::start_with("not_pgmi", "api", FAILING_HANDLERS, "");
    for tool in ["coded", "plain", "raises"] {
        let answer = own.call("7", tool).await;
        assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
        assert!(!answer.to_string().contains("stock is empty"), "{answer}");
    }
    assert_eq!(own.call("1", "nothing").await["error"]["code"], -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn running_server_takes_a_new_name() {
    let node = Node::start("renamed", "");
    let name = async || {
        let answer = node.modern("1", "resources/read", "shop://empty", "\"uri\":\"shop://empty\"").await;
        answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"].clone()
    };
    assert_eq!(name().await["name"], "corner shop");
    // The owner of the schema has no right to set a setting of the database, but may name the server.
    psql(&node.database, &format!("ALTER DATABASE {} RESET ALL", node.database));
    psql(&node.database, "SELECT api.set_mcp_server('new shop', '8')");
    wait_until(async || name().await == json!({"name": "new shop", "version": "8"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_are_served_without_a_configuration() {
    let node = Node::start("configured", "");
    let database = format!("shop={} dbname={}", postgres(), node.database);
    let folder = tempfile::tempdir().unwrap();
    let serve = ["serve", &database, "--handlers", "--listen", "127.0.0.1:0", "--log", "off"];
    let server = Server::start(tidegate().current_dir(&folder).args(serve));
    let call = async |tool: &str| {
        let url = server.url.replace("/mcp", &format!("/rest/tools/{tool}/call"));
        Client::new().post(url).json(&json!({})).send().await.unwrap().status().as_u16()
    };
    assert_eq!(call("echo").await, 200);
    assert_eq!(call("database_info").await, 404);
    psql(&node.database, "SELECT api.register_database_info()");
    wait_until(async || call("database_info").await == 200).await;

    let refused = run(&["serve", folder.path().to_str().unwrap(), "--handlers"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--handlers needs a database of PostgreSQL"), "{refused:?}");
}

/// A tool for authenticated callers, which is what handlers are by default.
const HANDLER_WITH_IDENTITY: &str = r#"
    SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "who"}', 'BEGIN RETURN api.mcp_structured_result(
        jsonb_build_object(''user'', current_setting(''auth.user_id''), ''tenant'', current_setting(''auth.tenant_id'')),
        (request).request_id); END');"#;

#[tokio::test(flavor = "multi_thread")]
async fn development_identity_calls_handlers_for_authenticated_callers() {
    let development = "auth: {development: {user: nora, tenant: north}}\n";
    let node = Node::start_with("development", "api", HANDLER_WITH_IDENTITY, development);
    let answer = node.call("1", "who").await;
    assert_eq!(answer["result"]["structuredContent"], json!({"user": "nora", "tenant": "north"}), "{answer}");

    let configured = ConfiguredFolder::new(&format!("databases: [{{name: shop, files: shop}}]\n{development}"));
    let refused = configured.usage_error(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(refused.contains("without auth.development"), "{refused}");
    let warned = configured.run(&["config", "check"]);
    assert!(warned.stderr.contains("auth.development") || warned.stdout.contains("auth.development"), "{warned:?}");

    // A proxy on this machine sends on the requests of other machines.
    let forwarded = node.post().header("x-forwarded-for", "192.0.2.7").header("content-type", "application/json");
    let forwarded = forwarded.body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).send().await.unwrap();
    assert_eq!(forwarded.status(), 401);
    let proxy = "databases: [{name: shop, files: shop}]\n\
                 auth: {development: {user: nora}, proxy: {networks: [127.0.0.1], user_header: x-user}}\n";
    let refused = ConfiguredFolder::new(proxy).run(&["config", "check"]);
    assert!(format!("{refused:?}").contains("cannot be combined with auth.proxy"), "{refused:?}");
}
