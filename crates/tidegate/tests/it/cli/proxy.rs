//! A proxy that says in headers who calls: it is believed at its own address, and nobody is anywhere else.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use reqwest::Client;
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::serve;
use super::server::Server;

const CONFIGURATION: &str = "
databases: [{name: shop, files: shop}, {name: north_shop, files: shop, tenants: [north]}]
tools:
  - {name: load_all, description: L, database: shop, sql: SELECT 1 AS one}
  - {name: read_all, description: R, database: shop, sql: SELECT 1 AS one}
  - {name: read_north, description: N, database: north_shop, sql: SELECT 1 AS one}
toolsets: {loading: [load_*], reading: [read_*]}
roles: [{name: loader, toolsets: [loading]}, {name: reader, toolsets: [reading]}]
auth:
  keys: keys.json
  proxy: {networks: [127.0.0.2], user_header: X-Forwarded-User, tenant_header: x-forwarded-tenant, roles_header: x-forwarded-groups}
audit: {file: audit.jsonl}
";
/// Where the proxy is, and where anybody is: both are addresses of this machine.
const PROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OTHER_ADDRESS: Ipv4Addr = Ipv4Addr::LOCALHOST;

const ANN: (&str, &str) = ("x-forwarded-user", "ann");
const TENANT_NORTH: (&str, &str) = ("x-forwarded-tenant", "north");
const READER: (&str, &str) = ("x-forwarded-groups", "reader");

/// A client with one address.
struct ProxiedClient<'a> {
    client: Client,
    server: &'a Server,
}

impl<'a> ProxiedClient<'a> {
    fn from_address(address: Ipv4Addr, server: &'a Server) -> Self {
        Self { client: Client::builder().local_address(IpAddr::V4(address)).build().unwrap(), server }
    }

    /// The names of the tools for a client with these headers, or the status of the refusal.
    async fn tools(&self, key: Option<&str>, headers: &[(&str, &str)]) -> Result<String, u16> {
        let request = self.client.get(self.server.url.replace("/mcp", "/rest/tools"));
        let request = key.into_iter().fold(request, |request, key| request.bearer_auth(key));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.unwrap();
        if !response.status().is_success() {
            return Err(response.status().as_u16());
        }
        let answer: Value = response.json().await.unwrap();
        let tools = answer["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
        Ok(tools.collect::<Vec<_>>().join(" "))
    }
}

fn tools_are(tools: &str) -> Result<String, u16> {
    Ok(tools.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_without_roles_header_have_default_roles() {
    let with_defaults = CONFIGURATION.replace("x-forwarded-groups}", "x-forwarded-groups, default_roles: [reader]}");
    let configured = ConfiguredFolder::new(&with_defaults);
    let server = serve(&configured);
    let proxy = ProxiedClient::from_address(PROXY, &server);
    assert_eq!(proxy.tools(None, &[ANN]).await, tools_are("read_all"));
    assert_eq!(proxy.tools(None, &[ANN, TENANT_NORTH]).await, tools_are("read_all read_north"));
    assert_eq!(proxy.tools(None, &[ANN, ("x-forwarded-groups", "loader")]).await, tools_are("load_all"));
    assert_eq!(proxy.tools(None, &[]).await, Err(401));

    let unknown = ConfiguredFolder::new(&with_defaults.replace("[reader]}", "[readers]}"));
    let ran = unknown.run(&["config", "check"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("auth.proxy.default_roles[0]"), "{ran:?}");
    let headers_only = "user_header: x-user}\n";
    let (before, _) = CONFIGURATION.split_once("user_header").unwrap();
    let without_roles = ConfiguredFolder::new(&format!("{before}{headers_only}"));
    let ran = without_roles.run(&["config", "check"]);
    assert!(ran.stderr.contains("auth.proxy has neither roles_header nor default_roles"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_headers_are_trusted_only_from_the_proxy() {
    let configured = ConfiguredFolder::new(CONFIGURATION);
    let ran = configured.run(&["key", "add", "bob", "--role", "loader"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let key = Some(ran.stdout.trim());
    let server = serve(&configured);
    let (proxy, anywhere) =
        (ProxiedClient::from_address(PROXY, &server), ProxiedClient::from_address(OTHER_ADDRESS, &server));

    assert_eq!(proxy.tools(None, &[ANN, READER]).await, tools_are("read_all"));
    assert_eq!(proxy.tools(None, &[ANN, READER, TENANT_NORTH]).await, tools_are("read_all read_north"));
    let both = ("x-forwarded-groups", "loader , reader,unheard-of");
    assert_eq!(proxy.tools(None, &[ANN, both]).await, tools_are("load_all read_all"));
    assert_eq!(proxy.tools(None, &[ANN]).await, tools_are(""), "known, and without a role");
    assert_eq!(proxy.tools(None, &[]).await, Err(401), "whom it does not name is nobody");
    // What can be understood in two ways is understood in none.
    for twice in [ANN, READER, TENANT_NORTH] {
        assert_eq!(proxy.tools(None, &[ANN, READER, TENANT_NORTH, twice]).await, Err(401), "{twice:?}");
    }
    assert_eq!(proxy.tools(None, &[("x-forwarded-user", ""), READER]).await, Err(401));
    assert_eq!(proxy.tools(None, &[READER]).await, Err(401), "roles of nobody");
    // A bearer comes first, and where it is wrong no proxy saves it.
    assert_eq!(proxy.tools(key, &[ANN, READER]).await, tools_are("load_all"));
    assert_eq!(proxy.tools(Some("tg_0123456789"), &[ANN, READER]).await, Err(401));

    assert_eq!(anywhere.tools(None, &[ANN, READER, TENANT_NORTH]).await, Err(401));
    assert_eq!(anywhere.tools(key, &[ANN, ANN, READER]).await, tools_are("load_all"), "there they are not even wrong");

    let call = proxy.client.post(server.url.replace("/mcp", "/rest/tools/read_north/call")).json(&json!({}));
    let call = [ANN, READER, TENANT_NORTH].into_iter().fold(call, |call, (name, value)| call.header(name, value));
    assert_eq!(call.send().await.unwrap().status(), 200);
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().0.code(), Some(0));
    let log = fs::read_to_string(configured.folder().join("audit.jsonl")).unwrap();
    let call = log.lines().find(|line| line.contains(r#""kind":"call""#)).unwrap();
    let call: Value = serde_json::from_str(call).unwrap();
    let caller = json!([call["subject"], call["tenant"], call["proof"], call["roles"], call["address"]]);
    assert_eq!(caller, json!(["ann", "north", "proxy", ["reader"], "127.0.0.2"]));
}
