//! What must hold of the bytes of one message: they are a message or a refusal that can be sent as it is.
//!
//! Run by the fuzz target `decoder`, and by a test of `tidegate-mcp` over the stored corpus.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_mcp::{DecodeError, IncomingMessage, RPC_BATCH_MESSAGES_MAX, decode};

/// The maximum length of a message to a client, for every input.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// Panics when anything but that comes of `bytes`.
pub(crate) fn check(bytes: &[u8]) {
    match decode(bytes) {
        Ok(IncomingMessage::RpcBatch(messages)) => {
            assert!(!messages.is_empty() && messages.len() <= RPC_BATCH_MESSAGES_MAX);
            messages.iter().for_each(|message| check_one(message.as_ref(), None));
        }
        one => check_one(one.as_ref(), Some(bytes)),
    }
}

/// `bytes` are all there is of the message, if it stands alone.
fn check_one(message: Result<&IncomingMessage, &DecodeError>, bytes: Option<&[u8]>) {
    // Read once more by a reader that knows nothing of messages; it takes less than ours, in depth and in numbers.
    let read: Option<Value> = bytes.and_then(|bytes| serde_json::from_slice(bytes).ok());
    match message {
        Ok(IncomingMessage::Request(request)) => {
            if let Some(read) = read {
                assert_eq!(read["jsonrpc"], "2.0");
                assert_eq!(read["method"], request.method.as_str());
                assert!(read["id"].is_string() || read["id"].is_number());
            }
            check_params(request.params::<Value>().err());
        }
        Ok(IncomingMessage::Notification(notification)) => {
            if let Some(read) = read {
                assert_eq!(read["method"], notification.method.as_str());
                assert!(read.get("id").is_none());
            }
            check_params(notification.params::<Value>().err());
        }
        Ok(IncomingMessage::Response(_)) => {
            if let Some(read) = read {
                assert!(read.get("method").is_none());
                assert!(read.get("result").is_some() || read.get("error").is_some());
            }
        }
        Ok(IncomingMessage::RpcBatch(_)) => panic!("a batch in a batch"),
        Err(refusal) => check_refusal(refusal),
    }
}

/// Parameters are read or complained of as such.
fn check_params(error: Option<tidegate_mcp::RpcError>) {
    if let Some(error) = error {
        let sent: Value = serde_json::from_slice(&error.to_bytes(None)).expect("an error is JSON");
        assert_eq!(sent["error"]["code"], -32_602, "{sent}");
    }
}

fn check_refusal(refusal: &DecodeError) {
    let bytes = refusal.error.to_bytes(refusal.id.as_ref());
    assert!(bytes.len() <= REFUSAL_BYTES_MAX, "a refusal of {} bytes", bytes.len());
    assert!(!bytes.contains(&b'\n'), "a refusal of several lines");
    // The id comes back as it came, and a number may be larger than any type holds.
    let sent: BTreeMap<&str, &RawValue> = serde_json::from_slice(&bytes).expect("a refusal is JSON");
    assert_eq!(sent["jsonrpc"].get(), "\"2.0\"");
    assert_eq!(sent["id"].get(), refusal.id.as_ref().map_or("null", |id| id.as_json()));
    let error: Value = serde_json::from_str(sent["error"].get()).expect("what is told is JSON");
    assert!(error["code"].as_i64().is_some_and(|code| code < 0), "{error}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
}
