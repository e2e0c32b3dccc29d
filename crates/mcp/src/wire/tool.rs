//! A tool of `tools/list`.
//!
//! [MCP 2026-07-28, Tool](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool)

use serde_json::{Map, Value};
use tidegate_core::{Tool, ToolAnnotations};

use super::{icons, meta, put};
use crate::revision::Dialect;

/// The tool as the revision knows it.
pub(crate) fn tool(tool: &Tool, dialect: &Dialect) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), tool.name.clone().into());
    if dialect.titles {
        put(&mut object, "title", tool.title.clone());
    }
    put(&mut object, "description", tool.description.clone());
    if dialect.icons && !tool.icons.is_empty() {
        object.insert("icons".to_owned(), icons(&tool.icons));
    }
    object.insert("inputSchema".to_owned(), tool.input_schema.json().clone());
    if let Some(schema) = tool.output_schema.as_ref().filter(|schema| {
        let is_object = schema.json().get("type").and_then(Value::as_str) == Some("object");
        dialect.titles && (is_object || dialect.structured_content_is_any_value)
    }) {
        object.insert("outputSchema".to_owned(), schema.json().clone());
    }
    if let Some(hints) = tool.annotations.as_ref().filter(|_| dialect.annotations) {
        object.insert("annotations".to_owned(), tool_annotations(hints));
    }
    meta(&mut object, &tool.meta, dialect);
    Value::Object(object)
}

fn tool_annotations(hints: &ToolAnnotations) -> Value {
    let mut object = Map::new();
    put(&mut object, "readOnlyHint", hints.read_only);
    put(&mut object, "destructiveHint", hints.destructive);
    put(&mut object, "idempotentHint", hints.idempotent);
    put(&mut object, "openWorldHint", hints.open_world);
    Value::Object(object)
}
