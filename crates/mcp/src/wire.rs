//! Encodes the types of MCP. Members that a revision does not have are left out.
//!
//! MCP 2026-07-28: [`server/discover`](https://modelcontextprotocol.io/specification/2026-07-28/server/discover),
//! [Tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools),
//! [Prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts),
//! [Resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources)

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tidegate_core::{
    Annotations, ClientCapabilities, Content, ContentRole, Icon, JsonSchema, ResourceBody, ResourceContents,
    ResourceLink,
};
use tidegate_runtime::{Prompt, PromptArgument, Resource, ResourceTemplate, ServerName, Tool, ToolAnnotations};

use crate::revision::{Dialect, Revision};

/// The extension with which a client can retrieve the result of a call later.
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The identity of the server, and its instructions for models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDescription {
    /// The name for programs.
    pub name: String,
    /// The title for people.
    pub title: Option<String>,
    /// The version of the software.
    pub version: String,
    /// Short instructions for models. `{changing_tools}` stands for a sentence about what the caller can change.
    pub instructions: Option<String>,
}

/// The place of the sentence in [`ServerDescription::instructions`].
const CHANGING_TOOLS: &str = "{changing_tools}";
/// The maximum number of tools that the sentence names.
const NAMED_TOOLS_MAX: usize = 12;

impl ServerDescription {
    /// This description with the name and version of `server_name`, as far as it has them.
    pub(crate) fn with_server_name(&self, server_name: &ServerName) -> Self {
        let ServerName { name, version } = server_name.clone();
        // A title that repeats the replaced name would hide the other one.
        let title = self.title.clone().filter(|title| name.is_none() || !title.eq_ignore_ascii_case(&self.name));
        let (name, version) = (name.unwrap_or(self.name.clone()), version.unwrap_or(self.version.clone()));
        Self { name, title, version, ..self.clone() }
    }

    /// The instructions for a caller with `tools`.
    pub(crate) fn instructions_for<'a>(&self, tools: impl Iterator<Item = &'a Arc<Tool>>) -> Option<String> {
        let instructions = self.instructions.as_ref()?;
        let is_read_only = |tool: &Tool| tool.annotations.as_ref().and_then(|hints| hints.read_only) == Some(true);
        let names: Vec<&str> = tools.filter(|tool| !is_read_only(tool)).map(|tool| tool.name.as_str()).collect();
        let named = names.iter().take(NAMED_TOOLS_MAX).copied().collect::<Vec<_>>().join(", ");
        let sentence = match names.len() {
            0 => "Nothing can be changed.".to_owned(),
            1..=NAMED_TOOLS_MAX => format!("Only these tools can change anything: {named}."),
            count => format!("Only these tools can change anything: {named} and {} more.", count - NAMED_TOOLS_MAX),
        };
        Some(instructions.replace(CHANGING_TOOLS, &sentence))
    }

    /// The name, title and version as JSON text.
    pub(crate) fn encode(&self, revision: Revision) -> String {
        let has_titles = revision.dialect().titles;
        let members = [
            ("name", text(Some(&self.name))),
            ("title", text(self.title.as_ref().filter(|_| has_titles))),
            ("version", text(Some(&self.version))),
        ];
        object(members).to_string()
    }
}

/// Changes are announced in every revision: to legacy sessions, and to modern clients with a subscription.
pub(crate) fn encode_server_capabilities(dialect: &Dialect) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "prompts": {"listChanged": true},
        "logging": {},
    });
    if dialect.stateless {
        capabilities["extensions"] = json!({TASKS_EXTENSION: {}});
    }
    if dialect.annotations {
        capabilities["completions"] = json!({});
    }
    capabilities
}

pub(crate) fn parse_client_capabilities(capabilities: &Value) -> ClientCapabilities {
    let has = |name: &str| capabilities.get(name).is_some_and(Value::is_object);
    let elicits = |mode: &str| capabilities["elicitation"].get(mode).is_some_and(Value::is_object);
    ClientCapabilities {
        // A client that names no mode supports forms.
        forms: has("elicitation") && (elicits("form") || !elicits("url")),
        urls: elicits("url"),
        sampling: has("sampling"),
        roots: has("roots"),
        tasks: capabilities["extensions"].get(TASKS_EXTENSION).is_some_and(Value::is_object),
    }
}

/// Encodes the capabilities in `needed`, which a client must declare.
pub(crate) fn encode_client_capabilities(needed: ClientCapabilities) -> Value {
    let mut capabilities = Map::new();
    if needed.forms || needed.urls {
        let modes = [("form", needed.forms), ("url", needed.urls)];
        let modes = modes.into_iter().filter(|(_, is_needed)| *is_needed);
        capabilities.insert("elicitation".to_owned(), modes.map(|(mode, _)| (mode.to_owned(), json!({}))).collect());
    }
    for (name, is_needed) in [("sampling", needed.sampling), ("roots", needed.roots)] {
        if is_needed {
            capabilities.insert(name.to_owned(), json!({}));
        }
    }
    if needed.tasks {
        capabilities.insert("extensions".to_owned(), json!({TASKS_EXTENSION: {}}));
    }
    Value::Object(capabilities)
}

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
        ("_meta", encode_meta(&tool_metadata(tool), dialect)),
    ])
}

/// What the names of our members of `_meta` begin with.
const PREFIX: &str = "dev.tidegate/";

/// Those of `members` that have a value, under the names that they have in `_meta`.
pub(crate) fn own_members<'n>(
    members: impl IntoIterator<Item = (&'n str, Option<Value>)>,
) -> impl Iterator<Item = (String, Value)> {
    members.into_iter().filter_map(|(name, value)| Some((format!("{PREFIX}{name}"), value?)))
}

/// The metadata of `tool`, with what clients can know of its answers before they call it.
fn tool_metadata(tool: &Tool) -> Map<String, Value> {
    let cache = tool.cache.map(|hint| {
        let milliseconds = u64::try_from(hint.time_to_live.as_millis()).unwrap_or(u64::MAX);
        json!({"ttlMs": milliseconds, "public": hint.public})
    });
    let mut metadata = tool.meta.clone();
    metadata.extend(own_members([
        ("cache", cache),
        ("supports_pagination", tool.supports_pagination.then_some(Value::Bool(true))),
        ("supports_streaming", tool.supports_streaming.then_some(Value::Bool(true))),
    ]));
    metadata
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

/// A content item in the encoding of the newest revision, for other adapters.
pub fn content_json(content: &Content) -> Value {
    encode_content(content, Revision::V2026_07_28.dialect())
}

/// One content item. If the revision does not have its type, a text that describes it.
pub(crate) fn encode_content(content: &Content, dialect: &Dialect) -> Value {
    match content {
        Content::Text { text, annotations } => object([
            ("type", Some("text".into())),
            ("text", Some(text.as_str().into())),
            ("annotations", annotations.as_ref().map(encode_annotations)),
        ]),
        Content::Image { data, mime_type } => {
            json!({"type": "image", "data": STANDARD.encode(data), "mimeType": mime_type})
        }
        Content::Audio { data, mime_type } if dialect.annotations => {
            json!({"type": "audio", "data": STANDARD.encode(data), "mimeType": mime_type})
        }
        Content::Audio { data, mime_type } => {
            json!({"type": "text", "text": format!("[{} bytes of {mime_type}]", data.len())})
        }
        Content::Link(link) if dialect.titles => encode_resource_link(link),
        Content::Link(link) => json!({"type": "text", "text": format!("{}: {}", link.name, link.uri)}),
        Content::Resource(contents) => json!({"type": "resource", "resource": encode_resource_contents(contents)}),
    }
}

fn encode_resource_link(link: &ResourceLink) -> Value {
    object([
        ("type", Some("resource_link".into())),
        ("uri", text(Some(&link.uri))),
        ("name", text(Some(&link.name))),
        ("title", text(link.title.as_ref())),
        ("description", text(link.description.as_ref())),
        ("mimeType", text(link.mime_type.as_ref())),
        ("size", link.size_bytes.map(Value::from)),
    ])
}

pub(crate) fn encode_resource_contents(contents: &ResourceContents) -> Value {
    let body = match &contents.body {
        ResourceBody::Text(text) => ("text", Some(text.as_str().into())),
        ResourceBody::Blob(bytes) => ("blob", Some(STANDARD.encode(bytes).into())),
    };
    object([("uri", text(Some(&contents.uri))), ("mimeType", text(contents.mime_type.as_ref())), body])
}

pub(crate) fn encode_prompt_message(role: ContentRole, content: &Content, dialect: &Dialect) -> Value {
    json!({"role": role_name(role), "content": encode_content(content, dialect)})
}

/// [Annotations](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#annotations)
fn encode_annotations(annotations: &Annotations) -> Value {
    let audience = annotations.audience.iter().copied().map(role_name);
    object([
        ("audience", (!annotations.audience.is_empty()).then(|| audience.collect())),
        ("priority", annotations.priority.map(Value::from)),
        ("lastModified", text(annotations.last_modified.as_ref())),
    ])
}

fn role_name(role: ContentRole) -> &'static str {
    match role {
        ContentRole::User => "user",
        ContentRole::Assistant => "assistant",
    }
}

pub(crate) fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

pub(crate) fn text(text: Option<&String>) -> Option<Value> {
    text.map(|text| text.as_str().into())
}
