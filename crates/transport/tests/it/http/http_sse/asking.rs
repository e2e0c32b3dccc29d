//! Requests of the server on the event stream of HTTP+SSE.

use serde_json::json;
use tidegate_mcp::Revision;

use super::{Server, Stream};
use crate::ledger::{able, named, text};

#[tokio::test]
async fn a_client_is_asked_on_its_stream_and_posts_the_answer() {
    let server = Server::start().await;
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
        let mut stream = Stream::open(&server).await;
        stream.ledger.capabilities = able();
        stream.shake_hands(revision).await;
        stream.call(json!(1), json!([["ask", {"it": {"sampling": "Greet."}}]])).await;
        let question = stream.hear().await.unwrap();
        assert_eq!(question["method"], "sampling/createMessage");
        stream.lives().await;
        // Another session's answers are its own.
        let written = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}});
        let mut other = Stream::open(&server).await;
        other.shake_hands(revision).await;
        other.say(&named(&question["id"], "Eve")).await;
        other.lives().await;
        stream.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": written}).to_string()).await;
        assert_eq!(text(&stream.hear().await.unwrap()), r#"{"it":"Hello"}"#);
        stream.lives().await;
    }
}
