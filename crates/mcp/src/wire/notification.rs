//! Notifications that we send: progress, log messages, changed lists.
//!
//! [MCP 2026-07-28, Progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress)

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tidegate_core::Notice;

use super::put;
use crate::revision::Dialect;

/// A list that may change.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ListKind {
    Tools,
    Resources,
    Prompts,
}

/// The list has changed.
pub(crate) fn list_changed(kind: ListKind) -> Bytes {
    let list = match kind {
        ListKind::Tools => "tools",
        ListKind::Resources => "resources",
        ListKind::Prompts => "prompts",
    };
    notification(&format!("notifications/{list}/list_changed"), None)
}

/// News of a request. Progress needs the token under which the client asked for it.
pub(crate) fn notice(notice: &Notice, progress_token: Option<&str>, dialect: &Dialect) -> Option<Bytes> {
    match notice {
        Notice::Progress { done, total, message } => {
            let token: Value = serde_json::from_str(progress_token?).ok()?;
            let mut params = Map::new();
            params.insert("progressToken".to_owned(), token);
            params.insert("progress".to_owned(), json!(done));
            put(&mut params, "total", *total);
            put(&mut params, "message", message.clone().filter(|_| dialect.annotations));
            Some(notification("notifications/progress", Some(params)))
        }
        Notice::Log { level, logger, data } => {
            let mut params = Map::new();
            params.insert("level".to_owned(), level.name().into());
            put(&mut params, "logger", logger.clone());
            params.insert("data".to_owned(), data.clone());
            Some(notification("notifications/message", Some(params)))
        }
    }
}

fn notification(method: &str, params: Option<Map<String, Value>>) -> Bytes {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if let Some(params) = params {
        message["params"] = Value::Object(params);
    }
    message.to_string().into()
}
