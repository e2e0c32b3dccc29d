//! Three nodes that trust a server, and the server with its callers.

use std::path::Path;

use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::server::{Server, wait_until};
use super::super::{run_in, tidegate};

pub(super) const NODES: [&str; 3] = ["oslo", "rome", "cork"];
pub(super) const ISSUER: &str = "https://uniting.example.com";

/// The readings of a node, of two tenants. Rome has a column with the name of that of the network.
pub(super) fn readings(node: &str) -> &'static str {
    match node {
        "oslo" => "tenant,machine,degrees\nnorth,press,1\nnorth,oven,2\nsouth,press,10\n",
        "rome" => "tenant,machine,degrees,_node\nnorth,oven,3,oslo\nsouth,oven,20,oslo\nsouth,press,30,cork\n",
        _ => "tenant,machine,degrees\nsouth,oven,40\nnorth,press,4\n",
    }
}

/// A key pair of Ed25519 as PEM.
pub(super) struct KeyPair {
    pub(super) private: String,
    pub(super) public: String,
}

impl KeyPair {
    pub(super) fn generate() -> Self {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        Self { private: pair.serialize_pem(), public: pair.public_key_pem() }
    }
}

/// What a node has: its database, and the rights of its roles.
#[derive(Clone, Copy)]
pub(super) struct NodeData {
    pub(super) database: &'static str,
    pub(super) roles: &'static [(&'static str, &'static str)],
}

/// Files, of which each caller sees the rows of its tenant.
const FILES: NodeData = NodeData {
    database: "files: data, policies: [{table: readings, rows: 'tenant = :tenant'}]",
    roles: &[("reader", "")],
};

/// A node in a folder of its own.
pub(super) struct SiteNode {
    name: &'static str,
    data: NodeData,
    folder: TempDir,
    server: Option<Server>,
    /// Its address for Flight SQL.
    pub(super) flight: String,
    /// Its address for MCP.
    pub(super) http: String,
}

impl SiteNode {
    /// A node that accepts tokens that `trusted` verifies.
    pub(super) fn start(name: &'static str, trusted: &str) -> Self {
        Self::start_with(name, trusted, FILES)
    }

    pub(super) fn start_with(name: &'static str, trusted: &str, data: NodeData) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        std::fs::write(folder.path().join("data/readings.csv"), readings(name)).unwrap();
        std::fs::write(folder.path().join("uniting.pem"), trusted).unwrap();
        let mut node =
            Self { name, data, folder, server: None, flight: "grpc://127.0.0.1:0".to_owned(), http: String::new() };
        node.start_again();
        node
    }

    /// Starts it at its address.
    pub(super) fn start_again(&mut self) {
        let flight = self.flight.trim_start_matches("grpc://");
        let (name, NodeData { database, roles }) = (self.name, self.data);
        let role = |(role, rights): &(&str, &str)| {
            format!("{{name: {role}, toolsets: ['*'], databases: [plant], claims: {{roles: {role}}}{rights}}}")
        };
        let roles = roles.iter().map(role).collect::<Vec<_>>().join(", ");
        let configuration = format!(
            "server: {{listen: '127.0.0.1:0', flight: '{flight}'}}\n\
             databases: [{{name: plant, {database}}}]\n\
             roles: [{roles}]\n\
             auth: {{tokens: {{issuer: '{ISSUER}', audience: {name}, algorithms: [EdDSA], public_key: uniting.pem, \
             tenant_claim: tenant}}}}\n"
        );
        std::fs::write(self.folder.path().join("tidegate.yaml"), configuration).unwrap();
        let mut server = Server::start(tidegate().current_dir(self.folder.path()).args(["serve", "--log", "warn"]));
        self.flight = server.url.clone();
        self.http = server.wait_for_log("listening on http").trim().trim_start_matches("listening on ").to_owned();
        self.server = Some(server);
    }

    pub(super) fn kill(&mut self) {
        self.server = None;
    }
}

/// The address for Flight SQL of a server with `server.flight`. Its URL is that of MCP then.
pub(super) fn take_flight_address(server: &mut Server) -> String {
    let http = server.wait_for_log("listening on http").trim().trim_start_matches("listening on ").to_owned();
    std::mem::replace(&mut server.url, http)
}

/// A server whose databases `sites` (partial answers) and `whole` unite the nodes. Its callers are `ann` of the tenant
/// north, `bob` of south, `eve` of none, and `joe`, who has no role for the databases.
pub(super) struct UnitingServer {
    server: Server,
    /// Its address for Flight SQL, if its configuration has one.
    pub(super) flight: Option<String>,
    /// Its folder, for as long as it runs.
    _folder: TempDir,
    keys: Vec<(&'static str, String)>,
}

impl UnitingServer {
    pub(super) fn start(key: &KeyPair, nodes: &[SiteNode]) -> Self {
        let callers = [
            ("ann", "reader", Some("north")),
            ("bob", "reader", Some("south")),
            ("eve", "reader", None),
            ("joe", "guest", Some("north")),
        ];
        Self::start_with(key, &configuration(nodes), &callers)
    }

    /// A server with `callers`: name, role, tenant.
    pub(super) fn start_with(
        key: &KeyPair,
        configuration: &str,
        callers: &[(&'static str, &str, Option<&str>)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("uniting-key.pem"), &key.private).unwrap();
        std::fs::write(folder.path().join("tidegate.yaml"), configuration).unwrap();
        let keys =
            callers.iter().map(|(name, role, tenant)| (*name, add_key(folder.path(), name, role, *tenant))).collect();
        let mut server = Server::start(tidegate().current_dir(folder.path()).args(["serve", "--log", "warn"]));
        let flight = server.url.starts_with("grpc").then(|| take_flight_address(&mut server));
        Self { server, flight, _folder: folder, keys }
    }

    pub(super) async fn call(&self, caller: &str, tool: &str, arguments: Value) -> Answer {
        call(&self.server.url, self.key(caller), tool, arguments).await
    }

    pub(super) fn key(&self, caller: &str) -> &str {
        let (_, key) = self.keys.iter().find(|(name, _)| *name == caller).unwrap();
        key
    }

    /// The address of its MCP endpoint.
    pub(super) fn url(&self) -> &str {
        &self.server.url
    }

    /// The rows of `sql` as `caller` receives them from `database`.
    pub(super) async fn rows(&self, caller: &str, database: &str, sql: &str) -> Value {
        let answer = self.call(caller, "sql", json!({"database": database, "sql": sql})).await;
        assert!(!answer.is_error, "{sql} for {caller}: {answer:?}");
        assert_eq!(answer.meta.get("dev.tidegate/partial"), None, "{answer:?}");
        serde_json::from_str(&answer.text).unwrap_or_else(|_| panic!("{answer:?}"))
    }

    /// Waits until `holds` for the answer to `sql`.
    pub(super) async fn wait_for(&self, caller: &str, database: &str, sql: &str, holds: impl Fn(&Answer) -> bool) {
        wait_until(async || holds(&self.call(caller, "sql", json!({"database": database, "sql": sql})).await)).await;
    }
}

pub(super) fn add_key(folder: &Path, name: &str, role: &str, tenant: Option<&str>) -> String {
    let mut arguments = vec!["key", "add", name, "--role", role];
    arguments.extend(tenant.iter().flat_map(|tenant| ["--tenant", tenant]));
    let ran = run_in(folder, &arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout.split_whitespace().last().unwrap().to_owned()
}

pub(super) fn configuration(nodes: &[SiteNode]) -> String {
    let entries = nodes.iter().map(|node| format!("{{name: {}, url: '{}', database: plant}}", node.name, node.flight));
    let trust = format!("{{issuer: '{ISSUER}', key: '${{file:uniting-key.pem}}'}}");
    format!(
        "server: {{listen: '127.0.0.1:0'}}\n\
         databases:\n  - {{name: sites, network: {{nodes: &nodes [{}], partial: allow, timeout: 60s, ranges: &ranges [tenant, gone], trust: &trust {trust}}}}}\n  \
         - {{name: whole, network: {{nodes: *nodes, timeout: 60s, ranges: *ranges, trust: *trust}}}}\n\
         roles:\n  - {{name: reader, toolsets: ['*'], databases: [sites, whole]}}\n  - {{name: guest, toolsets: ['*']}}\n\
         auth: {{keys: keys.json}}\n",
        entries.collect::<Vec<_>>().join(", ")
    )
}

/// The answer to a call of a tool.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) meta: Value,
    pub(super) is_error: bool,
}

impl Answer {
    /// The rows of an answer without errors.
    pub(super) fn json(&self) -> Value {
        assert!(!self.is_error, "{self:?}");
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

/// Calls `tool` of the server at `url` with `credential`.
pub(super) async fn call(url: &str, credential: &str, tool: &str, arguments: Value) -> Answer {
    call_by(&Client::new(), (url, credential), tool, arguments).await
}

/// The same with a client that was made before, which takes time.
pub(super) async fn call_by(client: &Client, (url, credential): (&str, &str), tool: &str, arguments: Value) -> Answer {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let request = client
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .bearer_auth(credential)
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    let result = &answer["result"];
    let content = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = content.filter_map(|item| item["text"].as_str()).collect();
    let error = answer["error"]["message"].as_str().map(str::to_owned);
    let is_error = error.is_some() || result["isError"] == true;
    Answer { text: error.unwrap_or_else(|| texts.join("\n")), meta: result["_meta"].clone(), is_error }
}
