//! The capabilities of the server (`ServerCapabilities`).

use serde_json::{Value, json};

use super::input::TASKS_EXTENSION;
use crate::revision::Dialect;

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
