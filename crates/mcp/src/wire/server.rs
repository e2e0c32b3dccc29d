//! The identity of the server (`Implementation`) and its capabilities (`ServerCapabilities`).
//!
//! [MCP 2026-07-28, `server/discover`](https://modelcontextprotocol.io/specification/2026-07-28/server/discover)

use serde_json::{Value, json};

use super::input::TASKS_EXTENSION;
use super::{object, text};
use crate::revision::Dialect;

/// The identity of the server, and its instructions for models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDescription {
    /// The name for programs.
    pub name: String,
    /// The title for people.
    pub title: Option<String>,
    /// The version of the software.
    pub version: String,
    /// Short instructions for models.
    pub instructions: Option<String>,
}

pub(crate) fn encode_implementation(description: &ServerDescription, dialect: &Dialect) -> Value {
    object([
        ("name", text(Some(&description.name))),
        ("title", text(description.title.as_ref().filter(|_| dialect.titles))),
        ("version", text(Some(&description.version))),
    ])
}

/// The server's capabilities. Changes are announced in every revision: to legacy sessions, and to modern clients with a
/// subscription.
pub(crate) fn encode_server_capabilities(dialect: &Dialect) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "prompts": {"listChanged": true},
        "logging": {},
    });
    if dialect.stateless {
        capabilities["extensions"] = json!({TASKS_EXTENSION: {}});
    }
    if dialect.annotations {
        capabilities["completions"] = json!({});
    }
    capabilities
}
