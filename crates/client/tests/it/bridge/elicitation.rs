//! Requests of the server pass through the bridge, and so do the answers of the client.

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use super::server::Server;
use super::{BridgeTransport, INITIALIZED, legacy, text};
use tidegate_testkit::message_checker::{all_capabilities, elicitation_answer, elicitation_steps, script};
use tidegate_testkit::schema::check_request;

#[tokio::test]
async fn legacy_elicitation_through_the_bridge() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        let mut client = server.client();
        let about = json!({"name": "test", "version": "1"});
        let revision = Revision::V2025_11_25;
        let params =
            json!({"protocolVersion": revision.name(), "capabilities": all_capabilities(), "clientInfo": about});
        client.line(&legacy(&json!("hello"), "initialize", &params)).await;
        assert!(client.answer().await.get("result").is_some());
        client.line(INITIALIZED).await;
        for (id, name) in [(1, "Ann"), (2, "Bob")] {
            client.line(&legacy(&json!(id), "tools/call", &script(&elicitation_steps()))).await;
            let question: Value = serde_json::from_str(&client.hear().await).unwrap();
            check_request(revision, &question);
            // Another call is answered in the meantime.
            client.line(&legacy(&json!("meanwhile"), "tools/call", &script(&json!([["text", "yes"]])))).await;
            assert_eq!(text(&client.answer().await), "yes");
            client.line(&elicitation_answer(&question["id"], name)).await;
            let answer = client.answer().await;
            assert_eq!((&answer["id"], text(&answer)), (&json!(id), &*json!({"who": {"name": name}}).to_string()));
        }
        assert_eq!(client.close().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn modern_elicitation_through_the_bridge() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        let mut client = server.client();
        let call = |id: u64, mut params: Value| {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": all_capabilities(),
            });
            legacy(&json!(id), "tools/call", &params)
        };
        client.line(&call(1, script(&elicitation_steps()))).await;
        let requested = client.answer().await;
        let mut retried = script(&elicitation_steps());
        retried["requestState"] = requested["result"]["requestState"].clone();
        retried["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "Ann"}}});
        client.line(&call(2, retried)).await;
        assert_eq!(text(&client.answer().await), r#"{"who":{"name":"Ann"}}"#);
        assert_eq!(client.close().await, Vec::<String>::new());
    }
}
