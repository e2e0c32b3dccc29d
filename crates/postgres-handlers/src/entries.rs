//! Converts handlers to entries of a node's registry.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::{Access, JsonSchema, PrincipalRule, UriTemplate};
use tidegate_postgres::PostgresDatabase;
use tidegate_runtime::{Handler, Prompt, PromptArgument, Resource, ResourceTemplate, Tool, ToolAnnotations};

use crate::answer::{parse_annotations, parse_icons};
use crate::call::{PgFunctionHandler, PgRowsFunction};
use crate::database_handlers::{DatabaseHandlers, HandlerCatalog};
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

impl DatabaseHandlers {
    /// The registry entry for `record` of `catalog`. A handler that returns rows is executed by the tool that `rows`
    /// creates.
    ///
    /// # Errors
    /// The reason why the handler cannot be served, although the database accepted it.
    pub fn entry(
        self: &Arc<Self>,
        catalog: &HandlerCatalog,
        record: &Arc<HandlerRecord>,
        rows: impl FnOnce(PgRowsFunction) -> Arc<dyn Handler>,
    ) -> Result<HandlerEntry, String> {
        let output_schema = record.output_schema()?;
        let handler: Arc<dyn Handler> = match record.returns_rows {
            true => rows(PgRowsFunction::new(self.clone(), record.clone(), catalog)),
            false => Arc::new(PgFunctionHandler::new(self.clone(), record.clone(), catalog, output_schema.clone())),
        };
        let access = record.access(self.database.clone());
        match record.kind {
            HandlerKind::Tool => record.to_tool(handler, output_schema, access),
            HandlerKind::Prompt => Ok(HandlerEntry::Prompt(Box::new(record.to_prompt(handler, access)))),
            HandlerKind::Resource => match record.text("uriTemplate") {
                Some(template) => record.to_template(&template, handler, access),
                None => record.to_resource(handler, access),
            },
        }
    }
}

impl HandlerRecord {
    /// Grants access to principals that run as a role with the privilege to execute the handler.
    fn access(&self, database: Arc<PostgresDatabase>) -> Access {
        let roles = self.roles.clone();
        let principal_rule = PrincipalRule::new(move |principal| {
            database.role_of(principal).is_ok_and(|role| roles.contains(&role.map(str::to_owned)))
        });
        Access {
            requires_authentication: self.requires_auth,
            principal_rule: Some(principal_rule),
            ..Access::default()
        }
    }

    fn output_schema(&self) -> Result<Option<Arc<JsonSchema>>, String> {
        let schema = self.definition.get("outputSchema").cloned().map(JsonSchema::new).transpose();
        Ok(schema.map_err(|error| format!("outputSchema: {error}"))?.map(Arc::new))
    }

    fn to_tool(
        &self,
        handler: Arc<dyn Handler>,
        output_schema: Option<Arc<JsonSchema>>,
        access: Access,
    ) -> Result<HandlerEntry, String> {
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
        Ok(HandlerEntry::Tool(Box::new(tool)))
    }

    fn tool_annotations(&self) -> Option<ToolAnnotations> {
        let annotations = self.definition.get("annotations");
        let hint = |name: &str| annotations.and_then(|annotations| annotations.get(name)).and_then(Value::as_bool);
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
        let text = |argument: &Value, name: &str| argument.get(name).and_then(Value::as_str).map(str::to_owned);
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
