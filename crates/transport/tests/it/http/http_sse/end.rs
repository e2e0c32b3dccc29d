//! Clients that disconnect or do not read, many of them, and shutdown.

use std::time::Duration;

use serde_json::json;
use tidegate_mcp::Revision;
use tidegate_transport::http::HttpOptions;

use super::super::wire::{Connection, request};
use super::{Server, Stream};
use tidegate_testkit::message_checker::text;

#[tokio::test]
async fn disconnect_ends_session_and_calls() {
    let server = Server::start().await;
    let before = server.resource_usage().await;
    let mut stream = Stream::agreed(&server, Revision::V2024_11_05).await;
    stream.call(json!(1), json!([["flood", 300_000], ["cancelled"]])).await;
    server.until_open_calls(1).await;
    let (address, endpoint) = (stream.address, stream.endpoint.clone());
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let post = request("POST", &endpoint, &[("Content-Type", "application/json")], ping);
    drop(stream);
    server.wait_until_back_at(&before).await;
    let answer = Connection::open(address).await.ask(&post).await;
    assert_eq!(
        answer.summary(),
        "404 -32600 the session does not exist or has ended; open a new one with GET /mcp/sse"
    );
}

#[tokio::test]
async fn stalled_reader_is_disconnected() {
    let server = Server::with(HttpOptions { write_within: Duration::from_millis(200), ..HttpOptions::default() }).await;
    let before = server.resource_usage().await;
    let mut stream = Stream::open(&server).await;
    stream.call(json!(1), json!([["flood", 20_000_000]])).await;
    // Refusals fill the queue, until a post waits for it indefinitely.
    let mut statuses = Vec::new();
    for id in 2..200 {
        let wrong = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"_meta": {}}});
        statuses.push(stream.post(wrong.to_string().as_bytes()).await.head.status);
        if statuses.last() == Some(&404) {
            break;
        }
    }
    assert_eq!(statuses.last(), Some(&404), "{statuses:?}");
    drop(stream);
    server.wait_until_back_at(&before).await;
}

#[tokio::test]
async fn a_shutdown_lets_running_calls_end() {
    let server = Server::start().await;
    let mut busy = Stream::agreed(&server, Revision::V2024_11_05).await;
    let mut idle = Stream::open(&server).await;
    busy.call(json!(1), json!([["wait"], ["flood", 300_000], ["text", "done"]])).await;
    server.until_open_calls(1).await;
    server.shutdown.cancel();
    assert_eq!(idle.hear().await, None);
    server.host.release.cancel();
    assert!(text(&busy.hear().await.unwrap()).ends_with("\ndone"));
    assert_eq!(busy.hear().await, None);
    server.running.wait().await;
}

/// On its own runtime, whose threads have a name.
#[cfg(target_os = "linux")]
#[test]
fn streams_use_no_threads() {
    fn threads() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "many-streams").count()
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).thread_name("many-streams").enable_all().build().unwrap();
    runtime.block_on(async {
        let server = Server::start().await;
        let before = server.resource_usage().await;
        let threads_before = threads();
        let mut streams = Vec::new();
        for _ in 0..200 {
            streams.push(Stream::agreed(&server, Revision::V2024_11_05).await);
        }
        assert_eq!(server.figure("tidegate_sessions{transport=\"sse\"}").await, "200");
        for stream in &mut streams {
            stream.lives().await;
        }
        assert_eq!(threads(), threads_before);
        drop(streams);
        server.wait_until_back_at(&before).await;
    });
}
