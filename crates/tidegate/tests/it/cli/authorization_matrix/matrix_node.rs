//! The node whose matrix it is: its configuration, what it serves, and what each role shows to it.

use std::path::Path;

use reqwest::{Client, Method};

use super::ROLES;
use super::client_connection::{ClientConnection, Transport};
use crate::cli::server::Server;
use crate::cli::{ConfiguredFolder, tidegate};

const CONFIGURATION: &str = r#"
databases:
  - {name: shop, files: shop}
  - {name: other, files: shop}
  - name: sales
    files: sales
    tenants: [north, south]
    policies:
      - {table: orders, rows: 'tenant = :tenant', columns: {customer: {keep_first: 1}, amount: null}, except_roles: [admin]}
  - {name: vault, files: shop, tenants: [north]}
  - name: crm
    sqlite: crm.db
    policies:
      - {table: people, rows: "tenant = :tenant OR tenant = 'all'", columns: {phone: deny}, except_roles: [admin]}
  - {name: both, federated: [sales, crm]}
  - {name: machine, system: {tables: [memory]}}
  - {name: sites, network: {nodes: [{name: oslo, url: 'SITE'}]}, tenants: [north]}
  - {name: plant, ingest: FOLDER, tables: {readings: {columns: {id: integer}}}}
receivers: {otlp: plant, prometheus: plant, bulk: plant}
metrics:
  - {name: sales_metrics, table: sales.samples, time: time, columns: [power]}
logs:
  - {name: sales_log, table: sales.orders, time: id}
  - {name: vault_log, table: vault.orders, time: id, access: [operator]}
tools:
  - {name: orders_all, description: O, database: shop, sql: SELECT id FROM orders ORDER BY id}
  - {name: orders_other, description: O, database: other, sql: SELECT id FROM orders ORDER BY id}
  - {name: orders_sales, description: O, database: sales, sql: SELECT * FROM orders ORDER BY id}
  - {name: orders_vault, description: O, database: vault, sql: SELECT id FROM orders ORDER BY id}
  - {name: orders_secret, description: O, database: shop, sql: SELECT 1 AS one, access: [orders.read, orders.secret]}
  - {name: orders_local, description: O, database: shop, sql: SELECT 1 AS one, from: {transports: [stdio, cli]}}
  - {name: orders_http, description: O, database: shop, sql: SELECT 1 AS one, from: {transports: [http]}}
  - {name: orders_near, description: O, database: shop, sql: SELECT 1 AS one, from: {networks: [127.0.0.0/8]}}
  - {name: orders_far, description: O, database: shop, sql: SELECT 1 AS one, from: {networks: [192.0.2.0/24]}}
resources:
  - {name: report, uri: 'reports://orders', database: shop, sql: SELECT id FROM orders}
  - {name: report_secret, uri: 'reports://secret', database: shop, sql: SELECT id FROM orders, access: [orders.secret]}
  - {name: report_vault, uri: 'reports://vault', database: vault, sql: SELECT id FROM orders}
  - {name: report_far, uri: 'reports://far', database: shop, sql: SELECT 1 AS one, from: {networks: [192.0.2.0/24]}}
  - {name: report_of, uri: 'reports://order/{id}', database: shop, sql: 'SELECT :id AS id'}
  - {name: report_local, uri: 'reports://local/{id}', database: shop, sql: 'SELECT :id AS id', from: {transports: [stdio]}}
prompts:
  - {name: orders_review, description: P, messages: [{text: Look at the orders.}, {resource: 'reports://orders'}]}
  - {name: orders_judge, description: P, messages: [{text: Judge.}], access: [orders.secret]}
  - {name: orders_chat, description: P, messages: [{text: Chat.}], from: {transports: [stdio]}}
toolsets:
  orders: [orders_*, report]
  reports: [report, report_of, report_local]
  front: [list_databases, sql, explore, orders_all]
  operations: [list_jobs, cancel_job, node_status]
roles:
  - {name: admin, toolsets: ['*'], access: ['*'], databases: ['*'], ingest: ['*']}
  - {name: analyst, toolsets: ['*'], databases: [shop, crm, machine]}
  - name: northern
    toolsets: ['*']
    access: [operator]
    databases: [shop, sales, vault, crm, both, sites]
    ingest: [plant.readings, plant.dropped, plant.otel_logs, plant.events]
  - {name: southern, toolsets: ['*'], access: [operator], databases: [shop, sales, vault, crm, both, sites]}
  - {name: curated, toolsets: [orders, discover], access: [orders.*]}
  - {name: clerk, toolsets: [orders], access: [orders.read], ingest: [plant.readings]}
  - {name: reader, toolsets: [reports]}
  - {name: operator, toolsets: [operations], access: [operator, metrics]}
  - {name: visitor, toolsets: [front], databases: [other]}
  - {name: nobody}
"#;

/// Who has what is somebody else's for all: what they are called, and whose role they have. The first lists no jobs but
/// her own and is of no tenant; the second operates the node for the tenant north.
const OTHER_PRINCIPALS: [(&str, &str); 2] = [("somebody else", "analyst"), ("somebody of north", "northern")];

/// The node, and what each role shows to it.
pub(super) struct MatrixNode {
    server: Server,
    configured: ConfiguredFolder,
    client: Client,
    /// Its address for Flight SQL.
    pub(super) flight: String,
    /// By role; the visitor shows nothing.
    keys: Vec<(&'static str, Option<String>)>,
    /// Of the [`OTHER_PRINCIPALS`].
    other_principals: [String; 2],
    /// The node of its network, which runs as long as it does.
    _site: (Server, ConfiguredFolder),
}

/// A node of a network that serves all callers.
pub(super) fn start_site() -> (ConfiguredFolder, Server) {
    let configured = ConfiguredFolder::new(
        "server: {listen: '127.0.0.1:0', flight: '127.0.0.1:0'}\ndatabases: [{name: shop, files: shop}]\n",
    );
    let server = Server::start(tidegate().current_dir(configured.folder()).args(["serve", "--log", "error"]));
    assert!(server.url.starts_with("grpc://"), "{}", server.url);
    (configured, server)
}

impl MatrixNode {
    pub(super) fn start() -> Self {
        let at_http = "server: {flight: '127.0.0.1:0'}\nauth: {keys: keys.json, anonymous: [visitor]}\n";
        // A folder has one writer: the server, or a process. Those of different roles run at the same time.
        let (site_folder, site) = start_site();
        let configuration = |folder: &str, auth: &str| {
            let configuration = CONFIGURATION.replace("FOLDER", folder).replace("SITE", &site.url);
            format!("{configuration}{auth}")
        };
        let configured = ConfiguredFolder::new(&configuration("plant", at_http));
        write_databases(configured.folder());
        let key = |name: &str, role: &str| {
            let tenant = tenant_of(role).into_iter().flat_map(|tenant| ["--tenant", tenant]);
            let arguments: Vec<&str> = ["key", "add", name, "--role", role].into_iter().chain(tenant).collect();
            let ran = configured.run(&arguments);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            ran.stdout.trim().to_owned()
        };
        let keys = ROLES.map(|role| (role, (role != "visitor").then(|| key(&format!("of_{role}"), role)))).to_vec();
        let other_principals = OTHER_PRINCIPALS.map(|(_, role)| key(&format!("colleague_{role}"), role));
        for role in ROLES {
            let local = configuration(&format!("plant_of_{role}"), &format!("auth: {{local: [{role}]}}\n"));
            std::fs::write(configured.folder().join(format!("{role}.yaml")), local).unwrap();
        }
        let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "error"];
        let mut server = Server::start(tidegate().current_dir(configured.folder()).args(serve));
        let http = server.wait_for_log("listening on http").trim().trim_start_matches("listening on ").to_owned();
        let flight = std::mem::replace(&mut server.url, http);
        let _site = (site, site_folder);
        Self { server, configured, client: Client::new(), flight, keys, other_principals, _site }
    }

    fn folder(&self) -> &Path {
        self.configured.folder()
    }

    pub(super) fn key(&self, role: &str) -> Option<&str> {
        self.keys.iter().find(|(name, _)| *name == role).and_then(|(_, key)| key.as_deref())
    }

    /// A client with `role` at an endpoint; the refusal if it is rejected.
    pub(super) async fn connect(
        &self,
        role: &str,
        transport: Transport,
        toolset: Option<&str>,
    ) -> Result<ClientConnection<'_>, String> {
        let configuration = format!("{role}.yaml");
        match transport {
            Transport::Stdio => ClientConnection::stdio(self.folder(), &configuration, toolset).await,
            Transport::CommandLine => ClientConnection::command_line(self.folder(), &configuration, toolset).await,
            over_http => {
                ClientConnection::over_http(&self.client, &self.server.url, self.key(role), over_http, toolset).await
            }
        }
    }

    /// Those who are none of the roles' holders, with what they are called in the matrix.
    pub(super) async fn other_principals(&self) -> Vec<(&'static str, ClientConnection<'_>)> {
        let mut lines = Vec::new();
        for ((label, _), key) in OTHER_PRINCIPALS.into_iter().zip(&self.other_principals) {
            let line = ClientConnection::over_http(
                &self.client,
                &self.server.url,
                Some(key.as_str()),
                Transport::Modern,
                None,
            )
            .await;
            lines.push((label, line.unwrap()));
        }
        lines
    }

    /// Status and body of what is at a path beside MCP.
    pub(super) async fn fetch(&self, role: &str, path: &str) -> (u16, String) {
        let request = self.client.get(self.server.url.replace("/mcp", path));
        let request = self.key(role).into_iter().fold(request, |request, key| request.bearer_auth(key));
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// Status and text of the answer to a body of a media type.
    pub(super) async fn send(
        &self,
        role: &str,
        method: &Method,
        path: &str,
        (media_type, body): (&str, Vec<u8>),
    ) -> (u16, String) {
        let request = self.client.request(method.clone(), self.server.url.replace("/mcp", path));
        let request = request.header("content-type", media_type).body(body);
        let request = match path {
            "/api/v1/write" => request.header("content-encoding", "snappy"),
            _ => request,
        };
        let request = self.key(role).into_iter().fold(request, |request, key| request.bearer_auth(key));
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }
}

/// The tenant of who holds a role, where it comes over HTTP. The user of a process has none: whose node it is.
fn tenant_of(role: &str) -> Option<&'static str> {
    match role {
        "northern" => Some("north"),
        "southern" => Some("south"),
        _ => None,
    }
}

/// The databases that a role has, on the node that serves everybody or on its holder's own.
pub(super) fn databases_of(role: &str, transport: Transport) -> &'static [&'static str] {
    match (role, transport.reaches_the_server()) {
        ("admin", true) => &["shop", "other", "crm", "machine", "plant"],
        ("admin", false) => &["shop", "other", "sales", "vault", "crm", "both", "machine", "plant", "sites"],
        ("analyst", _) => &["shop", "crm", "machine"],
        ("northern", _) | ("southern", false) => &["shop", "sales", "vault", "crm", "both", "sites"],
        ("southern", true) => &["shop", "sales", "crm", "both"],
        ("visitor", _) => &["other"],
        _ => &[],
    }
}

/// What the databases with row policies hold.
fn write_databases(folder: &Path) {
    let sales = folder.join("sales");
    std::fs::create_dir(&sales).unwrap();
    let orders = "id,tenant,customer,amount\n1,north,Ann,12.5\n2,south,Bob,7\n3,north,Cy,3\n";
    std::fs::write(sales.join("orders.csv"), orders).unwrap();
    let samples = "time,site,power\n2026-01-01T06:00:00Z,east,1.5\n2026-01-01T18:00:00Z,east,2.5\n";
    std::fs::write(sales.join("samples.csv"), samples).unwrap();
    let people = "CREATE TABLE people (id INTEGER PRIMARY KEY, tenant TEXT, name TEXT, phone TEXT);
        INSERT INTO people VALUES (1, 'north', 'Ann', '79'), (2, 'south', 'Bob', '78'), (3, 'all', 'Cy', '77')";
    rusqlite::Connection::open(folder.join("crm.db")).unwrap().execute_batch(people).unwrap();
}
