//! Messages pass through the bridge byte by byte as over direct stdio, in both eras and over both transports.

use std::sync::Arc;

use serde_json::json;
use tidegate_client::bridge::{BridgeOptions, ServerAddress};
use tidegate_mcp::Revision;
use tidegate_runtime::{Answer, SnapshotBuilder, Tool, handler_fn};
use tidegate_transport::Metrics;
use tidegate_transport::http::{self, HttpOptions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::server::Server;
use super::{BridgeTransport, Client, INITIALIZED, handshake, legacy, modern};
use tidegate_testkit::host::Host;

/// Sends each line and returns all lines up to its answer.
async fn collect_lines(mut client: Client, lines: &[String]) -> Vec<String> {
    let mut message = Vec::new();
    for line in lines {
        client.line(line).await;
        let is_notification = line.contains("\"method\"") && !line.contains("\"id\"");
        let mut is_answered = is_notification;
        while !is_answered {
            let received = client.hear().await;
            is_answered = !received.contains("\"method\"");
            message.push(received);
        }
    }
    assert_eq!(client.close().await, Vec::<String>::new());
    message
}

async fn assert_same(carrier: BridgeTransport, lines: &[String]) {
    let direct = collect_lines(Client::direct(&Host::new()), lines).await;
    let bridged = collect_lines(Server::start(carrier).await.client(), lines).await;
    assert_eq!(bridged, direct, "{carrier:?}");
}

/// Requests and ids of every kind, without the metadata of an era.
fn requests() -> Vec<(String, String, serde_json::Value)> {
    let call = |steps: serde_json::Value| json!({"name": "script", "arguments": {"steps": steps}});
    let progress = json!([["progress", 1, 2, "half"], ["text", "later"], ["progress", 2, 2, null], ["text", "!"]]);
    let with_progress = json!({"name": "script", "arguments": {"steps": progress}, "_meta": {"progressToken": "p"}});
    let id = |id: &str| id.to_owned();
    let of = |id: String, method: &str, params| (id, method.to_owned(), params);
    vec![
        of(id("7"), "tools/list", json!({})),
        of(id("\"caf\\u00e9 \\\\ \\\"x\\\"\""), "tools/list", json!({})),
        of(id("12345678901234567890123"), "resources/list", json!({})),
        of(id("1.0"), "prompts/list", json!({})),
        of(id("-3"), "tools/call", call(json!([["text", "grüße\n\u{1f600}"], ["image", "image/png"]]))),
        of(id("8"), "tools/call", with_progress),
        of(id("9"), "tools/call", call(json!([["fail", "no luck"]]))),
        of(id("10"), "tools/call", json!({"name": "nobody"})),
        of(id("11"), "tools/call", json!({"name": 7})),
        of(id("12"), "resources/read", json!({"uri": "test://plain"})),
        of(id("13"), "resources/read", json!({"uri": "test://nöwhere"})),
        of(id("14"), "prompts/get", json!({"name": "plain"})),
        of(id("15"), "no/such/method", json!({})),
        of(id("16"), "tools/call", call(json!([["text", "<"], ["flood", 1_000_000], ["text", ">"]]))),
    ]
}

fn with_id(line: String, id: &str) -> String {
    line.replace("\"id\":null", &format!("\"id\":{id}"))
}

#[tokio::test]
async fn forwards_modern_answers_unchanged() {
    let lines: Vec<String> = requests()
        .into_iter()
        .map(|(id, method, params)| with_id(modern(&json!(null), &method, params), &id))
        .chain([with_id(modern(&json!(null), "server/discover", json!({})), "17")])
        .collect();
    for carrier in BridgeTransport::BOTH {
        assert_same(carrier, &lines).await;
    }
}

#[tokio::test]
async fn forwards_legacy_answers_unchanged() {
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        let requests = requests().into_iter();
        let requests = requests.map(|(id, method, params)| with_id(legacy(&json!(null), &method, &params), &id));
        let lines: Vec<String> = [handshake(revision), INITIALIZED.to_owned()]
            .into_iter()
            .chain(requests)
            .chain([
                legacy(&json!(18), "ping", &json!({})),
                legacy(&json!(19), "logging/setLevel", &json!({"level": "?"})),
            ])
            .collect();
        for carrier in BridgeTransport::BOTH {
            assert_same(carrier, &lines).await;
        }
    }
}

#[tokio::test]
async fn a_batch_passes_as_one() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":"2","method":"ping"}]"#;
    for revision in [Revision::V2025_03_26, Revision::V2025_11_25] {
        let lines = [handshake(revision), INITIALIZED.to_owned(), batch.to_owned()];
        for carrier in BridgeTransport::BOTH {
            assert_same(carrier, &lines).await;
        }
    }
}

#[tokio::test]
async fn rejects_malformed_messages_like_a_server() {
    let lines: Vec<String> = [
        r#"{"id": nonsense"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"[]"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
    ]
    .map(str::to_owned)
    .into();
    assert_same(BridgeTransport::Socket, &lines).await;
    assert_same(BridgeTransport::Http, &lines[..4]).await;
}

#[tokio::test]
async fn a_client_need_not_wait_for_its_handshake() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        let mut client = server.client();
        let revision = Revision::NEWEST_LEGACY;
        let calls: Vec<String> = (0..20).map(|id| legacy(&json!(id), "ping", &json!({}))).collect();
        client.line(&[handshake(revision), INITIALIZED.to_owned(), calls.join("\n")].join("\n")).await;
        let first: serde_json::Value = serde_json::from_str(&client.hear().await).unwrap();
        assert_eq!(first["id"], "hello");
        let mut answered = Vec::new();
        for _ in 0..20 {
            let answer = client.answer().await;
            assert!(answer.get("result").is_some(), "{carrier:?} {answer}");
            answered.push(answer["id"].as_u64().unwrap());
        }
        answered.sort_unstable();
        assert_eq!(answered, (0..20).collect::<Vec<_>>());
    }
}

/// A tool that requires some of its arguments in headers.
fn marked() -> Host {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "rows": {"type": "integer", "x-mcp-header": "Rows"},
            "nested": {"type": "object", "properties": {"deep": {"type": "boolean", "x-mcp-header": "Deep"}}},
        },
    });
    let hello = handler_fn(|_| async { Ok(Answer::text("hello")) });
    Host::from_entries(
        SnapshotBuilder::new().tool(Tool::new("marked", "Greets.", hello).with_input_schema(schema).unwrap()),
    )
}

#[tokio::test]
async fn repeats_arguments_in_required_headers() {
    let host = marked();
    let (metrics, shutdown) = (Arc::new(Metrics::new()), CancellationToken::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let running =
        http::serve(listener, host.service.clone(), metrics, HttpOptions::default(), shutdown.clone()).unwrap();
    let address = ServerAddress::parse(&format!("http://{}/mcp", running.address())).unwrap();
    let mut client = Client::bridged(BridgeOptions::new(address));
    let arguments = [
        json!({}),
        json!({"region": "us-west1", "rows": 7}),
        json!({"region": " grüße\n", "rows": -1, "nested": {"deep": true}}),
        json!({"nested": {}}),
    ];
    for arguments in arguments {
        let answer = client.ask(1, "tools/call", json!({"name": "marked", "arguments": arguments})).await;
        assert_eq!(super::text(&answer), "hello");
    }
    assert!(client.close().await.is_empty());
    shutdown.cancel();
    running.wait().await;
}
