//! Whatever breaks at any time, each call is answered once, and no call runs twice.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::BridgeTransport;
use super::server::Server;

/// The next event.
#[derive(Debug, Clone, Copy)]
enum ChaosEvent {
    Call,
    CallWithProgress,
    LongCall,
    Cut,
    BeginAnew,
    Away,
    Back,
    Pause(u8),
}

fn happening() -> impl Strategy<Value = ChaosEvent> {
    prop_oneof![
        6 => Just(ChaosEvent::Call),
        2 => Just(ChaosEvent::CallWithProgress),
        2 => Just(ChaosEvent::LongCall),
        3 => Just(ChaosEvent::Cut),
        1 => Just(ChaosEvent::BeginAnew),
        1 => Just(ChaosEvent::Away),
        2 => Just(ChaosEvent::Back),
        3 => (0..5_u8).prop_map(ChaosEvent::Pause),
    ]
}

async fn run_events(carrier: BridgeTransport, is_legacy: bool, happenings: Vec<ChaosEvent>) {
    let mut server = Server::start(carrier).await;
    let mut client = server.client().of_era(is_legacy).await;
    let mut is_away = false;
    let mut calls = 0;
    for happening in happenings {
        match happening {
            ChaosEvent::Call | ChaosEvent::CallWithProgress | ChaosEvent::LongCall => {
                calls += 1;
                let mark = format!("call {calls}.");
                let steps = match happening {
                    ChaosEvent::LongCall => json!([["text", mark], ["flood", 300_000]]),
                    _ => json!([["progress", 1, 2, null], ["text", mark]]),
                };
                let mut params = json!({"name": "script", "arguments": {"steps": steps}});
                if matches!(happening, ChaosEvent::CallWithProgress) {
                    params["_meta"] = json!({"progressToken": calls});
                }
                client.send(json!(calls), "tools/call", params).await;
            }
            ChaosEvent::Cut => server.proxy.break_off(),
            ChaosEvent::BeginAnew => {
                server.replace().await;
                server.proxy.break_off();
            }
            ChaosEvent::Away if !is_away => {
                server.proxy.stop_listening().await;
                is_away = true;
            }
            ChaosEvent::Back if is_away => {
                server.proxy.listen_again().await;
                is_away = false;
            }
            ChaosEvent::Away | ChaosEvent::Back => {}
            // Simulates a client that pauses at any time.
            ChaosEvent::Pause(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds.into())).await,
        }
    }
    if is_away {
        server.proxy.listen_again().await;
    }
    let mut answered = vec![0; calls + 1];
    for _ in 0..calls {
        let answer = client.answer().await;
        let id = answer["id"].as_u64().unwrap_or_else(|| panic!("{answer}"));
        let id = usize::try_from(id).unwrap();
        answered[id] += 1;
        let ran = server.counts.of(&format!("call {id}."));
        let is_certain = answer["error"]["data"]["mayHaveRun"] != true;
        let has_run = answer.get("result").is_some();
        assert!(ran <= 1, "call {id} ran {ran} times: {answer}");
        // A client may repeat a call that is reported as not run.
        assert!(!is_certain || (ran == 1) == has_run, "call {id} ran {ran} times: {answer}");
    }
    assert!(answered[1..].iter().all(|times| *times == 1), "{answered:?}");
    // The first calls may fail because of the last failure; then the bridge works normally.
    for attempt in 0.. {
        let id = format!("alive {attempt}?");
        let steps = json!([["text", id]]);
        let answer = client.ask(id, "tools/call", json!({"name": "script", "arguments": {"steps": steps}})).await;
        if answer.get("result").is_some() {
            break;
        }
        assert_eq!(answer["error"]["data"]["mayHaveRun"], true, "{answer}");
        assert!(attempt < 10, "{answer}");
    }
    assert_eq!(server.counts.most(), 1);
}

fn hold(carrier: BridgeTransport, is_legacy: bool) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&proptest::collection::vec(happening(), 1..25), |happenings| {
            runtime.block_on(run_events(carrier, is_legacy, happenings));
            Ok(())
        })
        .unwrap();
}

#[test]
fn no_call_runs_twice_over_http() {
    hold(BridgeTransport::Http, false);
}

#[test]
fn no_call_runs_twice_in_a_session_over_http() {
    hold(BridgeTransport::Http, true);
}

#[test]
fn no_call_runs_twice_over_websocket() {
    hold(BridgeTransport::Socket, false);
}

#[test]
fn no_call_runs_twice_in_a_session_over_websocket() {
    hold(BridgeTransport::Socket, true);
}
