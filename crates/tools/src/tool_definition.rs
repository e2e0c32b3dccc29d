//! Shared parts of the built-in tools: input schemas, annotations and handlers.
//!
//! Every client sends these texts to its model in every conversation. A test bounds the size of the whole list.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use tidegate_core::{Access, AllowedNames, Error, JsonSchema};
use tidegate_query::Delivery;
use tidegate_runtime::{Answer, Handler, RunningCall, SnapshotBuilder, Tool, ToolAnnotations, handler_fn};

use crate::arguments::{SAVE_AS_DESCRIPTION, UNLISTED_ARGUMENTS};

pub(crate) fn read_only_tool(
    name: &str,
    title: &str,
    description: &str,
    input: impl Into<Value>,
    handler: Arc<dyn Handler>,
) -> Tool {
    let hints = ToolAnnotations { read_only: Some(true), open_world: Some(false), ..ToolAnnotations::default() };
    built_in_tool(name, title, description, input, hints, handler)
}

/// The hints of a tool that changes something on this node.
pub(crate) fn changing_hints(is_destructive: bool, is_idempotent: bool) -> ToolAnnotations {
    ToolAnnotations {
        read_only: Some(false),
        destructive: Some(is_destructive),
        idempotent: Some(is_idempotent),
        open_world: Some(false),
    }
}

/// Adds those of `tools` that `allowed` includes to `builder`. Each requires `access`.
pub(crate) fn add_tools(
    builder: SnapshotBuilder,
    tools: impl IntoIterator<Item = Tool>,
    access: &Access,
    allowed: &AllowedNames,
) -> SnapshotBuilder {
    let tools = tools.into_iter().filter(|tool| allowed.includes(&tool.name));
    tools.map(|tool| tool.with_access(access.clone())).fold(builder, SnapshotBuilder::tool)
}

pub(crate) fn built_in_tool(
    name: &str,
    title: &str,
    description: &str,
    input: impl Into<Value>,
    hints: ToolAnnotations,
    handler: Arc<dyn Handler>,
) -> Tool {
    let mut tool = Tool::new(name, description, handler).with_title(title).with_annotations(hints);
    tool.input_schema = Arc::new(built_in_schema(input.into()));
    // Every built-in schema is built at registration, which every test does.
    #[allow(clippy::expect_used)]
    tool.with_unlisted_arguments(&UNLISTED_ARGUMENTS).expect("a part of a valid schema is valid")
}

/// The handler that runs `function` with `context`.
pub(crate) fn context_handler<C, F, Fut>(context: &Arc<C>, function: F) -> Arc<dyn Handler>
where
    C: Send + Sync + 'static,
    F: Fn(Arc<C>, RunningCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Answer, Error>> + Send + 'static,
{
    let context = context.clone();
    handler_fn(move |call| function(context.clone(), call))
}

pub(crate) fn built_in_schema(schema: Value) -> JsonSchema {
    // Every built-in schema is built at registration, which every test does.
    #[allow(clippy::expect_used)]
    JsonSchema::object(schema).expect("a built-in schema is valid")
}

/// The schema of a value of one of `types`, with `description` unless it is empty. It is in the first alternative, because
/// some clients refuse it beside them, as they refuse a list of types.
pub(crate) fn any_of(types: &[&str], description: &str) -> Value {
    let mut alternatives: Vec<Value> = types.iter().map(|name| json!({"type": name})).collect();
    if let (Some(first), false) = (alternatives.first_mut(), description.is_empty()) {
        first["description"] = description.into();
    }
    json!({"anyOf": alternatives})
}

/// The schema of a list of values of parameters.
pub(crate) fn values_schema() -> Value {
    json!({"type": "array", "items": any_of(&["string", "number", "boolean", "null"], "")})
}

#[derive(Debug, Default)]
pub(crate) struct InputSchemaBuilder {
    properties: Map<String, Value>,
    required: Vec<&'static str>,
}

impl InputSchemaBuilder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with(mut self, name: &str, schema: Value) -> Self {
        self.properties.insert(name.to_owned(), schema);
        self
    }

    pub(crate) fn with_required(mut self, name: &'static str, schema: Value) -> Self {
        self.required.push(name);
        self.with(name, schema)
    }

    pub(crate) fn with_database(self) -> Self {
        self.with("database", json!({"type": "string"}))
    }

    pub(crate) fn with_paging(self) -> Self {
        self.with("delivery", json!({"type": "string", "enum": Delivery::ALL.map(Delivery::name)}))
            .with("save_as", json!({"type": "string", "description": SAVE_AS_DESCRIPTION}))
            .with("cursor", json!({"type": "string"}))
            .with("no_cache", json!({"type": "boolean"}))
    }

    /// Adds `format` and `extract`. Only `query` lists the formats; an invalid one is answered with all.
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
