//! Converts handlers to entries of a node's registry.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{Access, JsonSchema, PrincipalRule, UriTemplate};
use tidegate_postgres::PostgresDatabase;
use tidegate_runtime::{Handler, Prompt, PromptArgument, Resource, ResourceTemplate, Tool, ToolAnnotations};

use crate::content::{parse_annotations, parse_icons};
use crate::record::{HandlerKind, HandlerRecord};

/// A registry entry that a handler implements.
pub enum HandlerEntry {
    /// A tool.
    Tool(Box<Tool>),
    /// A resource.
    Resource(Box<Resource>),
    /// A template of resources.
    Template(Box<ResourceTemplate>),
    /// A prompt.
    Prompt(Box<Prompt>),
}

impl HandlerRecord {
    /// Creates the entry for `handler`.
    ///
    /// # Errors
    /// The reason why it cannot be served, although the database accepted it.
    pub(crate) fn to_entry(
        &self,
        handler: Arc<dyn Handler>,
        output_schema: Option<Arc<JsonSchema>>,
        database: &Arc<PostgresDatabase>,
    ) -> Result<HandlerEntry, String> {
        let access = self.access(database.clone());
        match self.kind {
            HandlerKind::Tool => {
                self.to_tool(handler, output_schema, access).map(|tool| HandlerEntry::Tool(Box::new(tool)))
            }
            HandlerKind::Prompt => Ok(HandlerEntry::Prompt(Box::new(self.to_prompt(handler, access)))),
            HandlerKind::Resource => match self.text("uriTemplate") {
                Some(template) => self.to_template(&template, handler, access),
                None => self.to_resource(handler, access),
            },
        }
    }

    /// Grants access to principals that run as a role with the privilege to execute the handler.
    fn access(&self, database: Arc<PostgresDatabase>) -> Access {
        let roles = self.roles.clone();
        let only_for = PrincipalRule::new(move |principal| {
            database.role_of(principal).is_ok_and(|role| roles.contains(&role.map(str::to_owned)))
        });
        Access { requires_authentication: self.requires_auth, principal_rule: Some(only_for), ..Access::default() }
    }

    /// The schema of its structured content.
    ///
    /// # Errors
    /// The reason why the schema is invalid.
    pub(crate) fn output_schema(&self) -> Result<Option<Arc<JsonSchema>>, String> {
        let schema = self.definition.get("outputSchema").cloned().map(JsonSchema::new).transpose();
        Ok(schema.map_err(|error| format!("outputSchema: {error}"))?.map(Arc::new))
    }

    fn to_tool(
        &self,
        handler: Arc<dyn Handler>,
        output_schema: Option<Arc<JsonSchema>>,
        access: Access,
    ) -> Result<Tool, String> {
        let mut tool = Tool::new(self.name.clone(), String::new(), handler).with_access(access);
        tool.title = self.text("title");
        tool.description = self.text("description");
        tool.icons = parse_icons(self.definition.get("icons"));
        tool.meta = self.meta();
        tool.annotations = self.tool_annotations();
        if let Some(json) = self.definition.get("inputSchema").cloned() {
            tool.input_schema = Arc::new(JsonSchema::object(json).map_err(|error| format!("inputSchema: {error}"))?);
        }
        tool.output_schema = output_schema;
        Ok(tool)
    }

    fn tool_annotations(&self) -> Option<ToolAnnotations> {
        let text = self.definition.get("annotations");
        let hint = |name: &str| text.and_then(|text| text.get(name)).and_then(Value::as_bool);
        let annotations = ToolAnnotations {
            read_only: hint("readOnlyHint").or(self.read_only.then_some(true)),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        };
        (annotations != ToolAnnotations::default()).then_some(annotations)
    }

    fn to_resource(&self, handler: Arc<dyn Handler>, access: Access) -> Result<HandlerEntry, String> {
        let uri = self.text("uri").ok_or("it has neither uri nor uriTemplate")?;
        let mut resource = Resource::new(uri, self.name.clone(), handler);
        resource.title = self.text("title");
        resource.description = self.text("description");
        resource.mime_type = self.text("mimeType");
        resource.size_bytes = self.definition.get("size").and_then(Value::as_u64);
        resource.annotations = self.definition.get("annotations").map(parse_annotations);
        resource.icons = parse_icons(self.definition.get("icons"));
        resource.meta = self.meta();
        resource.access = access;
        Ok(HandlerEntry::Resource(Box::new(resource)))
    }

    fn to_template(&self, text: &str, handler: Arc<dyn Handler>, access: Access) -> Result<HandlerEntry, String> {
        let template = UriTemplate::parse(text).map_err(|error| format!("uriTemplate: {error}"))?;
        let mut template = ResourceTemplate::new(template, self.name.clone(), handler);
        template.title = self.text("title");
        template.description = self.text("description");
        template.mime_type = self.text("mimeType");
        template.annotations = self.definition.get("annotations").map(parse_annotations);
        template.icons = parse_icons(self.definition.get("icons"));
        template.meta = self.meta();
        template.access = access;
        Ok(HandlerEntry::Template(Box::new(template)))
    }

    fn to_prompt(&self, handler: Arc<dyn Handler>, access: Access) -> Prompt {
        let mut prompt = Prompt::new(self.name.clone(), String::new(), handler);
        prompt.title = self.text("title");
        prompt.description = self.text("description");
        prompt.icons = parse_icons(self.definition.get("icons"));
        prompt.meta = self.meta();
        prompt.access = access;
        let arguments = self.definition.get("arguments").and_then(Value::as_array).into_iter().flatten();
        let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
        prompt.arguments = arguments
            .map(|argument| PromptArgument {
                name: text(argument, "name").unwrap_or_default(),
                title: text(argument, "title"),
                description: text(argument, "description"),
                required: argument.get("required").and_then(Value::as_bool).unwrap_or(false),
            })
            .collect();
        prompt
    }

    fn text(&self, name: &str) -> Option<String> {
        self.definition.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    fn meta(&self) -> Map<String, Value> {
        self.definition.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default()
    }
}
