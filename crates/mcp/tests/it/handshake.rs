//! `initialize`: a legacy client and the server agree on a revision.

use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::{Value, json};
use tidegate_core::{CallOrigin, Caller, Principal, TransportKind};
use tidegate_mcp::{InFlightRequests, ResponseMessage, Revision, ServerDescription};
use tidegate_runtime::SnapshotBuilder;

use crate::client::{Client, message, request};
use tidegate_testkit::host::Host;
use tidegate_testkit::schema::check_response;

fn local() -> Caller {
    Caller::new(Principal::process_user(), CallOrigin { transport: TransportKind::Stdio, peer: None })
}

/// The revision that was agreed on, or the error.
fn check(params: Value) -> String {
    let request = request(&message(1, "initialize", params));
    let host = Host::new();
    // Nobody who does not ask too often waits.
    let initialized = host.service.initialize(&request, &local(), Arc::new(InFlightRequests::default())).now_or_never();
    match initialized.unwrap() {
        Ok((session, answer)) => {
            let answer: Value = serde_json::from_slice(&answer.bytes).unwrap();
            check_response(session.revision(), "initialize", &answer);
            assert_eq!(answer["result"]["protocolVersion"], session.revision().name());
            session.revision().name().to_owned()
        }
        Err(error) => {
            let answer = ResponseMessage::error(Some(&request.id), &error);
            check_response(Revision::NEWEST_LEGACY, "initialize", &serde_json::from_slice(&answer.bytes).unwrap());
            format!("error {}: {}", error.code, error.message)
        }
    }
}

#[test]
fn negotiates_known_revision_or_newest_legacy() {
    let of = |version: &str| check(json!({"protocolVersion": version, "capabilities": {}}));
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        assert_eq!(of(revision.name()), revision.name());
    }
    for unknown in ["1999-01-01", "2099-01-01", "2026-07-28", "", "draft", "2025-11-25 "] {
        assert_eq!(of(unknown), "2025-11-25", "{unknown:?}");
    }
}

#[test]
fn a_handshake_without_a_version_is_refused() {
    insta::assert_snapshot!(check(json!({})), @"error -32602: the params of initialize are wrong: missing field `protocolVersion` at line 1 column 2");
    insta::assert_snapshot!(check(json!({"protocolVersion": 20251125})), @"error -32602: the params of initialize are wrong: invalid type: integer `20251125`, expected a string at line 1 column 27");
}

#[test]
fn instructions_name_the_tools_with_which_the_caller_can_change_something() {
    let host = Host::new();
    let instructions = Some("Look. {changing_tools} Ask.".to_owned());
    host.service.set_description(ServerDescription { instructions, ..host.service.description() });
    let read = || {
        let request = request(&message(1, "initialize", json!({"protocolVersion": "2025-11-25"})));
        let initialized = host.service.initialize(&request, &local(), Arc::default()).now_or_never().unwrap();
        let (_, answer) = initialized.unwrap();
        let answer: Value = serde_json::from_slice(&answer.bytes).unwrap();
        answer["result"]["instructions"].as_str().unwrap().to_owned()
    };
    // Those that only read are not among them.
    let text = read();
    assert!(text.starts_with("Look. Only these tools can change anything: ") && text.ends_with(". Ask."), "{text}");
    assert!(text.contains("script") && text.contains("listing") && !text.contains("decorated"), "{text}");
    host.service.registry().swap(SnapshotBuilder::new().build());
    assert_eq!(read(), "Look. Nothing can be changed. Ask.");
}

#[test]
fn server_info_and_capabilities_follow_revision() {
    let hello = |revision: Revision| {
        let request = request(&message(1, "initialize", json!({"protocolVersion": revision.name()})));
        let host = Host::new();
        let initialized = host.service.initialize(&request, &local(), Arc::default()).now_or_never().unwrap();
        let (_, answer) = initialized.unwrap();
        String::from_utf8(answer.bytes.to_vec()).unwrap()
    };
    insta::assert_snapshot!(hello(Revision::V2024_11_05), @r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"logging":{}},"serverInfo":{"name":"test","version":"1.2.3"},"instructions":"Say \"hello\" first."}}"#);
    insta::assert_snapshot!(hello(Revision::V2025_03_26), @r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"logging":{},"completions":{}},"serverInfo":{"name":"test","version":"1.2.3"},"instructions":"Say \"hello\" first."}}"#);
    insta::assert_snapshot!(hello(Revision::V2025_06_18), @r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"logging":{},"completions":{}},"serverInfo":{"name":"test","title":"Test","version":"1.2.3"},"instructions":"Say \"hello\" first."}}"#);
    insta::assert_snapshot!(hello(Revision::V2025_11_25), @r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"logging":{},"completions":{}},"serverInfo":{"name":"test","title":"Test","version":"1.2.3"},"instructions":"Say \"hello\" first."}}"#);
}

#[tokio::test]
async fn a_second_handshake_is_no_ordinary_request() {
    let client = Client::of(Revision::V2025_11_25);
    let client_result = client.send_request("initialize", json!({"protocolVersion": "2025-11-25"})).await;
    assert_eq!(client_result.text(), "error -32601: there is no method \"initialize\" in this revision");
}
