//! Parses content that handlers return; it has the format of MCP.
//!
//! [MCP 2026-07-28, Tool Result](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result)

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
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
    /// `Some(None)` for null.
    #[serde(default, deserialize_with = "deserialize_present")]
    text: Option<Option<String>>,
    blob: Option<String>,
}

fn deserialize_present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// Parses a content block. The error is for the log.
pub(crate) fn parse_content(block: Value) -> Result<Content, String> {
    let block = Block::deserialize(block).map_err(|error| format!("a content block is invalid: {error}"))?;
    Ok(match block {
        Block::Text { text, annotations } => {
            Content::Text { text, annotations: annotations.as_ref().map(parse_annotations) }
        }
        Block::Image { data, mime_type } => Content::Image { data: decode_base64(&data)?, mime_type },
        Block::Audio { data, mime_type } => Content::Audio { data: decode_base64(&data)?, mime_type },
        Block::ResourceLink(Link { uri, name, title, description, mime_type, size }) => {
            Content::Link(ResourceLink { uri, name, title, description, mime_type, size_bytes: size })
        }
        Block::Resource { resource } => Content::Resource(parse_resource_contents(resource)?),
    })
}

/// Parses the contents of a resource. The error is for the log.
pub(crate) fn parse_resource_contents(contents: Value) -> Result<ResourceContents, String> {
    let contents =
        Contents::deserialize(contents).map_err(|error| format!("its resource contents are invalid: {error}"))?;
    let body = match (contents.text, contents.blob) {
        // A text that is NULL in SQL is empty, as in `mcp_text`.
        (Some(text), None) => ResourceBody::Text(text.unwrap_or_default()),
        (None | Some(None), Some(blob)) => ResourceBody::Blob(decode_base64(&blob)?),
        _ => return Err("its resource contents must have either text or blob".to_owned()),
    };
    Ok(ResourceContents { uri: contents.uri, mime_type: contents.mime_type, body })
}

/// Parses annotations; ignores invalid members.
pub(crate) fn parse_annotations(annotations: &Value) -> Annotations {
    let role = |role: &Value| match role.as_str() {
        Some("user") => Some(ContentRole::User),
        Some("assistant") => Some(ContentRole::Assistant),
        _ => None,
    };
    Annotations {
        audience: annotations
            .get("audience")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(role)
            .collect(),
        priority: annotations.get("priority").and_then(Value::as_f64),
        last_modified: annotations.get("lastModified").and_then(Value::as_str).map(str::to_owned),
    }
}

/// Parses icons; ignores those without a source.
pub(crate) fn parse_icons(icons: Option<&Value>) -> Vec<Icon> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let icon = |icon: &Value| {
        let sizes = icon.get("sizes").and_then(Value::as_array).into_iter().flatten();
        let sizes = sizes.filter_map(|size| size.as_str().map(str::to_owned)).collect();
        Some(Icon { src: text(icon.get("src"))?, mime_type: text(icon.get("mimeType")), sizes })
    };
    icons.and_then(Value::as_array).into_iter().flatten().filter_map(icon).collect()
}

/// Decodes base64; PostgreSQL's base64 contains line breaks.
fn decode_base64(text: &str) -> Result<Bytes, String> {
    let unbroken: String = text.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    STANDARD
        .decode(unbroken)
        .map(Bytes::from)
        .map_err(|error| format!("data in its content is not valid base64: {error}"))
}
