//! Requests of the server pass through the bridge, and the answers of its client.

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use super::server::Server;
use super::{Carrier, INITIALIZED, legacy, text};
use crate::ledger::{able, asks_who, named, script};
use crate::schema::check_request;

#[tokio::test]
async fn a_legacy_client_is_asked_through_the_bridge() {
    for carrier in Carrier::BOTH {
        let server = Server::start(carrier).await;
        let mut client = server.client();
        let about = json!({"name": "test", "version": "1"});
        let revision = Revision::V2025_11_25;
        let params = json!({"protocolVersion": revision.name(), "capabilities": able(), "clientInfo": about});
        client.line(&legacy(&json!("hello"), "initialize", &params)).await;
        assert!(client.answer().await.get("result").is_some());
        client.line(INITIALIZED).await;
        for (id, name) in [(1, "Ann"), (2, "Bob")] {
            client.line(&legacy(&json!(id), "tools/call", &script(&asks_who()))).await;
            let question: Value = serde_json::from_str(&client.hear().await).unwrap();
            check_request(revision, &question);
            // Another call is answered meanwhile.
            client.line(&legacy(&json!("meanwhile"), "tools/call", &script(&json!([["text", "yes"]])))).await;
            assert_eq!(text(&client.answer().await), "yes");
            client.line(&named(&question["id"], name)).await;
            let answer = client.answer().await;
            assert_eq!((&answer["id"], text(&answer)), (&json!(id), &*json!({"who": {"name": name}}).to_string()));
        }
        assert_eq!(client.close().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_modern_client_comes_again_through_the_bridge() {
    for carrier in Carrier::BOTH {
        let server = Server::start(carrier).await;
        let mut client = server.client();
        let call = |id: u64, mut params: Value| {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": able(),
            });
            legacy(&json!(id), "tools/call", &params)
        };
        client.line(&call(1, script(&asks_who()))).await;
        let asked = client.answer().await;
        let mut again = script(&asks_who());
        again["requestState"] = asked["result"]["requestState"].clone();
        again["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "Ann"}}});
        client.line(&call(2, again)).await;
        assert_eq!(text(&client.answer().await), r#"{"who":{"name":"Ann"}}"#);
        assert_eq!(client.close().await, Vec::<String>::new());
    }
}
