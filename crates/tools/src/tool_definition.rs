//! What all built-in tools share: pieces of their input schemas and their hints.
//!
//! Every character here is paid for by every client in every conversation: a test bounds the
//! whole list.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_core::{Handler, JsonSchema, Tool, ToolAnnotations};

use tidegate_query::Delivery;

/// A tool that changes nothing. `properties` are the members of its arguments.
pub(crate) fn read_only_tool(
    name: &str,
    title: &str,
    description: &str,
    input: impl Into<Value>,
    handler: impl Handler,
) -> Tool {
    let hints = ToolAnnotations { read_only: Some(true), open_world: Some(false), ..ToolAnnotations::default() };
    built_in_tool(name, title, description, input, hints, handler)
}

/// A tool with hints of its own.
pub(crate) fn built_in_tool(
    name: &str,
    title: &str,
    description: &str,
    input: impl Into<Value>,
    hints: ToolAnnotations,
    handler: impl Handler,
) -> Tool {
    let mut tool = Tool::new(name, description, Arc::new(handler)).with_title(title).with_annotations(hints);
    tool.input_schema = Arc::new(built_in_schema(input.into()));
    tool
}

/// A schema that is a constant of ours.
pub(crate) fn built_in_schema(schema: Value) -> JsonSchema {
    // Each of them is built whenever the tools are registered, which every test does.
    #[allow(clippy::expect_used)]
    JsonSchema::object(schema).expect("a built-in schema is valid")
}

/// The arguments of a tool.
#[derive(Debug, Default)]
pub(crate) struct InputSchemaBuilder {
    properties: Map<String, Value>,
    required: Vec<&'static str>,
}

impl InputSchemaBuilder {
    /// No arguments yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds an argument.
    pub(crate) fn with(mut self, name: &str, schema: Value) -> Self {
        self.properties.insert(name.to_owned(), schema);
        self
    }

    /// Adds an argument that must be given.
    pub(crate) fn with_required(mut self, name: &'static str, schema: Value) -> Self {
        self.required.push(name);
        self.with(name, schema)
    }

    /// Adds the database.
    pub(crate) fn with_database(self) -> Self {
        self.with("database", json!({"type": "string"}))
    }

    /// Adds what says how the rows reach the caller.
    pub(crate) fn with_paging(self) -> Self {
        self.with("delivery", json!({"enum": Delivery::ALL.map(Delivery::name)}))
            .with("cursor", json!({"type": "string"}))
            .with("no_cache", json!({"type": "boolean"}))
    }

    /// Adds `parse_format` and `extract`. The formats' names stand in `query` and `sql`; a wrong one is
    /// answered with all of them.
    pub(crate) fn with_output_arguments(self) -> Self {
        self.with("format", json!({"type": "string"})).with("extract", json!({"type": "string"}))
    }
}

impl From<InputSchemaBuilder> for Value {
    fn from(input: InputSchemaBuilder) -> Self {
        let mut schema = json!({"type": "object", "properties": input.properties});
        if !input.required.is_empty() {
            schema["required"] = json!(input.required);
        }
        schema["additionalProperties"] = json!(false);
        schema
    }
}
