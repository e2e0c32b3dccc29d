//! What a line says, and what it does not.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_audit::{AuditOptions, Redaction, VerifyOptions, verify};
use tidegate_core::TransportKind;
use tidegate_core::event::{Event, Subscriber as _};

use crate::scene::{Place, Scene, ann, shown, text};

#[tokio::test]
async fn a_line_says_who_from_where_what_and_how_it_ended() {
    let place = Place::new();
    let scene = Scene::open(&place.options());
    assert_eq!(scene.ask("rows", json!({"sql": "SELECT 'hunter2'"})).await, "done");
    assert_eq!(scene.ask("fail", json!({})).await, "too_large");
    assert_eq!(scene.ask("none", json!({"sql": 1})).await, "not_found");
    let peer = Some("::1".parse().unwrap());
    let reason = "no\nbearer \"x\"";
    scene.log.hear(Event::MessageRefused { transport: TransportKind::WebSocket, peer, reason });
    scene.close().await;
    assert_eq!(scene.figures(), (5, 0, 0));
    let lines = shown(&place.file());
    assert!(!lines.contains("hunter2"));
    insta::assert_snapshot!(lines);
}

#[tokio::test]
async fn values_are_written_where_that_is_asked_for_but_for_what_is_redacted() {
    let place = Place::new();
    let values = Some(Redaction::new(["ssn", "card.*", "Login.pin"]));
    let scene = Scene::open(&AuditOptions { values, ..place.options() });
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
async fn what_callers_send_does_not_fill_the_log() {
    let place = Place::new();
    let scene = Scene::open(&AuditOptions { values: Some(Redaction::default()), ..place.options() });
    let wide: Value = (0..1_000).map(|number| (format!("n{number}"), json!(vec!["y".repeat(900); 40]))).collect();
    let mut deep = json!("bottom");
    for _ in 0..100 {
        deep = json!({ "d": [deep] });
    }
    scene.ask("rows", json!({"wide": wide, "deep": deep})).await;
    scene.ask(&"z".repeat(100_000), json!({})).await;
    let reason = "r".repeat(100_000);
    scene.log.hear(Event::MessageRefused { transport: TransportKind::Rest, peer: None, reason: &reason });
    scene.close().await;
    let bytes = text(&place.file()).len();
    assert!(bytes < 100_000, "{bytes}");
    assert_eq!(verify(&[place.file()], &VerifyOptions::default()).unwrap().lines, 4);
}

#[tokio::test]
async fn a_call_that_is_refused_at_the_door_has_a_line() {
    let place = Place::new();
    let scene = Scene::open(&place.options());
    let caller = ann();
    scene.log.hear(Event::CallRefused { caller: &caller, kind: "tool", name: "x", outcome: "rate_limited" });
    scene.close().await;
    insta::assert_snapshot!(shown(&place.file()).lines().last().unwrap(), @r#"{"time":"<24>","seq":2,"kind":"refused_call","subject":"ann","tenant":"north","proof":"token","roles":["reader","writer"],"transport":"http","address":"10.0.0.7","target":{"kind":"tool","name":"x"},"outcome":"rate_limited","prev":"<64>","hash":"<64>"}"#);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_callers_send_stays_one_line_of_json(names in prop::collection::vec(".{0,40}", 1..5), value in ".{0,60}") {
        let place = Place::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let scene = Scene::open(&AuditOptions { values: Some(Redaction::default()), ..place.options() });
            for name in &names {
                let arguments: Value = names.iter().map(|name| (name.clone(), json!(value))).collect();
                scene.ask("rows", arguments).await;
                scene.ask(name, json!({})).await;
                scene.log.hear(Event::MessageRefused { transport: TransportKind::Sse, peer: None, reason: &value });
            }
            scene.close().await;
        });
        let verified = verify(&[place.file()], &VerifyOptions::default()).unwrap();
        // Of what is refused before anybody is known, the first has a line, and the others have one.
        let calls = 2 * names.len() as u64;
        prop_assert_eq!(verified.lines, 1 + calls + names.len().min(2) as u64);
        for line in text(&place.file()).lines() {
            prop_assert!(serde_json::from_str::<Value>(line).is_ok(), "{}", line);
        }
    }
}
