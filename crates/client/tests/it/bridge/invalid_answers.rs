//! Invalid answers of a server: the call fails with a clear message, and the bridge continues to work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tidegate_client::bridge::{BridgeOptions, ServerAddress};
use tokio::io::AsyncBufReadExt;
use tokio::net::TcpListener;
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

use super::scripted::{ScriptedServer, events, json as json_response, response};
use super::{Client, legacy};
use tidegate_testkit::wait::wait_until;

/// The error message of an answer after the address of its server.
fn message_of(answer: &Value) -> String {
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    message.split_once(": ").unwrap().1.to_owned()
}

/// Sends `answers` one after the other, then a valid one.
async fn saying(answers: Vec<Vec<u8>>) -> ScriptedServer {
    let next = AtomicUsize::new(0);
    ScriptedServer::start(move |received_request| match answers.get(next.fetch_add(1, Ordering::SeqCst)) {
        Some(answer) => answer.clone(),
        None => {
            json_response(&json!({"jsonrpc": "2.0", "id": received_request.message()["id"], "result": {}}).to_string())
        }
    })
    .await
}

#[tokio::test]
async fn each_malformed_answer_has_its_error() {
    let answers = vec![
        json_response("<html>"),
        json_response(""),
        json_response("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"),
        json_response(r#"{"jsonrpc":"2.0","id":"other","result":{}}"#),
        json_response(r#"{"jsonrpc":"2.0","id":1}"#),
        json_response(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#),
        json_response(r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#),
        response("200 OK", &[("Content-Type", "text/plain")], "hello"),
        response("202 Accepted", &[], ""),
        events("data: hello\n\n"),
        events("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n"),
        events("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"),
        events(": nothing\n\n"),
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{}".to_vec(),
        b"no HTTP at all\r\n\r\n".to_vec(),
    ];
    let count = answers.len();
    let server = saying(answers).await;
    let mut client = server.client();
    let mut rendered = String::new();
    for _ in 0..count {
        rendered += &message_of(&client.ask(1, "tools/list", json!({})).await);
        rendered.push('\n');
    }
    insta::assert_snapshot!(rendered, @r#"
    the answer of the server is invalid: it is not valid JSON-RPC: expected value at line 1 column 1; the call may have run
    the answer of the server is invalid: it is not valid JSON-RPC: EOF while parsing a value at line 1 column 0; the call may have run
    the answer of the server is invalid: it is not valid JSON-RPC: EOF while parsing a value at line 1 column 33; the call may have run
    the answer of the server is invalid: it has the id "other", but the request has 1; the call may have run
    the answer of the server is invalid: it is not a JSON-RPC response; the call may have run
    the answer of the server is invalid: it has no id; the call may have run
    the answer of the server is invalid: it is a batch, but the request is a single one; the call may have run
    the answer of the server is invalid: it has the status 200 OK and the type "text/plain", but must be JSON or an event stream; the call may have run
    the answer of the server is invalid: it has the status 202 Accepted and the type "", but must be JSON or an event stream; the call may have run
    the answer of the server is invalid: it is not valid JSON-RPC: expected value at line 1 column 1; the call may have run
    the answer of the server is invalid: it has the id 2, but the request has 1; the call may have run
    the answer of the server is invalid: the event stream ended without an answer; the call may have run
    the answer of the server is invalid: the event stream ended without an answer; the call may have run
    the connection was lost while the call was under way (end of file before message length reached); it may have run
    the connection was lost while the call was under way (invalid HTTP version parsed); it may have run
    "#);
    assert_eq!(client.ask(1, "tools/list", json!({})).await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(server.methods().len(), count + 1);
}

#[tokio::test]
async fn a_call_without_tls_to_a_port_with_tls_has_not_run() {
    // An alert of TLS: the server received no message of the protocol that it expects.
    let server = saying(vec![vec![21, 3, 3, 0, 2, 2, 22]]).await;
    let mut client = server.client();
    let answer = client.ask(1, "tools/list", json!({})).await;
    assert_eq!(
        message_of(&answer),
        "the server does not answer in HTTP at this address; if it uses TLS, its URL begins with https:// or wss://; \
         the call did not run"
    );
    assert_eq!(answer["error"]["data"], json!({"kind": "unavailable", "mayHaveRun": false}));
}

#[tokio::test]
async fn an_answer_beyond_the_bound_ends_its_call_alone() {
    let huge = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{}\"}}", "x".repeat(1_000_000));
    let answers = vec![json_response(&huge), events(&format!("data: {huge}\n\n")), events(&format!("id: {huge}\n\n"))];
    let server = saying(answers).await;
    let mut client = Client::bridged(BridgeOptions { server_message_bytes_max: 500_000, ..server.options() });
    for _ in 0..3 {
        let answer = client.ask(1, "tools/list", json!({})).await;
        assert_eq!(
            message_of(&answer),
            "the answer is larger than 500000 bytes, the limit of the bridge; the call may have run"
        );
        assert_eq!(answer["error"]["data"], json!({"kind": "too_large", "mayHaveRun": true}));
    }
    assert!(client.ask(1, "tools/list", json!({})).await.get("result").is_some());
}

#[tokio::test]
async fn joins_multi_line_answers() {
    let pretty = "{\r\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}";
    let in_events = format!("data: {}\n\n", pretty.replace("\r\n", "\n").replace('\n', "\ndata: "));
    let server = saying(vec![json_response(pretty), events(&in_events)]).await;
    let mut client = server.client();
    for _ in 0..2 {
        client.line(&legacy(&json!(1), "tools/list", &json!({}))).await;
        let line = client.hear().await;
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        assert!(line.contains("{  ") && !line.contains('\r'), "{line}");
    }
}

#[tokio::test]
async fn forwards_server_requests() {
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let both = format!("event: message\ndata: {question}\n\ndata: {answer}\n\n");
    let server = saying(vec![events(&both), response("202 Accepted", &[], "")]).await;
    let mut client = server.client();
    client.line(&legacy(&json!(1), "tools/call", &json!({}))).await;
    assert_eq!([client.hear().await, client.hear().await], [question, answer]);
    let reply = r#"{"jsonrpc":"2.0","id":"q","result":{"action":"decline","x":1.0}}"#;
    client.line(reply).await;
    wait_until("two requests arrived", async || server.requested.lock().len() == 2).await;
    assert_eq!(server.requested.lock()[1].body, reply.as_bytes());
}

/// A WebSocket server that answers the request of each position with `answers`, and later ones with valid answers.
async fn talking(answers: Vec<Message>) -> BridgeOptions {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut answers = answers.into_iter();
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut socket) = accept_hdr_async(stream, choose_mcp).await else { continue };
            while let Some(Ok(Message::Text(text))) = socket.next().await {
                let requested: Value = serde_json::from_str(&text).unwrap();
                let honest = json!({"jsonrpc": "2.0", "id": requested["id"], "result": {}}).to_string();
                let _ = socket.send(answers.next().unwrap_or(Message::text(honest))).await;
            }
        }
    });
    BridgeOptions::new(ServerAddress::parse(&format!("ws://{address}/mcp/ws")).unwrap())
}

#[allow(clippy::result_large_err, reason = "the library wants it so")]
fn choose_mcp(_: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    response.headers_mut().insert("Sec-WebSocket-Protocol", "mcp".parse().unwrap());
    Ok(response)
}

#[tokio::test]
async fn malformed_answer_reconnects_the_websocket() {
    let answers = vec![
        Message::text("hello"),
        Message::text("{}"),
        Message::binary(&b"{}"[..]),
        Message::text(format!("{{\"id\":1,\"result\":\"{}\"}}", "x".repeat(100_000))),
        Message::Close(None),
    ];
    let count = answers.len();
    let mut client = Client::bridged(BridgeOptions { server_message_bytes_max: 65_536, ..talking(answers).await });
    let mut rendered = String::new();
    for _ in 0..count {
        rendered += &message_of(&client.ask(1, "tools/list", json!({})).await);
        rendered.push('\n');
    }
    insta::assert_snapshot!(rendered, @r#"
    the connection was lost while the call was under way (the server sent an invalid message: it is not valid JSON-RPC: expected value at line 1 column 1); it may have run
    the connection was lost while the call was under way (the server sent an invalid message: it has neither method nor result); it may have run
    the connection was lost while the call was under way (the server sent a binary message, but MCP messages are text); it may have run
    the connection was lost while the call was under way (Space limit exceeded: Message too long: 100020 > 65536); it may have run
    the connection was lost while the call was under way (the server closed the connection); it may have run
    "#);
    assert!(client.ask(1, "tools/list", json!({})).await.get("result").is_some());
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_is_left_out() {
    let options = talking(vec![Message::text(r#"{"jsonrpc":"2.0","id":"other","result":{}}"#)]).await;
    let mut client = Client::bridged(options);
    client.send(json!(1), "tools/list", json!({})).await;
    wait_until("the bridge reports a notice", async || !client.notices.lock().is_empty()).await;
    assert!(client.ask(2, "tools/list", json!({})).await.get("result").is_some());
}

#[tokio::test]
async fn silent_websocket_is_reconnected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let notify = Arc::new(tokio::sync::Notify::new());
    let message = notify.clone();
    let holding = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_hdr_async(stream, choose_mcp).await.unwrap();
        socket.next().await.unwrap().unwrap();
        message.notify_one();
        // Held open without reading: pings are not answered.
        std::future::pending::<()>().await;
        drop(socket);
    });
    let mut client = Client::bridged(BridgeOptions::new(ServerAddress::parse(&format!("ws://{address}/")).unwrap()));
    client.send(json!(1), "tools/list", json!({})).await;
    notify.notified().await;
    tokio::time::pause();
    let mut line = String::new();
    client.reader.read_line(&mut line).await.unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    let lost = "the connection was lost while the call was under way (the server was silent for 60s); it may have run";
    assert_eq!(message_of(&answer), lost);
    holding.abort();
}
