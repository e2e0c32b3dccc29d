//! Requests of the server on a WebSocket.

use serde_json::json;
use tidegate_mcp::Revision;

use super::{Server, Socket};
use tidegate_testkit::message_checker::{all_capabilities, elicitation_answer, elicitation_steps, text};

#[tokio::test]
async fn legacy_elicitation_during_a_call() {
    let server = Server::start().await;
    let mut socket = Socket::open(&server).await;
    socket.ledger.capabilities = all_capabilities();
    socket.shake_hands(Revision::V2025_11_25).await;
    socket.call(json!(1), elicitation_steps()).await;
    let question = socket.hear().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    socket.lives().await;
    socket.say(&elicitation_answer(&question["id"], "Ann")).await;
    assert_eq!(text(&socket.hear().await.unwrap()), r#"{"who":{"name":"Ann"}}"#);
    // Answers belong to their own connection.
    let mut other = Socket::open(&server).await;
    other.ledger.capabilities = all_capabilities();
    other.shake_hands(Revision::V2025_06_18).await;
    socket.call(json!(2), elicitation_steps()).await;
    let question = socket.hear().await.unwrap();
    other.say(&elicitation_answer(&question["id"], "Eve")).await;
    other.lives().await;
    socket.say(&elicitation_answer(&question["id"], "Bob")).await;
    assert_eq!(text(&socket.hear().await.unwrap()), r#"{"who":{"name":"Bob"}}"#);
}

/// The maximum number of open requests of one connection.
const REQUESTS_MAX: usize = 64;

#[tokio::test]
async fn elicitations_never_block_their_answers() {
    let server = Server::start().await;
    let mut socket = Socket::open(&server).await;
    socket.ledger.capabilities = all_capabilities();
    socket.shake_hands(Revision::V2025_11_25).await;
    for id in 0..REQUESTS_MAX + 1 {
        socket.call(json!(id), elicitation_steps()).await;
    }
    // Requests over the limit end immediately, so that answers can still be received.
    let (mut questions, mut refused) = (Vec::new(), 0);
    while questions.len() + refused < REQUESTS_MAX + 1 {
        let message = socket.hear().await.unwrap();
        match message.get("method") {
            Some(_) => questions.push(message["id"].clone()),
            None => {
                assert_eq!(message["result"]["isError"], true, "{message}");
                refused += 1;
            }
        }
    }
    assert!(questions.len() > 1 && questions.len() < REQUESTS_MAX);
    for id in &questions {
        socket.say(&elicitation_answer(id, "Ann")).await;
    }
    for _ in &questions {
        assert_eq!(text(&socket.hear().await.unwrap()), r#"{"who":{"name":"Ann"}}"#);
    }
    socket.lives().await;
}
