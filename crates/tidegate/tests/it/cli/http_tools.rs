//! Tools that call an HTTP API, from the configuration to the answer. Secrets of their headers are never printed.

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::server::Server;
use super::{CommandOutput, ConfiguredFolder, tidegate};

/// The credential for the API. Its braces are neither parameters nor variables.
const SECRET: &str = "s3cr{et}-{customer}-{{x}}-${HOME}";

/// The API's host and port.
async fn start_api() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let routes = Router::new()
        .route("/tickets/{customer}", get(tickets))
        .route("/slow", get(std::future::pending::<()>))
        .route("/large", get(async || ([(header::CONTENT_TYPE, "application/json")], " ".repeat(100_000))))
        .route("/away", get(async || Redirect::temporary("http://127.0.0.2:9/tickets/7")))
        .route("/repeats", get(async |headers: HeaderMap| (StatusCode::BAD_REQUEST, response_text(&headers))));
    tokio::spawn(async { axum::serve(listener, routes).await });
    host
}

/// What came in the header of the secret.
fn response_text(headers: &HeaderMap) -> String {
    headers[header::AUTHORIZATION].to_str().unwrap().to_owned()
}

async fn tickets(Path(customer): Path<String>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    if response_text(&headers) != format!("Bearer {SECRET}") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let query = query.unwrap_or_default();
    let items = serde_json::json!([
        {"id": 1, "customer": customer, "query": query}, {"id": 2, "customer": customer, "open": true},
    ]);
    ([(header::CONTENT_TYPE, "application/json")], serde_json::json!({"data": {"items": items}}).to_string())
        .into_response()
}

/// A folder with tools that call the API at `host`.
fn configured(host: &str) -> ConfiguredFolder {
    let tool = |name: &str, path: &str, more: &str| {
        format!(
            "  - name: {name}\n    description: D\n    http: {{url: 'http://{host}{path}', headers: {{authorization: \
             'Bearer ${{API_KEY}}'}}, {more}}}\n"
        )
    };
    let tickets =
        tool("tickets", "/tickets/{{customer}}", "query: {limit: '{{limit}}', page: '{{page}}'}, rows: /data/items");
    let input =
        "    input: {customer: {}, limit: {type: integer, default: 2}, page: {type: integer, required: false}}\n";
    ConfiguredFolder::new(&format!(
        "built_in: []\nhttp: {{allow_hosts: ['{host}']}}\ntools:\n{tickets}{input}{}{}{}{}",
        tool("slow", "/slow", "timeout: 200ms"),
        tool("large", "/large", "max_bytes: 10KB"),
        tool("away", "/away", ""),
        tool("repeats", "/repeats", ""),
    ))
}

/// Runs with the secret in the environment; it stands in nothing that is printed, however much is logged.
fn run(configured: &ConfiguredFolder, arguments: &[&str]) -> CommandOutput {
    let mut command = tidegate();
    let command = command.current_dir(configured.folder()).env("API_KEY", SECRET).env("TIDEGATE_LOG", "trace");
    let ran: CommandOutput = command.args(arguments).output().unwrap().into();
    for text in [&ran.stdout, &ran.stderr] {
        assert!(!contains_secret(text), "{arguments:?}: {text}");
    }
    ran
}

fn contains_secret(text: &str) -> bool {
    text.contains("s3cr") || text.contains("{{x}}")
}

/// What a call answers, or why it does not.
fn call(configured: &ConfiguredFolder, host: &str, arguments: &[&str]) -> String {
    let ran = run(configured, &[&["call"], arguments].concat());
    let message = ran.stderr.split_once("error: ").map_or(ran.stdout.as_str(), |(_, message)| message);
    message.trim_end().replace(host, "HOST")
}

#[tokio::test(flavor = "multi_thread")]
async fn http_tool_rows_support_every_format() {
    let host = start_api().await;
    let configured = configured(&host);
    let call = |arguments: &[&str]| call(&configured, &host, arguments);
    let first = r#"{"id":1,"customer":"a/b","query":"limit=2","open":null}"#;
    let rows = format!(r#"[{first},{{"id":2,"customer":"a/b","query":null,"open":true}}]"#);
    assert_eq!(call(&["tickets", "customer=a/b"]), rows, "what a parameter holds stays one part of the address");
    insta::assert_snapshot!(call(&["tickets", "customer=7", "page=3", "format=csv"]), @r"
    id,customer,query,open
    1,7,limit=2&page=3,
    2,7,,true
    ");
    assert_eq!(call(&["tickets", "customer=7", "extract=id"]), "[1,2]");
    insta::assert_snapshot!(call(&["tickets"]), @r#"
    the arguments of tool "tickets" are wrong:
    - customer: is required
    "#);
    insta::assert_snapshot!(call(&["tickets", "customer=7", "limit=many"]), @r#"
    the arguments of tool "tickets" are wrong:
    - limit: "many" is not of type "integer"
    "#);
    insta::assert_snapshot!(call(&["tickets", "customer=7", "extract=name"]), @r#"
    extract: the answer has no column "name"
    Valid choices: id, customer, query, open
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_tool_limits_apply() {
    let host = start_api().await;
    let configured = configured(&host);
    let call = |tool: &str| call(&configured, &host, &[tool]);
    insta::assert_snapshot!(call("slow"), @"HOST did not answer within 0.2 s, the time limit of this tool (timeout)");
    insta::assert_snapshot!(call("large"), @r"
    the answer of HOST is larger than 10000 bytes, the limit of this tool (max_bytes)
    Request less data; the owner of this server can raise max_bytes of the tool.
    ");
    insta::assert_snapshot!(call("away"), @r"
    HOST redirects to 127.0.0.2:9, which is not among the hosts that http tools may reach
    The owner of this server can add it to http.allow_hosts.
    ");
    insta::assert_snapshot!(call("repeats"), @r"
    the API rejects these arguments: HOST answers 400 Bad Request
    The API's message: ***
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn disallowed_host_fails_config_check() {
    let host = start_api().await;
    let configured = configured(&host);
    let text = std::fs::read_to_string(configured.folder().join("tidegate.yaml")).unwrap();
    configured.write(&text.replace(&format!("allow_hosts: ['{host}']"), "allow_hosts: [api.example.com]"));
    let ran = run(&configured, &["config", "check"]);
    assert_eq!(ran.code, Some(2));
    let problems = ran.stderr.matches("is not among the hosts that http tools may reach").count();
    assert_eq!(problems, 5, "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_tool_never_reveals_secrets() {
    let configured = configured(&start_api().await);
    for verb in [
        &["config", "check"] as &[&str],
        &["doctor"],
        &["tools", "--json"],
        &["access", "explain", "--role", "local"],
        &["call", "tickets", "customer=7"],
    ] {
        run(&configured, verb);
    }
    let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "trace"];
    let command = &mut tidegate();
    let server = Server::start(command.current_dir(configured.folder()).env("API_KEY", SECRET).args(serve));
    let metrics = reqwest::get(server.url.replace("/mcp", "/metrics")).await.unwrap().text().await.unwrap();
    server.signal("TERM");
    let (status, log) = server.wait_for_exit();
    assert_eq!(status.code(), Some(0));
    assert!(!contains_secret(&metrics) && !contains_secret(&log), "{metrics}\n{log}");
    let misplaced = "{name: '${API_KEY}', description: D, http: {url: 'http://${API_KEY}/', method: '${API_KEY}'}}";
    configured.write(&format!("tools: [{misplaced}]\nlimits: {{timeout: '${{API_KEY}}'}}\n"));
    assert_eq!(run(&configured, &["config", "check"]).code, Some(2));
    configured.write(&format!("tools: [{misplaced}]\n"));
    assert_eq!(run(&configured, &["config", "check"]).code, Some(2));
}
