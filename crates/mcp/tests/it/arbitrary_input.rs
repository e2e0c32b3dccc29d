//! Whatever bytes come, the answer is well-formed.

use proptest::collection::vec;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_mcp::{IncomingMessage, Revision, decode};

use crate::client::Client;

/// A message that a mutation makes into nearly one.
const MESSAGES: [&str; 6] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"script","arguments":{"steps":[["text","a"]]}}}"#,
    r#"{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{"cursor":"dG9vbHMKYQ"}}"#,
    r#"{"jsonrpc":"2.0","id":-1.5,"method":"resources/read","params":{"uri":"test://plain","_meta":{"progressToken":7}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"decorated"},"argument":{"name":"mood","value":"b"}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"plain","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}]"#,
];

/// A response, its id as the text that came: a number may be larger than any type holds.
#[derive(Deserialize)]
struct Response<'a> {
    jsonrpc: &'a str,
    #[serde(borrow)]
    #[allow(dead_code, reason = "that it is there is what counts")]
    id: &'a RawValue,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ResponseError>,
}

#[derive(Deserialize)]
struct ResponseError {
    code: i64,
    message: String,
}

fn check_response(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap();
    let response: Response<'_> = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(response.jsonrpc, "2.0");
    assert!(!text.contains('\n'), "{text}");
    match (response.result, response.error) {
        (Some(result), None) => assert!(result.get().starts_with('{'), "{text}"),
        (None, Some(error)) => assert!(error.code < 0 && !error.message.is_empty(), "{text}"),
        _ => panic!("{text}"),
    }
}

async fn check(bytes: &[u8], client: &Client) {
    match decode(bytes) {
        Err(rejection) => check_response(&rejection.error.to_bytes(rejection.id.as_ref())),
        Ok(IncomingMessage::Request(request)) => {
            check_response(&crate::client::bytes(client.service.answer(request, &client.context).await).await);
        }
        Ok(IncomingMessage::Notification(notification)) => {
            client.service.handle_notification(&notification, &client.context)
        }
        Ok(IncomingMessage::Response(_)) => {}
        Ok(IncomingMessage::RpcBatch(messages)) => match client.batch(messages).await {
            Ok(Some(batch)) => {
                let responses: Vec<&RawValue> = serde_json::from_slice(&batch).unwrap();
                assert!(!responses.is_empty());
                responses.iter().for_each(|response| check_response(response.get().as_bytes()));
            }
            Ok(None) => {}
            Err(error) => check_response(&error.to_bytes(None)),
        },
    }
}

fn run(bytes: &[u8], revision: Revision) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { check(bytes, &Client::of(revision)).await });
}

/// One of the messages with some bytes taken out, put in or changed.
fn mutated_message() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\",:0-9.eE\\untfalsr/_ ".to_vec())];
    let edits = vec((any::<prop::sample::Index>(), 0_u8..3, byte), 0..4);
    (prop::sample::select(MESSAGES.to_vec()), edits).prop_map(|(message, edits)| {
        let mut bytes = message.as_bytes().to_vec();
        for (place, verb, byte) in edits {
            let place = place.index(bytes.len());
            match verb {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ => _ = bytes.remove(place),
            }
        }
        bytes
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_get_valid_response(bytes in vec(any::<u8>(), 0..200)) {
        run(&bytes, Revision::V2025_03_26);
    }

    #[test]
    fn mutated_message_gets_valid_response(bytes in mutated_message(), is_new in any::<bool>()) {
        run(&bytes, if is_new { Revision::V2026_07_28 } else { Revision::V2025_03_26 });
    }

    #[test]
    fn arbitrary_text_round_trips(chunks in vec("\\PC{0,8}|[\\x00-\\x7f]{0,8}", 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let steps: serde_json::Value = chunks.iter().map(|chunk| serde_json::json!(["text", chunk])).collect();
        let result = runtime.block_on(async { Client::modern().script(steps).await }).result();
        prop_assert_eq!(result["content"][0]["text"].as_str().unwrap(), chunks.concat());
    }
}
