//! Requests of clients of each era.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tidegate_mcp::Revision;

use super::wire;

const BOTH: &str = "application/json, text/event-stream";

/// One POST, header by header.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) method: String,
    pub(crate) revision: Revision,
}

impl Post {
    /// A request without a revision.
    pub(crate) fn message(method: &str, params: Value) -> Self {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        Self { method: method.to_owned(), ..Self::raw(body.to_string()) }
    }

    /// A modern request with its mirrored headers.
    pub(crate) fn modern(method: &str, params: Value) -> Self {
        Self::modern_of(json!({}), method, params)
    }

    /// The same for a client that declares `capabilities`.
    pub(crate) fn modern_of(capabilities: Value, method: &str, mut params: Value) -> Self {
        let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        let post = Self::message(method, params.clone())
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", method)
            .in_revision(Revision::V2026_07_28);
        let name = params.get(if method == "resources/read" { "uri" } else { "name" }).and_then(Value::as_str);
        match name {
            Some(name) if name.is_ascii() => post.with("Mcp-Name", name),
            Some(name) => post.with("Mcp-Name", &format!("=?base64?{}?=", STANDARD.encode(name))),
            None => post,
        }
    }

    /// A modern call of the tool `script`.
    pub(crate) fn script(steps: Value) -> Self {
        Self::modern("tools/call", json!({"name": "script", "arguments": {"steps": steps}}))
    }

    /// The same for a client that requests progress.
    pub(crate) fn script_with_progress(steps: Value) -> Self {
        let meta = json!({"progressToken": "p"});
        Self::modern("tools/call", json!({"name": "script", "arguments": {"steps": steps}, "_meta": meta}))
    }

    /// A notification.
    pub(crate) fn notification(method: &str, params: Value) -> Self {
        Self::raw(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
    }

    /// A body of arbitrary bytes.
    pub(crate) fn raw(body: impl Into<Vec<u8>>) -> Self {
        let headers = [("Content-Type", "application/json"), ("Accept", BOTH)];
        Self {
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            body: body.into(),
            method: String::new(),
            revision: Revision::NEWEST_LEGACY,
        }
    }

    pub(crate) fn in_revision(self, revision: Revision) -> Self {
        Self { revision, ..self }
    }

    /// Adds a header.
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces the headers of this name.
    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(name));
        self
    }

    /// The same request with another id.
    pub(crate) fn of_id(mut self, id: usize) -> Self {
        let text = String::from_utf8(self.body).unwrap();
        self.body = text.replace("\"id\":1,", &format!("\"id\":{id},")).into();
        self
    }

    /// The same headers without a body.
    pub(crate) fn without_body(&self) -> Self {
        Self { body: Vec::new(), ..self.clone() }
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        wire::request("POST", "/mcp", &self.headers().collect::<Vec<_>>(), &self.body)
    }
}
