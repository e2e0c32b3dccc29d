//! Content blocks (`ContentBlock`), resource contents and prompt messages.
//!
//! [MCP 2026-07-28, Tool Result](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result)

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tidegate_core::{Annotations, Content, ContentRole, ResourceBody, ResourceContents, ResourceLink};

use super::{object, text};
use crate::revision::{Dialect, Revision};

/// A content block in the encoding of the newest revision, for other adapters.
pub fn content_json(content: &Content) -> Value {
    encode_content(content, Revision::V2026_07_28.dialect())
}

/// One content block. If the revision does not have its type, a text that describes it.
pub(crate) fn encode_content(content: &Content, dialect: &Dialect) -> Value {
    match content {
        Content::Text { text, annotations } => object([
            ("type", Some("text".into())),
            ("text", Some(text.as_str().into())),
            ("annotations", annotations.as_ref().map(encode_annotations)),
        ]),
        Content::Image { data, mime_type } => {
            json!({"type": "image", "data": STANDARD.encode(data), "mimeType": mime_type})
        }
        Content::Audio { data, mime_type } if dialect.annotations => {
            json!({"type": "audio", "data": STANDARD.encode(data), "mimeType": mime_type})
        }
        Content::Audio { data, mime_type } => {
            json!({"type": "text", "text": format!("[{} bytes of {mime_type}]", data.len())})
        }
        Content::Link(link) if dialect.titles => encode_resource_link(link),
        Content::Link(link) => json!({"type": "text", "text": format!("{}: {}", link.name, link.uri)}),
        Content::Resource(contents) => json!({"type": "resource", "resource": encode_resource_contents(contents)}),
    }
}

fn encode_resource_link(link: &ResourceLink) -> Value {
    object([
        ("type", Some("resource_link".into())),
        ("uri", text(Some(&link.uri))),
        ("name", text(Some(&link.name))),
        ("title", text(link.title.as_ref())),
        ("description", text(link.description.as_ref())),
        ("mimeType", text(link.mime_type.as_ref())),
        ("size", link.size_bytes.map(Value::from)),
    ])
}

/// The contents of a resource, read or embedded.
pub(crate) fn encode_resource_contents(contents: &ResourceContents) -> Value {
    let body = match &contents.body {
        ResourceBody::Text(text) => ("text", Some(text.as_str().into())),
        ResourceBody::Blob(bytes) => ("blob", Some(STANDARD.encode(bytes).into())),
    };
    object([("uri", text(Some(&contents.uri))), ("mimeType", text(contents.mime_type.as_ref())), body])
}

pub(crate) fn encode_prompt_message(role: ContentRole, content: &Content, dialect: &Dialect) -> Value {
    json!({"role": role_name(role), "content": encode_content(content, dialect)})
}

/// [Annotations](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#annotations)
pub(super) fn encode_annotations(annotations: &Annotations) -> Value {
    let audience = annotations.audience.iter().copied().map(role_name);
    object([
        ("audience", (!annotations.audience.is_empty()).then(|| audience.collect())),
        ("priority", annotations.priority.map(Value::from)),
        ("lastModified", text(annotations.last_modified.as_ref())),
    ])
}

fn role_name(role: ContentRole) -> &'static str {
    match role {
        ContentRole::User => "user",
        ContentRole::Assistant => "assistant",
    }
}
