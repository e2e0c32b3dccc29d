//! Tools: entries that a model can call.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{Access, CallLimits, Icon, JsonSchema, JsonSchemaError};

use crate::handler::Handler;
use crate::resource::CacheHint;

/// Hints on what a tool does. Clients must not trust them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy data; has a meaning only for tools that are not read-only.
    pub destructive: Option<bool>,
    /// Repeating the same call changes nothing more.
    pub idempotent: Option<bool>,
    /// It accesses more than this server's data.
    pub open_world: Option<bool>,
}

/// The bodies of requests that a tool takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestBodyTypes {
    /// The media types, without parameters, in lower case.
    pub media_types: &'static [&'static str],
    /// The content codings, in lower case.
    pub codings: &'static [&'static str],
}

impl RequestBodyTypes {
    /// Whether a body with this value of `Content-Type` is taken.
    pub fn takes_media_type(&self, content_type: &str) -> bool {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        self.media_types.iter().any(|taken| media_type.eq_ignore_ascii_case(taken))
    }

    /// Whether a body with this value of `Content-Encoding` is taken.
    pub fn takes_coding(&self, coding: &str) -> bool {
        self.codings.iter().any(|taken| coding.trim().eq_ignore_ascii_case(taken))
    }
}

/// A tool of the registry.
#[derive(Clone)]
pub struct Tool {
    /// The name: 1 to 128 letters, digits, `_`, `-`, `.`.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// A description for the model: when to use it, and what to call first.
    pub description: Option<String>,
    /// Icons.
    pub icons: Vec<Icon>,
    /// The schema of its arguments, as it is listed.
    pub input_schema: Arc<JsonSchema>,
    /// The schema of all its arguments, if lists leave some out.
    pub full_schema: Option<Arc<JsonSchema>>,
    /// The bodies of requests that it takes instead of arguments; `None` for none.
    pub request_body: Option<RequestBodyTypes>,
    /// The schema of its structured answer.
    pub output_schema: Option<Arc<JsonSchema>>,
    /// Hints on what it does.
    pub annotations: Option<ToolAnnotations>,
    /// Further members of `_meta`.
    pub meta: Map<String, Value>,
    /// What it requires of a caller.
    pub access: Access,
    /// The limits of its calls.
    pub limits: CallLimits,
    /// How long clients may cache an answer; not stated without it.
    pub cache: Option<CacheHint>,
    /// The handler.
    pub handler: Arc<dyn Handler>,
}

impl Tool {
    /// A tool without arguments, open to all callers. The other methods add to it.
    pub fn new(name: impl Into<String>, description: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: Some(description.into()),
            icons: Vec::new(),
            input_schema: JsonSchema::empty_object(),
            full_schema: None,
            request_body: None,
            output_schema: None,
            annotations: None,
            meta: Map::new(),
            access: Access::default(),
            limits: CallLimits::default(),
            cache: None,
            handler,
        }
    }

    /// Sets the schema of its arguments (JSON Schema 2020-12, `type: object`).
    ///
    /// # Errors
    /// If it is not a valid schema of an object.
    pub fn with_input_schema(mut self, schema: Value) -> Result<Self, JsonSchemaError> {
        self.input_schema = Arc::new(JsonSchema::object(schema)?);
        Ok(self)
    }

    /// Leaves the arguments `names` out of lists. Calls may still have them.
    ///
    /// # Errors
    /// If the other arguments are not a valid schema.
    pub fn with_unlisted_arguments(mut self, names: &[&str]) -> Result<Self, JsonSchemaError> {
        let mut listed = self.input_schema.json().clone();
        let Some(properties) = listed.get_mut("properties").and_then(Value::as_object_mut) else { return Ok(self) };
        let count = properties.len();
        properties.retain(|name, _| !names.contains(&name.as_str()));
        if properties.len() == count {
            return Ok(self);
        }
        // A client that checks arguments itself would refuse those that the list lacks.
        if let Some(members) = listed.as_object_mut() {
            members.shift_remove("additionalProperties");
        }
        self.full_schema = Some(std::mem::replace(&mut self.input_schema, Arc::new(JsonSchema::object(listed)?)));
        Ok(self)
    }

    /// The schema of the arguments that a call may have.
    pub fn call_schema(&self) -> &Arc<JsonSchema> {
        self.full_schema.as_ref().unwrap_or(&self.input_schema)
    }

    /// Sets the schema of its structured answer.
    ///
    /// # Errors
    /// If it is not a valid schema.
    pub fn with_output_schema(mut self, schema: Value) -> Result<Self, JsonSchemaError> {
        self.output_schema = Some(Arc::new(JsonSchema::new(schema)?));
        Ok(self)
    }

    /// Sets the bodies of requests that it takes.
    #[must_use]
    pub fn with_request_body(mut self, types: RequestBodyTypes) -> Self {
        self.request_body = Some(types);
        self
    }

    /// Sets its title.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the hints on what it does.
    #[must_use]
    pub fn with_annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// Sets what it requires of a caller.
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the limits of its calls.
    #[must_use]
    pub fn with_limits(mut self, limits: CallLimits) -> Self {
        self.limits = limits;
        self
    }
}

tidegate_core::impl_debug!(Tool { name });
