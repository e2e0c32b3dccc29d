//! Calls that the client cancels are cancelled at the server, and never answered.

use serde_json::json;

use super::server::Server;
use super::{BridgeTransport, cancelled};
use tidegate_testkit::wait::wait_until;

#[tokio::test]
async fn cancelled_call_ends_at_the_server() {
    for carrier in BridgeTransport::BOTH {
        for is_legacy in [true, false] {
            let server = Server::start(carrier).await;
            let mut client = server.client().of_era(is_legacy).await;
            let with_progress =
                json!({"name": "script", "arguments": {"steps": [["wait", null]]}, "_meta": {"progressToken": 1}});
            client.send(json!("b"), "tools/call", with_progress).await;
            for id in ["a", "c"] {
                client.call(id, json!([["wait", null]])).await;
            }
            wait_until("three calls are open", async || server.open_calls() == 3).await;
            for id in ["a", "b"] {
                client.line(&cancelled(&json!(id))).await;
            }
            wait_until("one call is open", async || server.open_calls() == 1).await;
            client.lives().await;
            server.host.release.cancel();
            // Only the third call is answered, because it was not cancelled.
            assert_eq!(client.answer().await["id"], "c", "{carrier:?} {is_legacy}");
            assert!(client.close().await.is_empty());
        }
    }
}

#[tokio::test]
async fn cancels_an_unsent_call() {
    for carrier in BridgeTransport::BOTH {
        for is_legacy in [true, false] {
            let server = Server::start(carrier).await;
            let mut client = server.client().of_era(is_legacy).await;
            client.lives().await;
            server.proxy.stop_listening().await;
            client.call(1, json!([["text", "mark"]])).await;
            wait_until("the bridge reports a notice", async || !client.notices.lock().is_empty()).await;
            client.line(&cancelled(&json!(1))).await;
            // Later messages are answered later.
            client.line("no message").await;
            assert!(client.hear().await.contains("Parse error"));
            server.proxy.listen_again().await;
            client.lives().await;
            assert!(client.close().await.is_empty());
            assert_eq!(server.counts.of("mark"), 0);
        }
    }
}

#[tokio::test]
async fn rejects_duplicate_open_ids() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        let mut client = server.client();
        client.call(1, json!([["wait", null], ["text", "first"]])).await;
        client.call(1, json!([["text", "second"]])).await;
        let refused = client.answer().await;
        assert_eq!(refused["error"]["message"], "a request with the id 1 is open already");
        server.host.release.cancel();
        assert_eq!(super::text(&client.answer().await), "first");
    }
}
