//! Messages beside responses: notifications, and input requests with their answers. Input requests are the same in each
//! revision, however they are transported.
//!
//! MCP 2026-07-28: [Progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress),
//! [Multi Round-Trip Requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr)

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tidegate_core::{InputAnswer, InputRequest, InputRequestKind};
use tidegate_runtime::ReplyNotification;

use crate::jsonrpc::RequestId;
use crate::revision::Dialect;

#[derive(Debug, Clone, Copy)]
pub(crate) enum ListKind {
    Tools,
    Resources,
    Prompts,
}

pub(crate) fn encode_acknowledgement(accepted: &Value, stream: &RequestId) -> Bytes {
    let params = format!("{},\"notifications\":{accepted}", subscription_meta(stream));
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

pub(crate) fn encode_input_request(request: &InputRequest) -> (&'static str, Value) {
    let message = request.client_message();
    match &request.kind {
        // Without a mode it is a form in every revision.
        InputRequestKind::Form { schema, .. } => {
            ("elicitation/create", json!({"message": message, "requestedSchema": schema}))
        }
        InputRequestKind::Url { url, .. } => {
            ("elicitation/create", json!({"mode": "url", "message": message, "url": url}))
        }
        InputRequestKind::Sampling(params) => ("sampling/createMessage", Value::Object(params.clone())),
        InputRequestKind::Roots => ("roots/list", json!({})),
    }
}

pub(crate) fn encode_input_requests<'a>(requests: impl IntoIterator<Item = (&'a str, &'a InputRequest)>) -> Value {
    let entries = requests.into_iter().map(|(key, request)| {
        let (method, params) = encode_input_request(request);
        (key.to_owned(), json!({"method": method, "params": params}))
    });
    Value::Object(entries.collect())
}

pub(crate) fn parse_input_answer(result: &Value) -> Result<InputAnswer, String> {
    let Value::Object(members) = result else { return Err("it must be an object".to_owned()) };
    if let Some(action) = members.get("action") {
        return match (action.as_str(), members.get("content")) {
            (Some("accept"), Some(Value::Object(content))) => Ok(InputAnswer::Accepted(content.clone())),
            (Some("accept"), None | Some(Value::Null)) => Ok(InputAnswer::Accepted(Map::new())),
            (Some("accept"), Some(_)) => Err("its content must be an object".to_owned()),
            (Some("decline"), _) => Ok(InputAnswer::Declined),
            (Some("cancel"), _) => Ok(InputAnswer::Cancelled),
            _ => Err("its action must be accept, decline or cancel".to_owned()),
        };
    }
    if let Some(roots) = members.get("roots") {
        let roots = roots.as_array().ok_or("its roots must be a list")?;
        return Ok(InputAnswer::Roots(roots.clone()));
    }
    if members.contains_key("content") && members.contains_key("role") {
        return Ok(InputAnswer::Sampled(members.clone()));
    }
    Err("it must have an action, roots, or role and content".to_owned())
}
