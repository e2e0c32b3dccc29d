//! Encodes the entries of lists: tools, prompts, resources and resource templates.
//!
//! [MCP 2026-07-28, Tool](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool),
//! [Prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts),
//! [Resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources)

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{Icon, JsonSchema};
use tidegate_runtime::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool, ToolAnnotations};

use super::content::encode_annotations;
use super::{object, text};
use crate::revision::{Dialect, Revision};

/// A tool in the encoding of the newest revision, for other adapters.
pub fn tool_json(tool: &Tool) -> Value {
    encode_tool(tool, Revision::V2026_07_28.dialect())
}

pub(crate) fn encode_tool(tool: &Tool, dialect: &Dialect) -> Value {
    let has_output_schema = |schema: &&Arc<JsonSchema>| {
        let is_object = schema.json().get("type").and_then(Value::as_str) == Some("object");
        dialect.titles && (is_object || dialect.structured_content_is_any_value)
    };
    object([
        ("name", text(Some(&tool.name))),
        ("title", text(tool.title.as_ref().filter(|_| dialect.titles))),
        ("description", text(tool.description.as_ref())),
        ("icons", encode_icons(&tool.icons, dialect)),
        ("inputSchema", Some(tool.input_schema.json().clone())),
        ("outputSchema", tool.output_schema.as_ref().filter(has_output_schema).map(|schema| schema.json().clone())),
        ("annotations", tool.annotations.as_ref().filter(|_| dialect.annotations).map(encode_tool_annotations)),
        ("_meta", encode_meta(&tool.meta, dialect)),
    ])
}

fn encode_tool_annotations(annotations: &ToolAnnotations) -> Value {
    object([
        ("readOnlyHint", annotations.read_only.map(Value::from)),
        ("destructiveHint", annotations.destructive.map(Value::from)),
        ("idempotentHint", annotations.idempotent.map(Value::from)),
        ("openWorldHint", annotations.open_world.map(Value::from)),
    ])
}

pub(crate) fn encode_prompt(prompt: &Prompt, dialect: &Dialect) -> Value {
    let encode_argument = |argument: &PromptArgument| {
        object([
            ("name", text(Some(&argument.name))),
            ("title", text(argument.title.as_ref().filter(|_| dialect.titles))),
            ("description", text(argument.description.as_ref())),
            ("required", Some(argument.required.into())),
        ])
    };
    object([
        ("name", text(Some(&prompt.name))),
        ("title", text(prompt.title.as_ref().filter(|_| dialect.titles))),
        ("description", text(prompt.description.as_ref())),
        ("icons", encode_icons(&prompt.icons, dialect)),
        ("arguments", Some(prompt.arguments.iter().map(encode_argument).collect())),
        ("_meta", encode_meta(&prompt.meta, dialect)),
    ])
}

pub(crate) fn encode_resource(resource: &Resource, dialect: &Dialect) -> Value {
    object([
        ("uri", text(Some(&resource.uri))),
        ("name", text(Some(&resource.name))),
        ("title", text(resource.title.as_ref().filter(|_| dialect.titles))),
        ("description", text(resource.description.as_ref())),
        ("mimeType", text(resource.mime_type.as_ref())),
        ("annotations", resource.annotations.as_ref().map(encode_annotations)),
        ("icons", encode_icons(&resource.icons, dialect)),
        ("size", resource.size_bytes.map(Value::from)),
        ("_meta", encode_meta(&resource.meta, dialect)),
    ])
}

pub(crate) fn encode_resource_template(template: &ResourceTemplate, dialect: &Dialect) -> Value {
    object([
        ("uriTemplate", Some(template.template.as_str().into())),
        ("name", text(Some(&template.name))),
        ("title", text(template.title.as_ref().filter(|_| dialect.titles))),
        ("description", text(template.description.as_ref())),
        ("mimeType", text(template.mime_type.as_ref())),
        ("annotations", template.annotations.as_ref().map(encode_annotations)),
        ("icons", encode_icons(&template.icons, dialect)),
        ("_meta", encode_meta(&template.meta, dialect)),
    ])
}

/// `_meta`, for revisions in which entries have it.
fn encode_meta(meta: &Map<String, Value>, dialect: &Dialect) -> Option<Value> {
    (dialect.titles && !meta.is_empty()).then(|| Value::Object(meta.clone()))
}

/// [Icons](https://modelcontextprotocol.io/specification/2026-07-28/basic#icons)
fn encode_icons(icons: &[Icon], dialect: &Dialect) -> Option<Value> {
    let encode_icon = |icon: &Icon| {
        object([
            ("src", text(Some(&icon.src))),
            ("mimeType", text(icon.mime_type.as_ref())),
            ("sizes", (!icon.sizes.is_empty()).then(|| icon.sizes.clone().into())),
        ])
    };
    (dialect.icons && !icons.is_empty()).then(|| icons.iter().map(encode_icon).collect())
}
