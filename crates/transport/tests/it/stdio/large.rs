//! Answers that are stored on disk until they are complete.

use serde_json::json;
use tidegate_transport::stdio::StdioOptions;

use super::Pipe;
use tidegate_testkit::host::{FLOOD_CHUNK, Host};
use tidegate_testkit::message_checker::text;

#[tokio::test]
async fn a_large_answer_is_intact() {
    let mut pipe = Pipe::open(&Host::new());
    for chunks in [1, 3, 4, 5, 16, 40] {
        pipe.call(json!(chunks), json!([["text", "<"], ["flood", chunks * FLOOD_CHUNK.len()], ["text", ">"]])).await;
        let answer = pipe.hear().await.unwrap();
        assert!(text(&answer) == format!("<{}>", FLOOD_CHUNK.repeat(chunks)), "{chunks} chunks are not intact");
    }
}

#[tokio::test]
async fn large_answers_do_not_mix() {
    let mut pipe = Pipe::open(&Host::new());
    for number in 0..8 {
        let mark = number.to_string();
        pipe.call(json!(number), json!([["text", mark], ["flood", 10 * FLOOD_CHUNK.len()], ["text", mark]])).await;
    }
    for _ in 0..8 {
        let answer = pipe.hear().await.unwrap();
        let mark = answer["id"].to_string();
        assert!(text(&answer) == format!("{mark}{}{mark}", FLOOD_CHUNK.repeat(10)), "answer {mark} is not intact");
    }
}

#[tokio::test]
async fn an_answer_beyond_the_bound_is_refused_and_its_call_ends() {
    let host = Host::new();
    let mut pipe = Pipe::with(&host, StdioOptions { answer_bytes_max: 1_000_000, ..StdioOptions::default() });
    pipe.call(json!(1), json!([["flood", 100_000_000]])).await;
    let answer = pipe.hear().await.unwrap();
    insta::assert_snapshot!(answer, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the answer is larger than 1000000 bytes"}}"#);
    while host.service.registry().jobs().open_count() > 0 {
        tokio::task::yield_now().await;
    }
    pipe.lives().await;
}
