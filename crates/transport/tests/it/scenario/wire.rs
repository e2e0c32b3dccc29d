//! How each transport carries a message of MCP to the server and its answer back.
//!
//! - `pipe`: lines over the standard streams, of the server itself or of a bridge to it.
//! - `http`: one POST a message. `sse`: POSTs and an event stream. `socket`: frames of a WebSocket.

pub(super) mod http;
pub(super) mod pipe;
pub(super) mod socket;
pub(super) mod sse;

use serde_json::Value;
use tidegate_mcp::Revision;

use super::mcp::McpAnswer;
use crate::message_checker::MessageChecker;

/// The path of MCP at the door of a toolset or of all, with `finish_last_piece` below it.
fn path(through: Option<&str>, last: &str) -> String {
    format!("/mcp{}{last}", through.map(|toolset| format!("/{toolset}")).unwrap_or_default())
}

/// Notes that bytes that a client sends as they are may be answered, under their id if they have one.
fn expect_answer(message_checker: &mut MessageChecker, bytes: &[u8]) {
    let id = serde_json::from_slice::<Value>(bytes).ok().and_then(|message| message.get("id").cloned());
    if let Some(id) = id.filter(|id| id.is_string() || id.is_number()) {
        let revision = message_checker.agreed.unwrap_or(Revision::V2026_07_28);
        message_checker.open.insert(id.to_string(), (String::new(), revision));
    }
}

/// What was said, from the messages in their order: the one that is no notification ends it.
#[derive(Debug, Default)]
struct AnswerCollector(Vec<Value>);

impl AnswerCollector {
    /// The whole that was said, once `message` is its end. News of changed lists belong to no request.
    fn hear(&mut self, message: Value) -> Option<McpAnswer> {
        match message["method"].as_str() {
            None => Some(McpAnswer { notices: std::mem::take(&mut self.0), ..McpAnswer::message(message, None) }),
            Some("notifications/progress") => {
                self.0.push(message);
                None
            }
            Some(_) => None,
        }
    }
}
