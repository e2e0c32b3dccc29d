//! A slow answer does not delay others; a cancelled one is never sent.

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use super::{Pipe, settle};
use tidegate_testkit::host::Host;
use tidegate_testkit::message_checker::text;

#[tokio::test]
async fn pings_are_answered_while_a_call_runs() {
    let host = Host::new();
    let mut pipe = Pipe::agreed(&host, Revision::V2025_06_18).await;
    // It has produced 300 KiB already and is not complete.
    pipe.call(json!("slow"), json!([["flood", 300_000], ["wait"], ["text", "end"]])).await;
    for number in 0..100 {
        assert_eq!(pipe.ask(json!(number), "ping", json!({})).await["result"], json!({}));
    }
    host.release.cancel();
    let answer = pipe.hear().await.unwrap();
    assert_eq!(answer["id"], "slow");
    assert!(text(&answer).ends_with("\nend"));
}

#[tokio::test]
async fn answers_come_when_they_are_ready_and_each_request_has_one() {
    let host = Host::new();
    let mut pipe = Pipe::open(&host);
    for number in 0..200 {
        let steps = if number % 2 == 0 { json!([["wait"]]) } else { json!([]) };
        pipe.call(json!(number), steps).await;
    }
    let mut first: Vec<u64> = Vec::new();
    for _ in 0..100 {
        first.push(pipe.hear().await.unwrap()["id"].as_u64().unwrap());
    }
    assert!(first.iter().all(|number| number % 2 == 1), "{first:?}");
    host.release.cancel();
    assert_eq!(pipe.close().await.len(), 100);
}

#[tokio::test]
async fn notifications_precede_the_answer() {
    let mut pipe = Pipe::open(&Host::new());
    let steps = json!([["progress", 1], ["progress", 2], ["text", "done"], ["progress", 3]]);
    let params = json!({"name": "script", "arguments": {"steps": steps}, "_meta": {"progressToken": "p"}});
    pipe.send(json!(1), "tools/call", params).await;
    let mut rendered = Vec::new();
    for _ in 0..3 {
        let message = pipe.hear().await.unwrap();
        rendered
            .push(message["params"]["progress"].as_f64().map_or_else(|| text(&message).to_owned(), |n| n.to_string()));
    }
    assert_eq!(rendered, ["1", "2", "done"]);
    assert_eq!(pipe.close().await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_silent_and_ends() {
    let host = Host::new();
    for agreed in [None, Some(Revision::V2024_11_05)] {
        let mut pipe = match agreed {
            Some(revision) => Pipe::agreed(&host, revision).await,
            None => Pipe::open(&host),
        };
        pipe.call(json!("c"), json!([["text", "rows"], ["cancelled"], ["text", "more"]])).await;
        pipe.call(json!("d"), json!([["flood", 500_000], ["cancelled"]])).await;
        settle().await;
        for id in ["c", "d"] {
            let params = json!({"requestId": id, "reason": "enough"});
            let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            pipe.line(cancelled.to_string().as_bytes()).await;
        }
        pipe.lives().await;
        settle().await;
        assert_eq!(host.service.registry().jobs().open_count(), 0);
        pipe.lives().await;
        assert_eq!(pipe.close().await, Vec::<Value>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_in_use_is_refused() {
    let host = Host::new();
    let mut pipe = Pipe::open(&host);
    pipe.call(json!(1), json!([["wait"]])).await;
    settle().await;
    pipe.send(json!(1), "tools/list", json!({})).await;
    let answer = pipe.hear().await.unwrap();
    assert_eq!(answer["error"]["code"], -32_600);
    pipe.ledger.open.insert("1".to_owned(), ("tools/call".to_owned(), Revision::V2026_07_28));
    host.release.cancel();
    assert!(pipe.hear().await.unwrap().get("result").is_some());
}
