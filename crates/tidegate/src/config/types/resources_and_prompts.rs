//! Configuration of declared resources and prompts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{AllowedOriginsConfig, CacheConfig, CallLimitsConfig, InputConfig};

/// A declared resource: the result of a statement, or a file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceConfig {
    /// URI, or URI template: reports://sales/{year}. Required.
    pub(crate) uri: String,
    /// Name of the resource. Required.
    pub(crate) name: String,
    /// Title for people. Default: none.
    pub(crate) title: Option<String>,
    /// Description. Default: none.
    pub(crate) description: Option<String>,
    /// Media type. Default: by the format, or by the ending of the file.
    pub(crate) mime_type: Option<String>,
    /// Database of the statement. Default: the only database.
    pub(crate) database: Option<String>,
    /// One statement that reads. Its :name parameters are the variables of the URI. Default: none.
    pub(crate) sql: Option<String>,
    /// Types and constraints of the variables of the URI, by name. Default: string.
    #[serde(default)]
    pub(crate) input: BTreeMap<String, InputConfig>,
    /// Format of the answer: mcp, json, csv, markdown, ndjson, table or toon. Default: mcp.
    pub(crate) format: Option<String>,
    /// File, relative to this file. {{variable}} stands for a part of a name. Default: none.
    pub(crate) file: Option<String>,
    /// Access names that a caller must hold, all of them. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// OAuth scopes that the token of a caller must have, all of them. The entry is listed even without them. A scope
    /// also counts if a broader one includes it (auth.tokens.implied_scopes). Default: none.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Transports and networks from which reads are accepted. Default: all.
    #[serde(default)]
    pub(crate) from: AllowedOriginsConfig,
    /// Limits of the reads of the resource.
    #[serde(default)]
    pub(crate) limits: CallLimitsConfig,
    /// How long clients may cache the content. Default: not stated.
    pub(crate) cache: Option<CacheConfig>,
}

/// A declared prompt.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptConfig {
    /// Name of the prompt. Required.
    pub(crate) name: String,
    /// Title for people. Default: none.
    pub(crate) title: Option<String>,
    /// Description: the purpose of the prompt. Required.
    pub(crate) description: String,
    /// Arguments, in order. Default: none.
    #[serde(default)]
    pub(crate) arguments: Vec<PromptArgumentConfig>,
    /// Messages, in order. Required.
    pub(crate) messages: Vec<MessageConfig>,
    /// Access names that a caller must hold, all of them. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// OAuth scopes that the token of a caller must have, all of them. The entry is listed even without them. A scope
    /// also counts if a broader one includes it (auth.tokens.implied_scopes). Default: none.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Transports and networks from which requests are accepted. Default: all.
    #[serde(default)]
    pub(crate) from: AllowedOriginsConfig,
}

/// An argument of a prompt. Arguments named database or table have completions.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptArgumentConfig {
    /// Name of the argument; messages use it as {{name}}. Required.
    pub(crate) name: String,
    /// Title for people. Default: none.
    pub(crate) title: Option<String>,
    /// Description. Default: none.
    pub(crate) description: Option<String>,
    /// Whether a value is required. Default: false.
    #[serde(default)]
    pub(crate) required: bool,
}

/// A message of a prompt: a text or a resource.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageConfig {
    /// Role of the message: user or assistant. Default: user.
    #[serde(default)]
    pub(crate) role: MessageRole,
    /// Text of the message, with arguments as {{argument}}. Default: none.
    pub(crate) text: Option<String>,
    /// URI of a resource whose content is inserted. {{argument}} can be a part of the URI, or all of it. Default: none.
    pub(crate) resource: Option<String>,
}

/// Role of a message.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum MessageRole {
    #[default]
    User,
    Assistant,
}
