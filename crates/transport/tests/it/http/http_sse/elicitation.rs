//! Requests of the server on the event stream of HTTP+SSE.

use serde_json::json;
use tidegate_mcp::Revision;

use super::{Server, Stream};
use tidegate_testkit::message_checker::{all_capabilities, elicitation_answer, text};

#[tokio::test]
async fn elicitation_on_the_stream_is_answered_by_post() {
    let server = Server::start().await;
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
        let mut stream = Stream::open(&server).await;
        stream.ledger.capabilities = all_capabilities();
        stream.shake_hands(revision).await;
        stream.call(json!(1), json!([["ask", {"it": {"sampling": "Greet."}}]])).await;
        let question = stream.hear().await.unwrap();
        assert_eq!(question["method"], "sampling/createMessage");
        stream.lives().await;
        // Answers belong to their own session.
        let written = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}});
        let mut other = Stream::open(&server).await;
        other.shake_hands(revision).await;
        other.say(&elicitation_answer(&question["id"], "Eve")).await;
        other.lives().await;
        stream.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": written}).to_string()).await;
        assert_eq!(text(&stream.hear().await.unwrap()), r#"{"it":"Hello"}"#);
        stream.lives().await;
    }
}
