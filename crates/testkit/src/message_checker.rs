//! Tracks the open requests of a client on a shared connection, and checks each received message against them.

use std::collections::HashMap;

use serde_json::{Value, json};
use tidegate_mcp::Revision;

use crate::schema::{check_notification, check_request, check_response};

/// The open requests of one client.
#[derive(Debug, Default)]
pub struct MessageChecker {
    /// The revision of a legacy handshake.
    pub agreed: Option<Revision>,
    /// Method and revision of each open request, by id.
    pub open: HashMap<String, (String, Revision)>,
    /// The declared capabilities of the client; `None` declares nothing.
    pub capabilities: Option<Value>,
}

impl MessageChecker {
    /// A request; a modern one if there was no handshake.
    pub fn request(&mut self, id: &Value, method: &str, mut params: Value) -> String {
        let revision = self.agreed.unwrap_or(Revision::V2026_07_28);
        if self.agreed.is_none() {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!(revision.name());
            meta["io.modelcontextprotocol/clientCapabilities"] = self.declared();
        }
        self.open.insert(id.to_string(), (method.to_owned(), revision));
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    }

    /// The handshake of `revision`.
    pub fn handshake(&mut self, revision: Revision) -> String {
        self.agreed = Some(revision);
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": revision.name(), "capabilities": self.declared(), "clientInfo": client});
        self.request(&json!("hello"), "initialize", params)
    }

    fn declared(&self) -> Value {
        self.capabilities.clone().unwrap_or_else(|| json!({}))
    }

    /// Checks a received message, or the messages of a batch.
    pub fn check(&mut self, message: &Value) {
        for message in message.as_array().map_or(std::slice::from_ref(message), Vec::as_slice) {
            self.check_one(message);
        }
    }

    fn check_one(&mut self, message: &Value) {
        let revision = self.agreed.unwrap_or(Revision::V2026_07_28);
        if message.get("method").is_some() && message.get("id").is_some() {
            return check_request(revision, message);
        }
        if message.get("method").is_some() {
            return check_notification(revision, message);
        }
        let (method, revision) = match &message["id"] {
            Value::Null => (String::new(), revision),
            id => self.open.remove(&id.to_string()).unwrap_or_else(|| panic!("unexpected response: {message}")),
        };
        check_response(revision, &method, message);
    }
}

/// Capabilities for all requests of a server.
pub fn all_capabilities() -> Option<Value> {
    Some(json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}))
}

/// Steps that request a name from the user.
pub fn elicitation_steps() -> Value {
    json!([["ask", {"who": {"form": "Who?"}}]])
}

/// The answer with `name` to the server request `id`.
pub fn elicitation_answer(id: &Value, name: &str) -> String {
    let result = json!({"action": "accept", "content": {"name": name}});
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

/// The params of a call of the tool `script`.
pub fn script(steps: &Value) -> Value {
    json!({"name": "script", "arguments": {"steps": steps}})
}

/// The text of the first block of a result.
pub fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// The code, id and message of a refusal.
pub fn error_summary(error: &Value) -> String {
    format!("{} for id {}: {}", error["error"]["code"], error["id"], error["error"]["message"].as_str().unwrap())
}

/// A message on a notification stream: its id and method, or that it is the result; an empty text for other messages.
pub fn notification_summary(message: &Value) -> String {
    let id = "io.modelcontextprotocol/subscriptionId";
    if let Some(stream) = message["result"]["_meta"].get(id) {
        assert_eq!(*stream, message["id"]);
        return format!("{stream} result");
    }
    let Some(stream) = message["params"]["_meta"].get(id) else { return String::new() };
    let method = message["method"].as_str().unwrap().strip_prefix("notifications/").unwrap();
    let uri = message["params"]["uri"].as_str().unwrap_or_default();
    format!("{stream} {method} {uri}").trim_end().to_owned()
}
