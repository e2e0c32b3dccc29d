//! The ways in which a bridge ends, and the effect on its calls and its session.

use std::time::Duration;

use serde_json::json;
use tidegate_client::bridge::BridgeOptions;
use tokio::io::AsyncWriteExt;

use super::scripted::{ScriptedServer, json as json_response, response};
use super::server::Server;
use super::{BridgeTransport, Client};
use tidegate_testkit::wait::{wait_until, within_timeout};

#[tokio::test]
async fn open_calls_may_end_after_the_client_closed_its_side() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        let mut client = server.client();
        client.call(1, json!([["wait", null], ["text", "late"]])).await;
        wait_until("one call is open", async || server.open_calls() == 1).await;
        client.writer.shutdown().await.unwrap();
        server.host.release.cancel();
        assert_eq!(super::text(&client.answer().await), "late");
        assert_eq!(client.hear_if_open().await, None);
        client.served.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn calls_beyond_the_drain_timeout_are_abandoned() {
    for carrier in BridgeTransport::BOTH {
        for is_legacy in [true, false] {
            let server = Server::start(carrier).await;
            let options = BridgeOptions { drain_within: Duration::from_millis(50), ..server.options() };
            let mut client = Client::bridged(options).of_era(is_legacy).await;
            client.call(1, json!([["wait", null]])).await;
            wait_until("one call is open", async || server.open_calls() == 1).await;
            assert!(client.close().await.is_empty());
            // Dropping the request cancels the call; otherwise the end of the session does.
            wait_until("no call is open", async || server.open_calls() == 0).await;
        }
    }
}

#[tokio::test]
async fn shutdown_drains_like_end_of_input() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        let mut client = server.client().of_era(true).await;
        client.call(1, json!([["wait", null], ["text", "late"]])).await;
        wait_until("one call is open", async || server.open_calls() == 1).await;
        client.shutdown.cancel();
        server.host.release.cancel();
        assert_eq!(super::text(&client.answer().await), "late");
        assert_eq!(client.hear_if_open().await, None);
        client.served.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_it() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        let options = BridgeOptions { drain_within: Duration::from_millis(50), ..server.options() };
        let mut client = Client::bridged(options);
        client.call(1, json!([["wait", null]])).await;
        wait_until("one call is open", async || server.open_calls() == 1).await;
        let Client { reader, writer, served, .. } = client;
        drop((reader, writer));
        within_timeout("the end of the bridge", served).await.unwrap().unwrap();
        wait_until("no call is open", async || server.open_calls() == 0).await;
    }
}

#[tokio::test]
async fn the_session_is_ended_at_the_server() {
    let server = ScriptedServer::start(|received_request| match received_request.method.as_str() {
        "POST" if received_request.message()["method"] == "initialize" => {
            let body =
                json!({"jsonrpc": "2.0", "id": "hello", "result": {"protocolVersion": "2025-11-25"}}).to_string();
            response("200 OK", &[("Content-Type", "application/json"), ("MCP-Session-Id", "s-1")], &body)
        }
        "POST" => response("202 Accepted", &[], ""),
        "GET" => response("405 Method Not Allowed", &[], ""),
        _ => json_response(""),
    })
    .await;
    let client = server.client().of_era(true).await;
    wait_until("the bridge listens", async || server.methods().contains(&"GET".to_owned())).await;
    assert!(client.close().await.is_empty());
    assert_eq!(server.methods(), ["initialize", "notifications/initialized", "GET", "DELETE"]);
    let requested = server.requested.lock();
    assert!(requested[1..].iter().all(|received_request| received_request.header("mcp-session-id") == Some("s-1")));
}

#[tokio::test]
async fn ends_without_a_reachable_server() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        server.proxy.stop_listening().await;
        let client = server.client();
        assert!(client.close().await.is_empty());
    }
}
