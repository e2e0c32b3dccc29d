//! Encodes a tool of `tools/list`.
//!
//! [MCP 2026-07-28, Tool](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool)

use serde_json::{Map, Value};
use tidegate_runtime::{Tool, ToolAnnotations};

use super::{encode_icons, insert_meta, insert_some};
use crate::revision::Dialect;

/// The tool in the encoding of the revision.
pub(crate) fn encode_tool(tool: &Tool, dialect: &Dialect) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), tool.name.clone().into());
    if dialect.titles {
        insert_some(&mut object, "title", tool.title.clone());
    }
    insert_some(&mut object, "description", tool.description.clone());
    if dialect.icons && !tool.icons.is_empty() {
        object.insert("icons".to_owned(), encode_icons(&tool.icons));
    }
    object.insert("inputSchema".to_owned(), tool.input_schema.json().clone());
    if let Some(schema) = tool.output_schema.as_ref().filter(|schema| {
        let is_object = schema.json().get("type").and_then(Value::as_str) == Some("object");
        dialect.titles && (is_object || dialect.structured_content_is_any_value)
    }) {
        object.insert("outputSchema".to_owned(), schema.json().clone());
    }
    if let Some(hints) = tool.annotations.as_ref().filter(|_| dialect.annotations) {
        object.insert("annotations".to_owned(), encode_tool_annotations(hints));
    }
    insert_meta(&mut object, &tool.meta, dialect);
    Value::Object(object)
}

fn encode_tool_annotations(hints: &ToolAnnotations) -> Value {
    let mut object = Map::new();
    insert_some(&mut object, "readOnlyHint", hints.read_only);
    insert_some(&mut object, "destructiveHint", hints.destructive);
    insert_some(&mut object, "idempotentHint", hints.idempotent);
    insert_some(&mut object, "openWorldHint", hints.open_world);
    Value::Object(object)
}
