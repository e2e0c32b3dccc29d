//! The nouns of MCP as they stand on the wire, one a file. What a revision does not know is left out.

mod about;
mod capabilities;
mod content;
mod input;
mod newest;
mod notification;
mod prompt;
mod resource;
mod tool;

pub use about::About;
pub(crate) use about::implementation;
pub(crate) use capabilities::server_capabilities;
pub(crate) use content::{content_block, resource_contents};
pub(crate) use input::{abilities, client_capabilities, input_answer, input_request, input_requests};
pub use newest::{content_json, tool_json};
pub(crate) use notification::{ListKind, acknowledged, list_changed, notice, request, resource_updated, task_changed};
pub(crate) use prompt::{prompt, prompt_message};
pub(crate) use resource::{resource, resource_template};
pub(crate) use tool::tool;

use serde_json::{Map, Value};
use tidegate_core::{Annotations, Icon, Role};

use crate::revision::Dialect;

/// Adds `key` unless there is no value.
fn put(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

/// Further facts, to revisions that keep a place for them.
fn meta(object: &mut Map<String, Value>, meta: &Map<String, Value>, dialect: &Dialect) {
    if dialect.titles && !meta.is_empty() {
        object.insert("_meta".to_owned(), Value::Object(meta.clone()));
    }
}

/// [Annotations](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#annotations)
fn annotations(annotations: &Annotations) -> Value {
    let mut object = Map::new();
    if !annotations.audience.is_empty() {
        object.insert("audience".to_owned(), annotations.audience.iter().copied().map(role).collect());
    }
    put(&mut object, "priority", annotations.priority);
    put(&mut object, "lastModified", annotations.last_modified.clone());
    Value::Object(object)
}

/// [Icons](https://modelcontextprotocol.io/specification/2026-07-28/basic#icons)
fn icons(icons: &[Icon]) -> Value {
    icons
        .iter()
        .map(|icon| {
            let mut object = Map::new();
            object.insert("src".to_owned(), icon.src.clone().into());
            put(&mut object, "mimeType", icon.mime_type.clone());
            put(&mut object, "sizes", (!icon.sizes.is_empty()).then(|| icon.sizes.clone()));
            Value::Object(object)
        })
        .collect()
}

fn role(role: Role) -> Value {
    match role {
        Role::User => "user".into(),
        Role::Assistant => "assistant".into(),
    }
}
