//! Invalid input of a client: invalid messages are rejected individually, invalid frames end the connection with a
//! code.

use futures::SinkExt;
use tidegate_transport::http::HttpOptions;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::{Server, Socket};
use tidegate_testkit::message_checker::error_summary;

fn small() -> HttpOptions {
    HttpOptions { body_bytes_max: 1_000, ..HttpOptions::default() }
}

fn fragment(bytes: &[u8], opcode: Data, is_last: bool) -> Message {
    Message::Frame(Frame::message(bytes.to_vec(), OpCode::Data(opcode), is_last))
}

#[tokio::test]
async fn malformed_message_keeps_the_connection() {
    let server = Server::start().await;
    let before = server.resource_usage().await;
    let mut socket = Socket::open(&server).await;
    let mut answers = String::new();
    for text in [
        "",
        "hello",
        "{",
        "{}",
        "[]",
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
    ] {
        socket.say(text).await;
        answers.push_str(&format!("{}\n", error_summary(&socket.hear().await.unwrap())));
        socket.lives().await;
    }
    insta::assert_snapshot!(answers, @r#"
    -32700 for id null: Parse error: EOF while parsing a value at line 1 column 0
    -32700 for id null: Parse error: expected value at line 1 column 1
    -32700 for id null: Parse error: EOF while parsing an object at line 1 column 1
    -32600 for id null: Invalid request: the member "jsonrpc" must be "2.0"
    -32600 for id null: Invalid request: an empty batch
    -32600 for id null: Invalid request: the id must be a string or a number
    -32600 for id null: batches exist only in revision 2025-03-26
    "#);
    socket.close().await;
    server.wait_until_back_at(&before).await;
}

#[tokio::test]
async fn binary_and_oversized_messages_close_with_their_code() {
    let server = Server::with(small()).await;
    let before = server.resource_usage().await;
    let text = |length: usize| Message::text("x".repeat(length));
    let mut rendered = String::new();
    let cases: [(&str, Vec<Message>); 7] = [
        ("binary", vec![Message::binary("{}")]),
        ("too large", vec![text(1_001)]),
        ("far too large", vec![text(3_000_000)]),
        (
            "too large in all",
            vec![fragment(&[b'x'; 600], Data::Text, false), fragment(&[b'x'; 600], Data::Continue, true)],
        ),
        ("not UTF-8", vec![fragment(b"\xff\xfe", Data::Text, true)]),
        ("a continuation of nothing", vec![fragment(b"x", Data::Continue, true)]),
        ("a second beginning", vec![fragment(b"x", Data::Text, false), fragment(b"x", Data::Text, true)]),
    ];
    for (name, messages) in cases {
        let mut socket = Socket::open(&server).await;
        // A message of exactly the limit is accepted.
        socket.put(text(1_000)).await;
        socket.hear().await.unwrap();
        for message in messages {
            socket.put(message).await;
        }
        let (code, reason) = socket.closed().await;
        rendered.push_str(&format!("{name}: {code} {reason}\n"));
        socket.close().await;
    }
    insta::assert_snapshot!(rendered, @r#"
    binary: 1003 binary messages are not supported; send text
    too large: 1009 the message is longer than 1000 bytes
    far too large: 1009 the message is longer than 1000 bytes
    too large in all: 1009 the message is longer than 1000 bytes
    not UTF-8: 1007 the message is not UTF-8
    a continuation of nothing: 1002 Continue frame but nothing to continue
    a second beginning: 1002 While waiting for more fragments received: TEXT
    "#);
    server.wait_until_back_at(&before).await;
}

#[tokio::test]
async fn frames_that_are_not_masked_end_the_connection() {
    let server = Server::start().await;
    let before = server.resource_usage().await;
    let mut socket = Socket::open(&server).await;
    socket.stream.get_mut().write_all(b"\x81\x02{}").await.unwrap();
    assert_eq!(socket.closed().await.0, 1002);
    drop(socket);
    server.wait_until_back_at(&before).await;
}

#[tokio::test]
async fn a_message_may_come_in_fragments_with_pings_between_them() {
    let server = Server::start().await;
    let mut socket = Socket::open(&server).await;
    let request = socket.ledger.request(&1.into(), "server/discover", serde_json::json!({}));
    let bytes = request.as_bytes();
    socket.put(fragment(&bytes[..10], Data::Text, false)).await;
    for byte in &bytes[10..] {
        socket.stream.feed(fragment(&[*byte], Data::Continue, false)).await.unwrap();
    }
    socket.put(Message::Ping("between".into())).await;
    socket.put(fragment(b"", Data::Continue, true)).await;
    assert_eq!(socket.hear().await.unwrap()["id"], 1);
    assert_eq!(socket.pings, 1);
}
