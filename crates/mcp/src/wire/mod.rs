//! Encodes the types of MCP, one module per type. Members that a revision does not have are left out.

mod capabilities;
mod content;
mod input;
mod latest;
mod notification;
mod prompt;
mod resource;
mod server_description;
mod tool;

pub(crate) use capabilities::encode_server_capabilities;
pub(crate) use content::{encode_content, encode_resource_contents};
pub(crate) use input::{
    encode_client_capabilities, encode_input_request, encode_input_requests, parse_client_capabilities,
    parse_input_answer,
};
pub use latest::{content_json, tool_json};
pub(crate) use notification::{
    ListKind, encode_acknowledgement, encode_list_changed, encode_notification, encode_resource_updated,
    encode_server_request, encode_task_status,
};
pub(crate) use prompt::{encode_prompt, encode_prompt_message};
pub(crate) use resource::{encode_resource, encode_resource_template};
pub use server_description::ServerDescription;
pub(crate) use server_description::encode_implementation;
pub(crate) use tool::encode_tool;

use serde_json::{Map, Value};
use tidegate_core::{Annotations, ContentRole, Icon};

use crate::revision::Dialect;

/// Inserts `key` if there is a value.
fn insert_some(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

/// Inserts `_meta` for revisions that have it.
fn insert_meta(object: &mut Map<String, Value>, meta: &Map<String, Value>, dialect: &Dialect) {
    if dialect.titles && !meta.is_empty() {
        object.insert("_meta".to_owned(), Value::Object(meta.clone()));
    }
}

/// [Annotations](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#annotations)
fn encode_annotations(annotations: &Annotations) -> Value {
    let mut object = Map::new();
    if !annotations.audience.is_empty() {
        object.insert("audience".to_owned(), annotations.audience.iter().copied().map(encode_role).collect());
    }
    insert_some(&mut object, "priority", annotations.priority);
    insert_some(&mut object, "lastModified", annotations.last_modified.clone());
    Value::Object(object)
}

/// [Icons](https://modelcontextprotocol.io/specification/2026-07-28/basic#icons)
fn encode_icons(icons: &[Icon]) -> Value {
    icons
        .iter()
        .map(|icon| {
            let mut object = Map::new();
            object.insert("src".to_owned(), icon.src.clone().into());
            insert_some(&mut object, "mimeType", icon.mime_type.clone());
            insert_some(&mut object, "sizes", (!icon.sizes.is_empty()).then(|| icon.sizes.clone()));
            Value::Object(object)
        })
        .collect()
}

fn encode_role(role: ContentRole) -> Value {
    match role {
        ContentRole::User => "user".into(),
        ContentRole::Assistant => "assistant".into(),
    }
}
