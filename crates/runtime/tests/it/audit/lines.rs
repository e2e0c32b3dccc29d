//! The content of a line, and what must not be in it.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_core::{ArgumentRedaction, TransportKind};
use tidegate_runtime::audit::{AuditOptions, VerifyOptions, verify};
use tidegate_runtime::event::{Event, Subscriber as _};

use super::fixture::{LogFolder, TestNode, ann, text, visible_lines};

#[tokio::test]
async fn line_records_caller_origin_target_and_outcome() {
    let place = LogFolder::new();
    let scene = TestNode::open(&place.options());
    assert_eq!(scene.ask("rows", json!({"sql": "SELECT 'hunter2'"})).await, "done");
    assert_eq!(scene.ask("fail", json!({})).await, "too_large");
    assert_eq!(scene.ask("none", json!({"sql": 1})).await, "not_found");
    let peer = Some("::1".parse().unwrap());
    let reason = "no\nbearer \"x\"";
    scene.log.on_event(Event::MessageRefused { transport: TransportKind::WebSocket, peer, reason });
    scene.close().await;
    assert_eq!(scene.figures(), (5, 0, 0));
    let lines = visible_lines(&place.file());
    assert!(!lines.contains("hunter2"));
    insta::assert_snapshot!(lines);
}

#[tokio::test]
async fn writes_argument_values_except_redacted_ones() {
    let place = LogFolder::new();
    let values = Some(ArgumentRedaction::new(["ssn", "card.*", "Login.pin"]));
    let scene = TestNode::open(&AuditOptions { values, ..place.options() });
    let arguments = json!({
        "sql": "SELECT 1", "ssn": "123", "SSN": 4, "card": {"number": 5, "kind": "visa"}, "login": {"pin": [1, 2], "name": "ann"},
        "list": [{"ssn": "6", "open": true}], "accessToken": "a", "a_password_b": {"c": "d"}, "pin": 7, "long": "x".repeat(5_000),
    });
    scene.ask("rows", arguments).await;
    scene.close().await;
    let line: Value = serde_json::from_str(text(&place.file()).lines().last().unwrap()).unwrap();
    insta::assert_snapshot!(line["arguments"].to_string().replace(&"x".repeat(1_024), "<1024>"), @r#"{"sql":"SELECT 1","ssn":"***","SSN":"***","card":{"number":"***","kind":"***"},"login":{"pin":"***","name":"ann"},"list":[{"ssn":"***","open":true}],"accessToken":"***","a_password_b":"***","pin":7,"long":"<1024>…"}"#);
}

#[tokio::test]
async fn a_partial_answer_names_its_missing_nodes() {
    let place = LogFolder::new();
    let scene = TestNode::open(&place.options());
    assert_eq!(scene.ask("partial", json!({})).await, "done");
    scene.close().await;
    let line: Value = serde_json::from_str(text(&place.file()).lines().last().unwrap()).unwrap();
    assert_eq!((&line["missing_nodes"], &line["outcome"]), (&json!("oslo, rome"), &json!("done")));
    assert!(!line.to_string().contains("hunter2"), "reasons are not logged");
}

#[tokio::test]
async fn bounds_the_size_of_a_line() {
    let place = LogFolder::new();
    let scene = TestNode::open(&AuditOptions { values: Some(ArgumentRedaction::default()), ..place.options() });
    let wide: Value = (0..1_000).map(|number| (format!("n{number}"), json!(vec!["y".repeat(900); 40]))).collect();
    let mut deep = json!("bottom");
    for _ in 0..100 {
        deep = json!({ "d": [deep] });
    }
    scene.ask("rows", json!({"wide": wide, "deep": deep})).await;
    scene.ask(&"z".repeat(100_000), json!({})).await;
    let reason = "r".repeat(100_000);
    scene.log.on_event(Event::MessageRefused { transport: TransportKind::Rest, peer: None, reason: &reason });
    scene.close().await;
    let bytes = text(&place.file()).len();
    assert!(bytes < 100_000, "{bytes}");
    assert_eq!(verify(&[place.file()], &VerifyOptions::default()).unwrap().lines, 4);
}

#[tokio::test]
async fn records_refused_calls() {
    let place = LogFolder::new();
    let scene = TestNode::open(&place.options());
    let caller = ann();
    scene.log.on_event(Event::CallRefused { caller: &caller, kind: "tool", name: "x", outcome: "rate_limited" });
    scene.close().await;
    insta::assert_snapshot!(visible_lines(&place.file()).lines().last().unwrap(), @r#"{"time":"<24>","seq":2,"kind":"refused_call","subject":"ann","tenant":"north","proof":"token","roles":["reader","writer"],"transport":"http","address":"10.0.0.7","target":{"kind":"tool","name":"x"},"outcome":"rate_limited","prev":"<64>","hash":"<64>"}"#);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_arguments_stay_one_json_line(names in prop::collection::vec(".{0,40}", 1..5), value in ".{0,60}") {
        let place = LogFolder::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let scene = TestNode::open(&AuditOptions { values: Some(ArgumentRedaction::default()), ..place.options() });
            for name in &names {
                let arguments: Value = names.iter().map(|name| (name.clone(), json!(value))).collect();
                scene.ask("rows", arguments).await;
                scene.ask(name, json!({})).await;
                scene.log.on_event(Event::MessageRefused { transport: TransportKind::Sse, peer: None, reason: &value });
            }
            scene.close().await;
        });
        let verified = verify(&[place.file()], &VerifyOptions::default()).unwrap();
        // Of the messages refused before authentication, the first gets a line, and the others share one.
        let calls = 2 * names.len() as u64;
        prop_assert_eq!(verified.lines, 1 + calls + names.len().min(2) as u64);
        for line in text(&place.file()).lines() {
            prop_assert!(serde_json::from_str::<Value>(line).is_ok(), "{}", line);
        }
    }
}
