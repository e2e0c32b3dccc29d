//! What the server can do (`ServerCapabilities`).

use serde_json::{Value, json};

use super::input::TASKS_EXTENSION;
use crate::revision::Dialect;

/// The server's capabilities. Changes are announced to legacy sessions; a modern client would
/// subscribe to them, which we do not offer yet.
pub(crate) fn server_capabilities(dialect: &Dialect) -> Value {
    let announces = !dialect.stateless;
    let list = || if announces { json!({"listChanged": true}) } else { json!({}) };
    let mut capabilities = json!({"tools": list(), "resources": list(), "prompts": list(), "logging": {}});
    if announces {
        capabilities["resources"]["subscribe"] = true.into();
    }
    if dialect.stateless {
        capabilities["extensions"] = json!({TASKS_EXTENSION: {}});
    }
    if dialect.annotations {
        capabilities["completions"] = json!({});
    }
    capabilities
}
