//! `tidegate serve`.

use reqwest::Client;
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::json;

use super::server::Server;
use super::{ConfiguredFolder, Shop, rmcp_client, run, tidegate};

fn serve(shop: &Shop) -> Server {
    Server::start(tidegate().args(["serve", "--listen", "127.0.0.1:0", "--log", "warn"]).arg(shop.path()))
}

#[tokio::test(flavor = "multi_thread")]
async fn rmcp_client_connects_and_calls() {
    let shop = Shop::new();
    let server = serve(&shop);
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "query"), "{tools:?}");
    let arguments = json!({"table": "orders", "extract": "customer"}).as_object().unwrap().clone();
    let answer = client.call_tool(CallToolRequestParams::new("query").with_arguments(arguments)).await.unwrap();
    assert_eq!(answer.content[0].as_text().unwrap().text, r#"["Ann","Bob"]"#);
    client.cancel().await.unwrap();
}

#[test]
fn listening_beyond_this_machine_is_refused() {
    let shop = Shop::new();
    let ran = run(&["serve", "--listen", "0.0.0.0:7070", &shop.argument()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(ran.stderr, @r"
    error: 0.0.0.0:7070 can be reached from other machines, and every client there could read the data, because callers are not authenticated.
    Either require keys: tidegate key add NAME --role ROLE, and a configuration with that role, without auth.development, and

        auth:
          keys: tidegate-keys.json

    or listen on 127.0.0.1:7070 and give others a tunnel (ssh -L 7070:127.0.0.1:7070 THIS-MACHINE).
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_unknown_host_names() {
    let lists = "server: {allow_hosts: [data.example.com], allow_origins: ['https://app.example.com']}\n";
    let configured = ConfiguredFolder::new(&format!("databases: [{{name: shop, files: shop}}]\n{lists}"));
    let server = rmcp_client::serve(&configured);
    for (host, origin, is_let_in) in [
        ("localhost", None, true),
        ("data.example.com:7070", Some("https://app.example.com"), true),
        ("data.example.com", Some("http://localhost:3000"), true),
        ("evil.example.com", None, false),
        ("localhost", Some("https://evil.example.com"), false),
        ("localhost", Some("null"), false),
    ] {
        for path in ["/mcp", "/mcp/sse", "/rest/tools", "/results/1", "/health", "/metrics"] {
            let request = Client::new().get(server.url.replace("/mcp", path)).header("host", host);
            let request = origin.into_iter().fold(request, |request, origin| request.header("origin", origin));
            let answered = request.send().await.unwrap().status();
            assert_eq!(answered != 403, is_let_in, "{path} of {host} for {origin:?}: {answered}");
        }
    }
}

#[test]
fn an_address_in_use_is_a_failure() {
    let shop = Shop::new();
    let server = serve(&shop);
    let address = server.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let ran = run(&["serve", "--listen", address, &shop.argument()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(&format!("cannot listen on {address}")), "{}", ran.stderr);
}

#[test]
fn sigterm_exits_cleanly() {
    let shop = Shop::new();
    for signal in ["TERM", "INT"] {
        let server = serve(&shop);
        server.signal(signal);
        let (status, text) = server.wait_for_exit();
        assert_eq!((status.code(), text.as_str()), (Some(0), ""), "{signal}");
    }
}
