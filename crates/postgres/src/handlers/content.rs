//! Content as handlers write it, which is as MCP has it on the wire.
//!
//! [MCP 2026-07-28, Tool Result](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result)

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use tidegate_core::{Annotations, Content, ContentRole, Icon, ResourceBody, ResourceContents, ResourceLink};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
        annotations: Option<Value>,
    },
    Image {
        data: String,
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    Audio {
        data: String,
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    ResourceLink(Link),
    Resource {
        resource: Value,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Link {
    uri: String,
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    size: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Contents {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

/// A block of content.
///
/// # Errors
/// What is wrong with it, for the log.
pub(crate) fn parse_content(block: Value) -> Result<Content, String> {
    let block = Block::deserialize(block).map_err(|error| format!("a block of its content is none: {error}"))?;
    Ok(match block {
        Block::Text { text, annotations: hints } => {
            Content::Text { text, annotations: hints.as_ref().map(parse_annotations) }
        }
        Block::Image { data, mime_type } => Content::Image { data: decode_base64(&data)?, mime_type },
        Block::Audio { data, mime_type } => Content::Audio { data: decode_base64(&data)?, mime_type },
        Block::ResourceLink(Link { uri, name, title, description, mime_type, size }) => {
            Content::Link(ResourceLink { uri, name, title, description, mime_type, size_bytes: size })
        }
        Block::Resource { resource } => Content::Resource(parse_resource_contents(resource)?),
    })
}

/// The contents of a resource.
///
/// # Errors
/// What is wrong with them, for the log.
pub(crate) fn parse_resource_contents(one: Value) -> Result<ResourceContents, String> {
    let one = Contents::deserialize(one).map_err(|error| format!("its contents of a resource are none: {error}"))?;
    let body = match (one.text, one.blob) {
        (Some(text), None) => ResourceBody::Text(text),
        (None, Some(blob)) => ResourceBody::Blob(decode_base64(&blob)?),
        _ => return Err("its contents of a resource must have either text or blob".to_owned()),
    };
    Ok(ResourceContents { uri: one.uri, mime_type: one.mime_type, body })
}

/// Hints, of which what cannot be understood is left out.
pub(crate) fn parse_annotations(hints: &Value) -> Annotations {
    let role = |role: &Value| match role.as_str() {
        Some("user") => Some(ContentRole::User),
        Some("assistant") => Some(ContentRole::Assistant),
        _ => None,
    };
    Annotations {
        audience: hints.get("audience").and_then(Value::as_array).into_iter().flatten().filter_map(role).collect(),
        priority: hints.get("priority").and_then(Value::as_f64),
        last_modified: hints.get("lastModified").and_then(Value::as_str).map(str::to_owned),
    }
}

/// Pictures, of which those without a source are left out.
pub(crate) fn parse_icons(icons: Option<&Value>) -> Vec<Icon> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let icon = |icon: &Value| {
        let sizes = icon.get("sizes").and_then(Value::as_array).into_iter().flatten();
        let sizes = sizes.filter_map(|size| size.as_str().map(str::to_owned)).collect();
        Some(Icon { src: text(icon.get("src"))?, mime_type: text(icon.get("mimeType")), sizes })
    };
    icons.and_then(Value::as_array).into_iter().flatten().filter_map(icon).collect()
}

/// PostgreSQL breaks its base64 into lines.
fn decode_base64(text: &str) -> Result<Bytes, String> {
    let unbroken: String = text.chars().filter(|one| !one.is_ascii_whitespace()).collect();
    STANDARD.decode(unbroken).map(Bytes::from).map_err(|error| format!("data of its content is no base64: {error}"))
}
