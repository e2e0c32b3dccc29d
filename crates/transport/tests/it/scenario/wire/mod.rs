//! How each transport transmits an MCP message to the server and its answer back.
//!
//! - `pipe`: lines over standard input and output, of the server itself or of a bridge to it.
//! - `http`: one POST per message. `sse`: POSTs and an event stream. `socket`: frames of a WebSocket.

pub(super) mod http;
pub(super) mod pipe;
pub(super) mod socket;
pub(super) mod sse;

use serde_json::Value;
use tidegate_mcp::Revision;

use super::mcp::McpAnswer;
use tidegate_testkit::message_checker::MessageChecker;

/// The MCP path of a toolset or of the whole server, followed by `last`.
fn path(through: Option<&str>, last: &str) -> String {
    format!("/mcp{}{last}", through.map(|toolset| format!("/{toolset}")).unwrap_or_default())
}

/// Registers that bytes which a client sends unchanged may be answered, under their id if they have one.
fn expect_answer(message_checker: &mut MessageChecker, bytes: &[u8]) {
    let id = serde_json::from_slice::<Value>(bytes).ok().and_then(|message| message.get("id").cloned());
    if let Some(id) = id.filter(|id| id.is_string() || id.is_number()) {
        let revision = message_checker.agreed.unwrap_or(Revision::V2026_07_28);
        message_checker.open.insert(id.to_string(), (String::new(), revision));
    }
}

/// Collects messages in their order, up to the first one that is not a notification.
#[derive(Debug, Default)]
struct AnswerCollector(Vec<Value>);

impl AnswerCollector {
    /// The collected answer, if `message` ends it. Notifications of changed lists belong to no request.
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
