//! Tools: what a model may call.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::access::Access;
use crate::content::Icon;
use crate::handler::Handler;
use crate::json_schema::{JsonSchema, JsonSchemaError};
use crate::limits::CallLimits;

/// Hints about what a tool does; clients must not trust them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// Changes nothing.
    pub read_only: Option<bool>,
    /// May destroy (matters when not read-only).
    pub destructive: Option<bool>,
    /// The same call again changes nothing more.
    pub idempotent: Option<bool>,
    /// Reaches beyond this server's data.
    pub open_world: Option<bool>,
}

/// A tool of the registry.
#[derive(Clone)]
pub struct Tool {
    /// 1 to 128 of letters, digits, `_`, `-`, `.`.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For the model: when to use it and what to use before it.
    pub description: Option<String>,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// What its arguments must be.
    pub input_schema: Arc<JsonSchema>,
    /// What its structured answer is.
    pub output_schema: Option<Arc<JsonSchema>>,
    /// Hints.
    pub annotations: Option<ToolAnnotations>,
    /// Further facts for clients that know them.
    pub meta: Map<String, Value>,
    /// What a caller must hold.
    pub access: Access,
    /// Bounds of its calls.
    pub limits: CallLimits,
    /// The code.
    pub handler: Arc<dyn Handler>,
}

impl Tool {
    /// A tool without arguments, open to everybody; the other methods add to it.
    pub fn new(name: impl Into<String>, description: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: Some(description.into()),
            icons: Vec::new(),
            input_schema: JsonSchema::empty_object(),
            output_schema: None,
            annotations: None,
            meta: Map::new(),
            access: Access::default(),
            limits: CallLimits::default(),
            handler,
        }
    }

    /// Sets the schema of its arguments (JSON Schema 2020-12, `type: object`).
    ///
    /// # Errors
    /// When it is no valid schema of an object.
    pub fn with_input_schema(mut self, schema: Value) -> Result<Self, JsonSchemaError> {
        self.input_schema = Arc::new(JsonSchema::object(schema)?);
        Ok(self)
    }

    /// Sets the schema of its structured answer.
    ///
    /// # Errors
    /// When it is no valid schema.
    pub fn with_output_schema(mut self, schema: Value) -> Result<Self, JsonSchemaError> {
        self.output_schema = Some(Arc::new(JsonSchema::new(schema)?));
        Ok(self)
    }

    /// Sets its title.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets its hints.
    #[must_use]
    pub fn with_annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// Sets what a caller must hold.
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the bounds of its calls.
    #[must_use]
    pub fn with_limits(mut self, limits: CallLimits) -> Self {
        self.limits = limits;
        self
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}
