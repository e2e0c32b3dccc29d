//! Encodes messages beside responses: progress, log messages, changes of lists and resources, server requests to legacy
//! clients.
//!
//! [MCP 2026-07-28, Progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress)

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_runtime::ReplyNotification;

use crate::jsonrpc::RequestId;
use crate::revision::Dialect;

/// A list that can change.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ListKind {
    Tools,
    Resources,
    Prompts,
}

#[derive(Serialize)]
struct Notification<'a, P> {
    jsonrpc: &'a str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

#[derive(Serialize)]
struct ProgressParams<'a> {
    /// The received text, as for ids: a number of 23 digits would not survive decoding.
    #[serde(rename = "progressToken")]
    token: &'a RawValue,
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

#[derive(Serialize)]
struct UpdatedParams<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<SubscriptionMeta<'a>>,
    uri: &'a str,
}

#[derive(Serialize)]
struct ChangedParams<'a> {
    #[serde(rename = "_meta")]
    meta: SubscriptionMeta<'a>,
}

#[derive(Serialize)]
struct AcknowledgedParams<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<SubscriptionMeta<'a>>,
    notifications: &'a Value,
}

/// The stream that a notification belongs to, as the text of its request's id.
#[derive(Serialize)]
struct SubscriptionMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    stream: &'a RawValue,
}

impl<'a> SubscriptionMeta<'a> {
    fn new(stream: &'a RequestId) -> Option<Self> {
        // An id is JSON text.
        serde_json::from_str(stream.as_json()).ok().map(|stream| Self { stream })
    }
}

#[derive(Serialize)]
struct LogParams<'a> {
    level: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    logger: Option<&'a str>,
    data: &'a Value,
}

/// The stream is open and sends the notifications of `honoured`, a `SubscriptionFilter`.
pub(crate) fn encode_acknowledgement(honoured: &Value, stream: &RequestId) -> Bytes {
    let params = AcknowledgedParams { meta: SubscriptionMeta::new(stream), notifications: honoured };
    encode_message("notifications/subscriptions/acknowledged", Some(params))
}

/// A list has changed. `stream` is the stream of the notification; `None` for a legacy session.
pub(crate) fn encode_list_changed(kind: ListKind, stream: Option<&RequestId>) -> Bytes {
    let list = match kind {
        ListKind::Tools => "tools",
        ListKind::Resources => "resources",
        ListKind::Prompts => "prompts",
    };
    let params = stream.and_then(SubscriptionMeta::new).map(|meta| ChangedParams { meta });
    encode_message(&format!("notifications/{list}/list_changed"), params)
}

/// The contents of a resource may have changed. `stream` as above.
pub(crate) fn encode_resource_updated(uri: &str, stream: Option<&RequestId>) -> Bytes {
    let params = UpdatedParams { meta: stream.and_then(SubscriptionMeta::new), uri };
    encode_message("notifications/resources/updated", Some(params))
}

/// A task has changed; `task` contains the members of its `DetailedTask`.
pub(crate) fn encode_task_status(task: &str, stream: &RequestId) -> Bytes {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks\",\"params\":{{{task},\
         \"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{}}}}}}}",
        stream.as_json()
    )
    .into()
}

/// A notification of a request. Progress needs the token with which the client requested it.
pub(crate) fn encode_notification(
    notice: &ReplyNotification,
    progress_token: Option<&str>,
    dialect: &Dialect,
) -> Option<Bytes> {
    match notice {
        ReplyNotification::Progress { done, total, message } => {
            let params = ProgressParams {
                token: serde_json::from_str(progress_token?).ok()?,
                progress: *done,
                total: *total,
                message: message.as_deref().filter(|_| dialect.annotations),
            };
            Some(encode_message("notifications/progress", Some(params)))
        }
        ReplyNotification::Log { level, logger, data } => {
            let params = LogParams { level: level.name(), logger: logger.as_deref(), data };
            Some(encode_message("notifications/message", Some(params)))
        }
    }
}

/// A server request to a legacy client.
pub(crate) fn encode_server_request(id: u64, method: &str, params: &Value) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}").into()
}

fn encode_message<P: Serialize>(method: &str, params: Option<P>) -> Bytes {
    // Serializing text and values into memory cannot fail.
    serde_json::to_vec(&Notification { jsonrpc: "2.0", method, params }).unwrap_or_default().into()
}
