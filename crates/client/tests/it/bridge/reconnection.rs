//! Servers that become unreachable, come back, and restart.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::bridge::{BridgeNotice, BridgeOptions, ServerAddress};
use tidegate_mcp::Revision;

use super::scripted::{ScriptedServer, json as json_response, response};
use super::server::Server;
use super::{BridgeTransport, Client};
use tidegate_testkit::wait::wait_until;

const ERAS: [bool; 2] = [true, false];

fn soon(options: BridgeOptions) -> BridgeOptions {
    BridgeOptions { wait_within: Duration::from_secs(2), ..options }
}

#[tokio::test]
async fn server_restart_is_transparent() {
    for carrier in BridgeTransport::BOTH {
        for is_legacy in ERAS {
            let mut server = Server::start(carrier).await;
            let mut client = server.client().of_era(is_legacy).await;
            for round in 0..3 {
                let mark = format!("round {round}");
                assert_eq!(client.text(round, json!([["text", mark]])).await, mark);
                server.restart().await;
            }
            client.lives().await;
            assert_eq!(server.counts.most(), 1, "{carrier:?}");
        }
    }
}

#[tokio::test]
async fn reconnect_notifies_changed_lists() {
    for carrier in BridgeTransport::BOTH {
        let mut server = Server::start(carrier).await;
        let mut client = server.client().of_era(true).await;
        client.lives().await;
        server.restart().await;
        // Without a call: the bridge itself watches the connection.
        let mut rendered = Vec::new();
        while rendered.len() < 3 {
            let message: Value = serde_json::from_str(&client.hear().await).unwrap();
            rendered.push(message["method"].as_str().unwrap().to_owned());
        }
        let of = |list: &str| format!("notifications/{list}/list_changed");
        assert_eq!(rendered, [of("tools"), of("resources"), of("prompts")], "{carrier:?}");
        wait_until("the handshake is repeated", async || {
            client.notices.lock().contains(&BridgeNotice::HandshakeRenewed)
        })
        .await;
        client.lives().await;
    }
}

#[tokio::test]
async fn interrupted_call_fails_without_retry() {
    for carrier in BridgeTransport::BOTH {
        for is_legacy in ERAS {
            let server = Server::start(carrier).await;
            let mut client = server.client().of_era(is_legacy).await;
            client.call("lost", json!([["text", "mark"], ["wait", null]])).await;
            wait_until("the call runs", async || server.counts.of("mark") == 1).await;
            server.proxy.cut().await;
            let answer = client.answer().await;
            assert_eq!(answer["id"], "lost");
            assert_eq!(answer["error"]["code"], -31_000);
            assert_eq!(answer["error"]["data"], json!({"kind": "unavailable", "mayHaveRun": true}));
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(
                message.contains(&server.proxy.address.to_string()) && message.contains("it may have run"),
                "{message}"
            );
            client.lives().await;
            assert_eq!(server.counts.of("mark"), 1);
        }
    }
}

#[tokio::test]
async fn call_waits_for_unreachable_server_within_timeout() {
    for carrier in BridgeTransport::BOTH {
        for is_legacy in ERAS {
            let server = Server::start(carrier).await;
            let mut client = Client::bridged(soon(server.options())).of_era(is_legacy).await;
            client.lives().await;
            server.proxy.stop_listening().await;
            client.call(1, json!([["text", "mark"]])).await;
            let answer = client.answer().await;
            assert_eq!(answer["error"]["data"], json!({"kind": "unavailable", "mayHaveRun": false}), "{answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("could not be reached within 2s"), "{message}");
            server.proxy.listen_again().await;
            wait_until("the bridge reports the lost connection", async || {
                client.notices.lock().iter().any(|notice| matches!(notice, BridgeNotice::Disconnected(_)))
            })
            .await;
            assert_eq!(server.counts.of("mark"), 0);
        }
    }
}

#[tokio::test]
async fn calls_that_wait_are_made_when_the_server_comes_back() {
    for carrier in BridgeTransport::BOTH {
        for is_legacy in ERAS {
            let server = Server::start(carrier).await;
            let mut client = server.client().of_era(is_legacy).await;
            client.lives().await;
            server.proxy.stop_listening().await;
            for id in 0..10 {
                client.call(id, json!([["text", format!("call {id}")]])).await;
            }
            wait_until("the bridge reports the lost connection", async || {
                client.notices.lock().iter().any(|notice| matches!(notice, BridgeNotice::Disconnected(_)))
            })
            .await;
            server.proxy.listen_again().await;
            let mut answered = Vec::new();
            for _ in 0..10 {
                let answer = client.answer().await;
                assert!(answer.get("result").is_some(), "{carrier:?} {answer}");
                answered.push(answer["id"].as_u64().unwrap());
            }
            answered.sort_unstable();
            assert_eq!(answered, (0..10).collect::<Vec<_>>());
            assert_eq!(server.counts.most(), 1);
        }
    }
}

#[tokio::test]
async fn never_reached_server_is_unreachable() {
    for scheme in ["http", "ws"] {
        let options = BridgeOptions::new(ServerAddress::parse(&format!("{scheme}://127.0.0.1:9/mcp")).unwrap());
        let mut client = Client::bridged(soon(options));
        let answer = client.ask(1, "tools/list", json!({})).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("refused") && message.ends_with("the call was not sent"), "{message}");
        assert!(client.close().await.is_empty());
    }
}

/// A server that negotiates one version after the other, and forgets its session after each request.
fn forgetful(versions: &'static [&'static str]) -> impl Fn(&super::scripted::ReceivedRequest) -> Vec<u8> {
    let shaken = std::sync::atomic::AtomicUsize::new(0);
    move |received_request| {
        let message = received_request.message();
        if message["method"] != "initialize" {
            return response("404 Not Found", &[], "");
        }
        let hands = shaken.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let version = versions[hands.min(versions.len() - 1)];
        let result =
            json!({"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        let session = format!("session-{hands}");
        response("200 OK", &[("Content-Type", "application/json"), ("Mcp-Session-Id", &session)], &body)
    }
}

#[tokio::test]
async fn version_change_breaks_the_session() {
    let server = ScriptedServer::start(forgetful(&["2025-11-25", "2025-06-18"])).await;
    let mut client = server.client().agree(Revision::V2025_11_25).await;
    for id in 0..2 {
        let answer = client.ask(id, "ping", json!({})).await;
        let message = answer["error"]["message"].as_str().unwrap();
        let (_, message) = message.split_once(": ").unwrap();
        insta::allow_duplicates! {
            insta::assert_snapshot!(message, @"the server restarted with MCP 2025-06-18, but this client negotiated 2025-11-25; restart the client or its connection; the call was not sent");
        }
    }
    // A new handshake of the client resolves it.
    let mut client = client.agree(Revision::V2025_06_18).await;
    assert_eq!(client.ask(3, "ping", json!({})).await["id"], 3);
}

#[tokio::test]
async fn bounds_session_renewals() {
    let server = ScriptedServer::start(forgetful(&["2025-11-25"])).await;
    let mut client = server.client();
    client.line(&super::handshake(Revision::V2025_11_25)).await;
    client.hear().await;
    client.is_legacy = true;
    let answer = client.ask(1, "ping", json!({})).await;
    assert_eq!(
        answer["error"]["message"].as_str().unwrap().split_once(": ").unwrap().1,
        "there is no MCP endpoint at that URL (404); the usual path of Tidegate is /mcp"
    );
    assert_eq!(server.methods(), ["initialize", "ping", "initialize", "ping"]);
}

#[tokio::test]
async fn repeats_the_clients_own_initialize() {
    let server = ScriptedServer::start(forgetful(&["2025-11-25"])).await;
    let mut client = server.client().agree(Revision::V2025_11_25).await;
    client.ask(1, "ping", json!({})).await;
    let received_requests = server.requested.lock().clone();
    let hands: Vec<_> = received_requests
        .iter()
        .filter(|received_request| received_request.message()["method"] == "initialize")
        .collect();
    assert!(hands.len() > 1);
    assert!(hands.iter().all(|hand| hand.body == hands[0].body && hand.header("mcp-session-id").is_none()));
    let pinged: Vec<_> =
        received_requests.iter().filter(|received_request| received_request.message()["method"] == "ping").collect();
    assert_ne!(pinged[0].header("mcp-session-id"), pinged[1].header("mcp-session-id"));
    assert!(pinged.iter().all(|ping| ping.header("mcp-protocol-version") == Some("2025-11-25")));
}

#[tokio::test]
async fn silent_connection_is_lost() {
    let server = ScriptedServer::start(|_| Vec::new()).await;
    let mut client = server.client();
    let answer = client.ask(1, "tools/list", json!({})).await;
    assert_eq!(answer["error"]["data"]["mayHaveRun"], true, "{answer}");
    assert_eq!(server.methods(), ["tools/list"]);
    let server = ScriptedServer::start(|_| json_response(r#"{"jsonrpc":"2.0","id":1,"#)).await;
    let answer = server.client().ask(1, "tools/list", json!({})).await;
    assert_eq!(answer["error"]["data"]["mayHaveRun"], true, "{answer}");
}
