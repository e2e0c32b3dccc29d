//! Listening on shared connections: the same over HTTP+SSE and WebSocket, except for how a connection begins and ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tidegate_core::Access;
use tidegate_mcp::Revision;
use tidegate_transport::Metrics;
use tidegate_transport::http::HttpOptions;

use super::Server;
use super::identity::revocable_key;
use tidegate_testkit::host::WatchedResources;
use tidegate_testkit::message_checker::{MessageChecker, error_summary, notification_summary};

/// A client whose requests share a connection.
pub(super) trait SharedConnectionClient: Sized {
    /// With further headers.
    async fn open(server: &Server, headers: &[(&str, &str)]) -> Self;
    /// With a handshake of `revision`.
    async fn agreed(server: &Server, revision: Revision) -> Self;
    async fn say(&mut self, text: &str);
    async fn send(&mut self, id: Value, method: &str, params: Value);
    async fn call(&mut self, id: Value, steps: Value);
    async fn ask(&mut self, id: Value, method: &str, params: Value) -> Value;
    async fn receive(&mut self) -> Value;
    async fn assert_alive(&mut self);
    /// Checks that the server closes the connection, with no message before that.
    async fn assert_disconnected(&mut self);
    fn ledger(&mut self) -> &mut MessageChecker;
}

async fn server_with_resources(options: HttpOptions) -> (Server, Arc<WatchedResources>) {
    let (host, resources) = WatchedResources::with_host();
    (Server::of(host, Arc::new(Metrics::new()), options).await, resources)
}

fn subscription_params(uris: &[&str]) -> Value {
    json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": uris}})
}

/// Opens a notification stream.
async fn listen(client: &mut impl SharedConnectionClient, id: Value, uris: &[&str]) {
    client.send(id.clone(), "subscriptions/listen", subscription_params(uris)).await;
    assert_eq!(next(client).await, format!("{id} subscriptions/acknowledged"));
}

/// The next message: the stream that it belongs to, and its content.
async fn next(client: &mut impl SharedConnectionClient) -> String {
    notification_summary(&client.receive().await)
}

async fn cancel(client: &mut impl SharedConnectionClient, id: Value) {
    let params = json!({"requestId": id});
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    client.say(&message.to_string()).await;
    client.ledger().open.remove(&id.to_string());
}

/// Each stream sends the requested notifications until it is cancelled or the server shuts down.
pub(super) async fn tell_each_stream<S: SharedConnectionClient>() {
    let (server, watched) = server_with_resources(HttpOptions::default()).await;
    let mut client = S::open(&server, &[]).await;
    listen(&mut client, json!("a"), &["watched://rose"]).await;
    listen(&mut client, json!(7), &[]).await;
    client.call(json!("slow"), json!([["cancelled"]])).await;
    watched.change("rose");
    watched.change("lily");
    assert_eq!(next(&mut client).await, "\"a\" resources/updated watched://rose");
    client.assert_alive().await;
    cancel(&mut client, json!("a")).await;
    cancel(&mut client, json!("slow")).await;
    // The next answer arrives after the cancellation was processed.
    client.assert_alive().await;
    watched.change("rose");
    server.host.service.registry().swap(watched.snapshot(Access::default()));
    assert_eq!(next(&mut client).await, "7 tools/list_changed");
    listen(&mut client, json!("a"), &[]).await;
    server.shutdown.cancel();
    let mut rest = [next(&mut client).await, next(&mut client).await];
    rest.sort_unstable();
    assert_eq!(rest, ["\"a\" result", "7 result"]);
}

/// The number of streams is limited, and they do not count as requests.
pub(super) async fn bound_streams<S: SharedConnectionClient>() {
    let (server, _) = server_with_resources(HttpOptions::default()).await;
    let before = server.resource_usage().await;
    let mut client = S::open(&server, &[]).await;
    for id in 0..16 {
        listen(&mut client, json!(id), &["test://plain"]).await;
    }
    client.send(json!("more"), "subscriptions/listen", subscription_params(&[])).await;
    let refused = client.receive().await;
    assert_eq!(
        error_summary(&refused),
        "-32600 for id \"more\": too many open notification streams: at most 16 per connection"
    );
    client.assert_alive().await;
    drop(client);
    server.wait_until_back_at(&before).await;
}

/// A client with a revoked key receives nothing more.
pub(super) async fn revoke<S: SharedConnectionClient>() {
    let (one_key, options) = revocable_key();
    let (server, resources) = server_with_resources(options).await;
    let mut client = S::open(&server, &[("Authorization", "Bearer key")]).await;
    listen(&mut client, json!(1), &["watched://rose"]).await;
    one_key.is_revoked.store(true, Ordering::SeqCst);
    resources.change("rose");
    server.host.service.registry().swap(resources.snapshot(Access::default()));
    client.assert_disconnected().await;
}

/// A legacy session is notified only of the changed resource.
pub(super) async fn tell_a_session<S: SharedConnectionClient>() {
    let (server, watched) = server_with_resources(HttpOptions::default()).await;
    let mut client = S::agreed(&server, Revision::V2024_11_05).await;
    for uri in ["watched://rose", "watched://lily"] {
        client.ask(json!(uri), "resources/subscribe", json!({"uri": uri})).await;
    }
    watched.change("lily");
    assert_eq!(client.receive().await["params"], json!({"uri": "watched://lily"}));
    client.ask(json!(1), "resources/unsubscribe", json!({"uri": "watched://lily"})).await;
    watched.change("lily");
    watched.change("rose");
    assert_eq!(client.receive().await["params"], json!({"uri": "watched://rose"}));
    client.assert_alive().await;
}
