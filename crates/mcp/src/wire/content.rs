//! Content blocks (`ContentBlock`) and resource contents.
//!
//! [MCP 2026-07-28, Tool Result](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result)

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tidegate_core::{Content, ResourceBody, ResourceContents, ResourceLink};

use super::{encode_annotations, insert_some};
use crate::revision::Dialect;

/// One content block. If the revision does not have its type, a text that describes it.
pub(crate) fn encode_content(content: &Content, dialect: &Dialect) -> Value {
    match content {
        Content::Text { text, annotations: hints } => {
            let mut block = json!({"type": "text", "text": text});
            if let Some(hints) = hints {
                block["annotations"] = encode_annotations(hints);
            }
            block
        }
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
    let mut block = Map::new();
    block.insert("type".to_owned(), "resource_link".into());
    block.insert("uri".to_owned(), link.uri.clone().into());
    block.insert("name".to_owned(), link.name.clone().into());
    insert_some(&mut block, "title", link.title.clone());
    insert_some(&mut block, "description", link.description.clone());
    insert_some(&mut block, "mimeType", link.mime_type.clone());
    insert_some(&mut block, "size", link.size_bytes);
    Value::Object(block)
}

/// The contents of a resource, read or embedded.
pub(crate) fn encode_resource_contents(contents: &ResourceContents) -> Value {
    let mut object = Map::new();
    object.insert("uri".to_owned(), contents.uri.clone().into());
    insert_some(&mut object, "mimeType", contents.mime_type.clone());
    match &contents.body {
        ResourceBody::Text(text) => object.insert("text".to_owned(), text.clone().into()),
        ResourceBody::Blob(bytes) => object.insert("blob".to_owned(), STANDARD.encode(bytes).into()),
    };
    Value::Object(object)
}
