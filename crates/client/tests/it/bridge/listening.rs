//! Notification streams pass through the bridge immediately, and end with either side.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::bridge::BridgeOptions;

use super::server::Server;
use super::{BridgeTransport, Client, cancelled};
use tidegate_testkit::host::entries;
use tidegate_testkit::message_checker::notification_summary;

async fn listen(client: &mut Client, id: Value) {
    let expectation = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://plain"]});
    client.send(id.clone(), "subscriptions/listen", json!({"notifications": expectation})).await;
    assert_eq!(next(client).await, format!("{id} subscriptions/acknowledged"));
}

async fn next(client: &mut Client) -> String {
    notification_summary(&serde_json::from_str(&client.hear().await).unwrap())
}

fn swap(server: &Server) {
    server.host.service.registry().swap(entries(&Default::default()).build());
}

#[tokio::test]
async fn forwards_notifications_until_cancelled() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        let mut client = server.client();
        listen(&mut client, json!("a")).await;
        swap(&server);
        assert_eq!(next(&mut client).await, "\"a\" tools/list_changed");
        assert_eq!(next(&mut client).await, "\"a\" resources/updated test://plain");
        client.line(&cancelled(&json!("a"))).await;
        client.lives().await;
        listen(&mut client, json!("b")).await;
        swap(&server);
        // Over HTTP the server may not have noticed yet that the first stream is closed; the bridge drops its messages.
        assert_eq!(next(&mut client).await, "\"b\" tools/list_changed", "{carrier:?}");
        assert_eq!(next(&mut client).await, "\"b\" resources/updated test://plain");
        assert!(client.close().await.is_empty());
    }
}

#[tokio::test]
async fn open_stream_does_not_block_exit() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        // Longer than any test runs.
        let options = BridgeOptions { drain_within: Duration::from_secs(3_600), ..server.options() };
        let mut client = Client::bridged(options);
        listen(&mut client, json!(1)).await;
        assert!(client.close().await.is_empty());
    }
}

#[tokio::test]
async fn a_server_that_goes_away_ends_the_stream_with_an_error() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        let mut client = server.client();
        listen(&mut client, json!(1)).await;
        server.proxy.stop_listening().await;
        let answer = client.answer().await;
        assert_eq!((&answer["id"], answer["error"].is_object()), (&json!(1), true), "{answer}");
    }
}
