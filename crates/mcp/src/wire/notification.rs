//! Encodes messages beside responses: progress, log messages, changes of lists and resources, server requests to legacy
//! clients.
//!
//! [MCP 2026-07-28, Progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress)

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_runtime::ReplyNotification;

use crate::jsonrpc::RequestId;
use crate::revision::Dialect;

#[derive(Debug, Clone, Copy)]
pub(crate) enum ListKind {
    Tools,
    Resources,
    Prompts,
}

/// The stream is open and sends the notifications of `honoured`, a `SubscriptionFilter`.
pub(crate) fn encode_acknowledgement(honoured: &Value, stream: &RequestId) -> Bytes {
    let params = format!("{},\"notifications\":{honoured}", subscription_meta(stream));
    encode_message("notifications/subscriptions/acknowledged", &params)
}

/// A list has changed. `stream` is the stream of the notification; `None` for a legacy session.
pub(crate) fn encode_list_changed(kind: ListKind, stream: Option<&RequestId>) -> Bytes {
    let method = match kind {
        ListKind::Tools => "notifications/tools/list_changed",
        ListKind::Resources => "notifications/resources/list_changed",
        ListKind::Prompts => "notifications/prompts/list_changed",
    };
    match stream {
        Some(stream) => encode_message(method, &subscription_meta(stream)),
        None => format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}").into(),
    }
}

/// The contents of a resource may have changed. `stream` as above.
pub(crate) fn encode_resource_updated(uri: &str, stream: Option<&RequestId>) -> Bytes {
    let meta = stream.map(|stream| subscription_meta(stream) + ",").unwrap_or_default();
    encode_message("notifications/resources/updated", &format!("{meta}\"uri\":{}", json!(uri)))
}

/// A task has changed; `task` contains the members of its `DetailedTask`.
pub(crate) fn encode_task_status(task: &str, stream: &RequestId) -> Bytes {
    encode_message("notifications/tasks", &format!("{task},{}", subscription_meta(stream)))
}

/// A notification of a request. Progress needs the token with which the client requested it.
pub(crate) fn encode_notification(
    notification: &ReplyNotification,
    progress_token: Option<&str>,
    dialect: &Dialect,
) -> Option<Bytes> {
    match notification {
        ReplyNotification::Progress { done, total, message } => {
            // The token as received, like ids: a number of 23 digits would not survive decoding.
            let mut params = format!("\"progressToken\":{},\"progress\":{}", progress_token?, json!(done));
            if let Some(total) = total {
                params.push_str(&format!(",\"total\":{}", json!(total)));
            }
            if let Some(message) = message.as_ref().filter(|_| dialect.annotations) {
                params.push_str(&format!(",\"message\":{}", json!(message)));
            }
            Some(encode_message("notifications/progress", &params))
        }
        ReplyNotification::Log { level, logger, data } => {
            let logger = logger.as_ref().map(|logger| format!("\"logger\":{},", json!(logger))).unwrap_or_default();
            let params = format!("\"level\":\"{}\",{logger}\"data\":{data}", level.name());
            Some(encode_message("notifications/message", &params))
        }
    }
}

pub(crate) fn encode_server_request(id: u64, method: &str, params: &Value) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}").into()
}

/// The stream that a notification belongs to, as the text of its request's id.
fn subscription_meta(stream: &RequestId) -> String {
    format!("\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{}}}", stream.as_json())
}

/// A notification with `params` (JSON text without braces).
fn encode_message(method: &str, params: &str) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{{{params}}}}}").into()
}
