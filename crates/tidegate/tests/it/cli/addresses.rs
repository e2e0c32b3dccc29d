//! The addresses of a server: each with its own transports and TLS, the connections that fit, and changes of `server`
//! while it runs.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use reqwest::{Client, StatusCode};
use rmcp::ServiceExt as _;
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::json;

use super::server::{Server, wait_until};
use super::{ConfiguredFolder, tidegate};

const DATABASES: &str = "databases: [{name: shop, files: shop}]\n";

fn serve(configured: &ConfiguredFolder) -> Server {
    Server::start(tidegate().current_dir(configured.folder()).args(["serve", "--log", "warn"]))
}

/// The status of a GET, or `None` if there is no answer in HTTP.
async fn status(url: &str) -> Option<StatusCode> {
    let client = Client::builder().danger_accept_invalid_certs(true).build().unwrap();
    client.get(url).send().await.ok().map(|response| response.status())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_address_has_its_own_transports_and_tls() {
    let configured = ConfiguredFolder::new(&format!(
        "server:\n  transports: {{metrics: false}}\n  listen:\n    - 127.0.0.1:0\n    \
         - {{address: 'localhost:0', transports: {{mcp: false, sse: false, ws: false}}}}\n    \
         - {{address: '127.0.0.1:0', tls: {{certificate: cert.pem, key: key.pem}}}}\n{DATABASES}"
    ));
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(configured.folder().join("cert.pem"), certified.cert.pem()).unwrap();
    std::fs::write(configured.folder().join("key.pem"), certified.signing_key.serialize_pem()).unwrap();
    let mut server = serve(&configured);
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    assert!(!client.list_all_tools().await.unwrap().is_empty());
    client.cancel().await.unwrap();
    let first = server.url.strip_suffix("/mcp").unwrap().to_owned();
    let mut next = || server.wait_for_log("listening on ").trim_end().replace("listening on ", "");
    let (second, third) = (next(), next());
    let second = second.strip_suffix("/rest/").unwrap();
    assert!(third.starts_with("https://127.0.0.1:"), "{third}");
    let third = third.strip_suffix("/mcp").unwrap();
    let plain = third.replace("https", "http");
    let mut table = String::new();
    for (name, base) in [("first", first.as_str()), ("second", second), ("third", third), ("third, plain", &plain)] {
        for path in ["/rest/tools", "/mcp", "/mcp/sse", "/mcp/ws", "/metrics", "/ready"] {
            let status = status(&format!("{base}{path}")).await.map_or(0, |status| status.as_u16());
            table.push_str(&format!("{name} {path}: {status}\n"));
        }
    }
    insta::assert_snapshot!(table, @r"
    first /rest/tools: 200
    first /mcp: 400
    first /mcp/sse: 200
    first /mcp/ws: 426
    first /metrics: 404
    first /ready: 200
    second /rest/tools: 200
    second /mcp: 404
    second /mcp/sse: 404
    second /mcp/ws: 404
    second /metrics: 200
    second /ready: 200
    third /rest/tools: 200
    third /mcp: 400
    third /mcp/sse: 200
    third /mcp/ws: 426
    third /metrics: 404
    third /ready: 200
    third, plain /rest/tools: 0
    third, plain /mcp: 0
    third, plain /mcp/sse: 0
    third, plain /mcp/ws: 0
    third, plain /metrics: 0
    third, plain /ready: 0
    ");
}

#[test]
fn addresses_are_checked_one_by_one() {
    let configured = ConfiguredFolder::new(&format!(
        "server:\n  listen:\n    - 127.0.0.1:7171\n    - {{address: '127.0.0.1:7171'}}\n    - 0.0.0.0:7172\n    \
         - nonsense\n{DATABASES}"
    ));
    let text = configured.usage_error(&["config", "check"]);
    assert!(text.contains("server.listen[1]: 127.0.0.1:7171 is listed twice"), "{text}");
    assert!(text.contains("server.listen[2]: 0.0.0.0:7172 can be reached from other machines"), "{text}");
    assert!(text.contains("server.listen[3]: nonsense is no address to listen on"), "{text}");
    configured.write(&format!("server: {{listen: []}}\n{DATABASES}"));
    let text = configured.usage_error(&["config", "check"]);
    assert!(text.contains("server.listen: is an empty list"), "{text}");
    let text = configured.usage_error(&["serve"]);
    assert!(text.contains("server.listen: is an empty list"), "{text}");
    configured.write(&format!("server: {{listen: [{{adress: '127.0.0.1:0'}}]}}\n{DATABASES}"));
    let text = configured.usage_error(&["config", "check"]);
    assert!(text.contains("server.listen[0].adress: unknown key; did you mean address?"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_the_server_apply_without_a_restart() {
    let configured = ConfiguredFolder::new(&format!("server: {{title: First, listen: '127.0.0.1:0'}}\n{DATABASES}"));
    let mut server = serve(&configured);
    let base = server.url.strip_suffix("/mcp").unwrap().to_owned();
    let discover = async || {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}});
        let request = Client::new()
            .post(format!("{base}/mcp"))
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "server/discover")
            .json(&request);
        request.send().await.unwrap().text().await.unwrap()
    };
    let of_host = async |host: &str| {
        let request = Client::new().get(format!("{base}/health")).header("host", host);
        request.send().await.unwrap().status()
    };
    let large = async || {
        let request = Client::new().post(format!("{base}/rest/sql")).header("content-type", "application/sql");
        request.body(format!("SELECT 1 -- {}", "x".repeat(4000))).send().await.unwrap().status()
    };
    assert!(discover().await.contains("\"title\":\"First\""));
    assert_eq!(of_host("data.example.com").await, 403);
    assert_eq!(large().await, 200);
    configured.write(&format!(
        "server:\n  title: Second\n  listen: 127.0.0.1:0\n  instructions: Be brief.\n  allow_hosts: [data.example.com]\n  \
         max_body: 2KB\n  transports: {{ws: false}}\n{DATABASES}"
    ));
    wait_until(async || of_host("data.example.com").await == 200).await;
    let discovered = discover().await;
    assert!(discovered.contains("\"title\":\"Second\"") && discovered.contains("Be brief."), "{discovered}");
    assert_eq!(large().await, 413);
    assert_eq!(status(&format!("{base}/mcp/ws")).await.unwrap(), 404);
    configured.write(&format!(
        "server: {{listen: ['127.0.0.1:0', '127.0.0.1:7179'], transports: {{ws: true}}}}\n{DATABASES}"
    ));
    let warning = server.wait_for_log("server.listen");
    assert!(warning.contains("changed addresses take effect when the server restarts"), "{warning}");
    wait_until(async || status(&format!("{base}/mcp/ws")).await.unwrap() == 426).await;
    assert!(discover().await.contains("\"title\":\"Tidegate\""));
}

/// A process that may open few files still answers while hundreds of clients keep idle connections.
#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_leave_files_for_the_server() {
    let configured = ConfiguredFolder::new(&format!("server: {{listen: '127.0.0.1:0'}}\n{DATABASES}"));
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 128; exec \"$0\" serve --log warn", env!("CARGO_BIN_EXE_tidegate")]);
    limited.current_dir(configured.folder()).env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let mut server = Server::start(&mut limited);
    let address: SocketAddr = server.address();
    let connect = || tokio::task::spawn_blocking(move || TcpStream::connect(address).unwrap());
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(connect().await.unwrap());
    }
    let request = Client::new().post(format!("http://{address}/rest/sql")).header("content-type", "application/sql");
    let answer = request.body("SELECT count(*) AS n FROM orders").send().await.unwrap();
    assert_eq!((answer.status(), answer.text().await.unwrap().contains('3')), (StatusCode::OK, true));
    let warning = server.wait_for_log("connections are in use");
    assert!(warning.contains("all 64 connections are in use; the oldest idle one is closed"), "{warning}");
}
