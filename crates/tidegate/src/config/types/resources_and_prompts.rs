//! Configuration of declared resources and prompts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{AllowedOriginsConfig, CacheConfig, CallLimitsConfig, InputConfig};

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceConfig {
    /// URI, or URI template: reports://sales/{year}.
    pub(crate) uri: String,
    /// Name.
    pub(crate) name: String,
    /// Title for people. Default: none.
    pub(crate) title: Option<String>,
    /// Description. Default: none.
    pub(crate) description: Option<String>,
    /// Media type. Default: by the format, or by the ending of the file.
    pub(crate) mime_type: Option<String>,
    /// Database of the statement. Default: the only database.
    pub(crate) database: Option<String>,
    /// One statement that reads. Variables of the URI are its :name parameters. Default: none.
    pub(crate) sql: Option<String>,
    /// Types and constraints of the URI's variables. Default: string.
    #[serde(default)]
    pub(crate) input: BTreeMap<String, InputConfig>,
    /// mcp, json, csv, markdown, ndjson, table or toon. Default: mcp.
    pub(crate) format: Option<String>,
    /// File; {{variable}} stands for a part of a name. Default: none.
    pub(crate) file: Option<String>,
    /// Access names that callers need, all of them. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// OAuth scopes that calls need, all of them. The entry is listed even without them. Default: none.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Permitted transports and networks. Default: all.
    #[serde(default)]
    pub(crate) from: AllowedOriginsConfig,
    /// Limits of reads.
    #[serde(default)]
    pub(crate) limits: CallLimitsConfig,
    /// How long clients may cache the content. Default: not stated.
    pub(crate) cache: Option<CacheConfig>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptConfig {
    /// Name.
    pub(crate) name: String,
    /// Title for people. Default: none.
    pub(crate) title: Option<String>,
    /// Purpose of the prompt.
    pub(crate) description: String,
    /// Arguments, in order. Those named database or table have completions. Default: none.
    #[serde(default)]
    pub(crate) arguments: Vec<PromptArgumentConfig>,
    /// Messages, in order.
    pub(crate) messages: Vec<MessageConfig>,
    /// Access names that callers need, all of them. Default: none.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// OAuth scopes that calls need, all of them. The entry is listed even without them. Default: none.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Permitted transports and networks. Default: all.
    #[serde(default)]
    pub(crate) from: AllowedOriginsConfig,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptArgumentConfig {
    /// Name, for {{name}} in messages.
    pub(crate) name: String,
    /// Title for people. Default: none.
    pub(crate) title: Option<String>,
    /// Description. Default: none.
    pub(crate) description: Option<String>,
    /// Whether a value is required. Default: false.
    #[serde(default)]
    pub(crate) required: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageConfig {
    /// Role of the message. Default: user.
    #[serde(default)]
    pub(crate) role: MessageRole,
    /// Text, with arguments as {{argument}}. Default: none.
    pub(crate) text: Option<String>,
    /// URI of a resource to insert, with {{argument}}. Default: none.
    pub(crate) resource: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum MessageRole {
    #[default]
    User,
    Assistant,
}
