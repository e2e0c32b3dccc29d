//! Long lines, large answers, slow readers.

use serde_json::json;
use tidegate_client::bridge::BridgeOptions;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use super::server::Server;
use super::{BridgeTransport, Client, text};
use tidegate_testkit::host::FLOOD_CHUNK;
use tidegate_testkit::wait::wait_until;

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_and_the_next_one_accepted() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        let mut client = Client::bridged(BridgeOptions { message_bytes_max: 1_000, ..server.options() });
        client.line(&"x".repeat(100_000)).await;
        assert_eq!(
            client.hear().await,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: the message is longer than 1000 bytes"}}"#
        );
        client.lives().await;
    }
}

#[tokio::test]
async fn large_answer_does_not_block_small_ones() {
    for carrier in BridgeTransport::BOTH {
        for is_legacy in [true, false] {
            let server = Server::start(carrier).await;
            let mut client = server.client().of_era(is_legacy).await;
            let chunks = 100;
            client.call("large", json!([["flood", chunks * FLOOD_CHUNK.len()], ["wait", null], ["text", "!"]])).await;
            wait_until("one call is open", async || server.open_calls() == 1).await;
            for id in 0..100 {
                assert_eq!(client.text(id, json!([["text", "small"]])).await, "small");
            }
            server.host.release.cancel();
            let answer = client.answer().await;
            assert_eq!(answer["id"], "large");
            assert!(text(&answer) == format!("{}!", FLOOD_CHUNK.repeat(chunks)), "{carrier:?}: not intact");
        }
    }
}

#[tokio::test]
async fn slow_client_receives_everything() {
    for carrier in BridgeTransport::BOTH {
        let server = Server::start(carrier).await;
        let mut client = server.client();
        let count = 100;
        for id in 0..count {
            client.call(id, json!([["flood", FLOOD_CHUNK.len()]])).await;
        }
        // More than the capacity of the pipe and the queue.
        wait_until("every call has run", async || server.counts.most() == count).await;
        let mut received = vec![false; count as usize];
        for _ in 0..count {
            let answer = client.answer().await;
            received[answer["id"].as_u64().unwrap() as usize] = true;
            assert!(text(&answer) == *FLOOD_CHUNK);
            tokio::task::yield_now().await;
        }
        assert!(received.into_iter().all(|is_received| is_received));
    }
}

#[tokio::test]
async fn blank_lines_and_a_last_line_without_an_end_are_accepted() {
    let server = Server::start(BridgeTransport::Http).await;
    let mut client = server.client();
    client.line("\n \r\n").await;
    let line = super::modern(&json!(1), "tools/list", json!({}));
    client.writer.write_all(line.as_bytes()).await.unwrap();
    client.writer.shutdown().await.unwrap();
    let mut received = String::new();
    client.reader.read_line(&mut received).await.unwrap();
    assert!(received.contains("\"id\":1,\"result\""), "{received}");
    assert_eq!(client.hear_if_open().await, None);
}
