//! Valid and invalid messages; the connection stays usable.

use serde_json::{Value, json};
use tidegate_transport::stdio::StdioOptions;

use super::Pipe;
use tidegate_testkit::host::Host;
use tidegate_testkit::message_checker::error_summary;

fn short_lines() -> Pipe {
    Pipe::with(&Host::new(), StdioOptions { message_bytes_max: 1_000, ..StdioOptions::default() })
}

#[tokio::test]
async fn malformed_lines_are_rejected_one_by_one() {
    let mut pipe = Pipe::open(&Host::new());
    let mut answers = String::new();
    for line in [
        &b"hello"[..],
        b"{",
        b"{}",
        b"\xff\xfe\x00",
        b"[]",
        br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
    ] {
        pipe.line(line).await;
        answers.push_str(&format!("{}\n", error_summary(&pipe.hear().await.unwrap())));
        pipe.lives().await;
    }
    insta::assert_snapshot!(answers, @r#"
    -32700 for id null: Parse error: expected value at line 1 column 1
    -32700 for id null: Parse error: EOF while parsing an object at line 1 column 1
    -32600 for id null: Invalid request: the member "jsonrpc" must be "2.0"
    -32700 for id null: Parse error: invalid utf-8 sequence of 1 bytes from index 0
    -32600 for id null: Invalid request: an empty batch
    -32600 for id null: Invalid request: the id must be a string or a number
    -32600 for id null: batches exist only in revision 2025-03-26
    "#);
    assert_eq!(pipe.close().await, Vec::<Value>::new());
}

#[tokio::test]
async fn ignores_blank_lines_and_carriage_returns() {
    let mut pipe = Pipe::open(&Host::new());
    for line in [&b""[..], b"\r", b"  \t "] {
        pipe.line(line).await;
    }
    pipe.lives().await;
    pipe.line(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\r").await;
    pipe.line(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    pipe.line(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#).await;
    pipe.lives().await;
    assert_eq!(pipe.close().await, Vec::<Value>::new());
}

#[tokio::test]
async fn oversized_line_is_rejected_alone() {
    let mut pipe = short_lines();
    for length in [1_001, 1_002, 5_000, 1_000_000] {
        pipe.line(&vec![b'x'; length]).await;
        let answer = error_summary(&pipe.hear().await.unwrap());
        assert_eq!(answer, "-32600 for id null: Invalid request: the message is longer than 1000 bytes", "{length}");
        pipe.lives().await;
    }
    // A line of exactly the limit is accepted.
    pipe.line(&[b'x'; 1_000]).await;
    assert!(error_summary(&pipe.hear().await.unwrap()).starts_with("-32700"));
}

#[tokio::test]
async fn last_line_needs_no_newline() {
    for (length, code) in [(1_001, "-32600"), (10, "-32700")] {
        use tokio::io::AsyncWriteExt;
        let mut pipe = short_lines();
        pipe.writer.write_all(&vec![b'x'; length]).await.unwrap();
        let rest = pipe.close().await;
        assert_eq!(rest.len(), 1);
        assert!(error_summary(&rest[0]).starts_with(code), "{rest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_may_come_in_any_pieces() {
    use tokio::io::AsyncWriteExt;
    let host = Host::new();
    let mut pipe = Pipe::agreed(&host, tidegate_mcp::Revision::V2025_11_25).await;
    for byte in br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"# {
        pipe.writer.write_all(&[*byte]).await.unwrap();
        super::settle().await;
        if *byte == b'm' {
            // Interrupting the read of a line loses no data.
            host.service.registry().swap(tidegate_runtime::SnapshotBuilder::new().build());
            super::settle().await;
        }
    }
    pipe.ledger.open.insert("\"a\"".to_owned(), ("ping".to_owned(), tidegate_mcp::Revision::V2025_11_25));
    pipe.line(b"").await;
    for _ in 0..3 {
        assert!(pipe.hear().await.unwrap()["method"].as_str().unwrap().ends_with("list_changed"));
    }
    assert_eq!(pipe.hear().await.unwrap(), json!({"jsonrpc": "2.0", "id": "a", "result": {}}));
}
