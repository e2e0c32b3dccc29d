//! `resources/read`: contents written while they are read.

use serde_json::{Value, json};
use tidegate_core::UriTemplate;
use tidegate_mcp::{NotificationFeed, Revision};
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use tidegate_testkit::host::entries;
use tidegate_testkit::schema::check_notification;

fn script(steps: &Value) -> String {
    UriTemplate::parse("script://{steps}").unwrap().expand(&[&steps.to_string()])
}

/// The contents of a scripted resource, one a line; its own URI shows as `script`.
async fn check(steps: Value) -> String {
    let uri = script(&steps);
    let result = Client::modern().send_request("resources/read", json!({"uri": uri})).await.result();
    let contents = result["contents"].as_array().unwrap().iter();
    contents.map(|contents| format!("{}\n", contents.to_string().replace(&uri, "script"))).collect()
}

#[tokio::test]
async fn text_has_the_requested_uri() {
    insta::assert_snapshot!(check(json!([["text", "a\"b"], ["text", "\nc"]])).await, @r#"{"uri":"script","mimeType":"application/json","text":"a\"b\nc"}"#);
    insta::assert_snapshot!(check(json!([["text", "columns"], ["end"], ["text", "rows"]])).await, @r#"
    {"uri":"script","mimeType":"application/json","text":"columns"}
    {"uri":"script","mimeType":"application/json","text":"rows"}
    "#);
    insta::assert_snapshot!(check(json!([])).await, @"");
    let plain = Client::modern().send_request("resources/read", json!({"uri": "test://plain"})).await.result();
    insta::assert_snapshot!(plain["contents"], @r#"[{"uri":"test://plain","text":"nothing to do"}]"#);
}

#[tokio::test]
async fn additional_contents_are_appended() {
    let steps = json!([
        ["text", "text"],
        ["block", "block"],
        ["image", "image/png"],
        ["resource", "test://other"],
        ["blob", "test://blob"],
        ["link", "test://plain"],
        ["text", "end"],
    ]);
    insta::assert_snapshot!(check(steps).await, @r#"
    {"uri":"script","mimeType":"application/json","text":"text"}
    {"uri":"script","mimeType":"application/json","text":"block"}
    {"uri":"script","mimeType":"image/png","blob":"AAH/"}
    {"uri":"test://other","mimeType":"text/plain","text":"inside"}
    {"uri":"test://blob","mimeType":"text/plain","blob":"AAH/"}
    {"uri":"test://plain","text":"link"}
    {"uri":"script","mimeType":"application/json","text":"end"}
    "#);
}

#[tokio::test]
async fn missing_resource_error_follows_revision() {
    for client in Client::all_revisions() {
        let received = client.send_request("resources/read", json!({"uri": "test://none"})).await.text();
        let code = if client.revision.is_legacy() { -32_002 } else { -32_602 };
        let rest = r#": there is no resource "test://none" {"kind":"not_found","uri":"test://none"}"#;
        assert_eq!(received, format!("error {code}{rest}"), "{}", client.revision.name());
    }
}

#[tokio::test]
async fn failure_before_first_byte_is_error_else_last_contents() {
    let uri = script(&json!([["fail", "gone", "not_found"]]));
    for (revision, code) in [(Revision::V2025_06_18, -32_002), (Revision::V2026_07_28, -32_602)] {
        let received = Client::of(revision).send_request("resources/read", json!({"uri": uri})).await.text();
        assert!(received.starts_with(&format!("error {code}: gone {{")), "{received}");
    }
    let unavailable = script(&json!([["fail", "try later"]]));
    let received = Client::modern().send_request("resources/read", json!({"uri": unavailable})).await.text();
    assert!(received.starts_with("error -31000: try later {\"kind\":\"unavailable\""), "{received}");
    insta::assert_snapshot!(check(json!([["text", "rows"], ["fail", "the rest is lost"]])).await, @r#"
    {"uri":"script","mimeType":"application/json","text":"rows"}
    {"uri":"script","mimeType":"text/plain","text":"the rest is lost"}
    "#);
}

#[tokio::test]
async fn a_legacy_session_subscribes_to_resources_that_exist() {
    for client in Client::all_revisions().filter(|client| client.revision.is_legacy()) {
        let mut feed = NotificationFeed::for_session(client.context.session.as_ref().unwrap());
        for uri in ["test://plain", "fruit://apple", "test://plain"] {
            assert_eq!(client.send_request("resources/subscribe", json!({"uri": uri})).await.result(), json!({}));
        }
        assert_eq!(
            client.send_request("resources/unsubscribe", json!({"uri": "fruit://apple"})).await.result(),
            json!({})
        );
        assert_eq!(
            client.send_request("resources/unsubscribe", json!({"uri": "never://seen"})).await.result(),
            json!({})
        );
        client.service.registry().swap(entries(&CancellationToken::new()).build());
        feed.update_caller(&client.context.caller).await;
        let changes = std::iter::from_fn(|| feed.next_message()).map(|bytes| serde_json::from_slice(&bytes).unwrap());
        let message = changes.map(|change: Value| {
            check_notification(client.revision, &change);
            format!("{}\n", change["method"].as_str().unwrap())
        });
        let message: String = message.collect();
        insta::allow_duplicates! {
            insta::assert_snapshot!(message, @r"
            notifications/tools/list_changed
            notifications/resources/list_changed
            notifications/prompts/list_changed
            notifications/resources/updated
            ");
        }
        let missing = client.send_request("resources/subscribe", json!({"uri": "test://none"})).await.text();
        assert!(missing.starts_with("error -32002: there is no resource \"test://none\""), "{missing}");
    }
}

#[tokio::test]
async fn subscriptions_are_bounded() {
    let client = Client::of(Revision::V2025_11_25);
    let subscribe = async |number: usize| {
        client.send_request("resources/subscribe", json!({"uri": format!("fruit://{number}")})).await.text()
    };
    for number in 0..1_000 {
        assert_eq!(subscribe(number).await, "result {}");
    }
    assert!(subscribe(1_000).await.starts_with("error -31000: too many resource subscriptions"));
    assert_eq!(subscribe(7).await, "result {}", "it is subscribed to already");
}
