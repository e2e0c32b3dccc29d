//! Resources and prompts of one's own.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{CacheEntry, CallLimitsEntry, FromEntry, InputEntry};

/// A resource: the answer of a statement, or a file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceEntry {
    /// Its URI, or a template of URIs: reports://sales/{year}.
    pub(crate) uri: String,
    /// Its name.
    pub(crate) name: String,
    /// For people.
    pub(crate) title: Option<String>,
    /// What it is.
    pub(crate) description: Option<String>,
    /// Media type; by the format or the file's ending unless said.
    pub(crate) mime_type: Option<String>,
    /// The database of the statement.
    pub(crate) database: Option<String>,
    /// One read-only statement; its :name parameters are the variables of the URI.
    pub(crate) sql: Option<String>,
    /// The types of the variables.
    #[serde(default)]
    pub(crate) input: BTreeMap<String, InputEntry>,
    /// The form of the statement's answer: mcp, json, csv, markdown, ndjson, table or toon.
    pub(crate) format: Option<String>,
    /// A file, relative to this one; {{variable}} stands for a part of a name.
    pub(crate) file: Option<String>,
    /// Access names that a caller must hold, all of them.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// OAuth scopes that a caller's token must carry, all of them; lists show the entry all the same. A broader one counts
    /// for those that it implies (auth.tokens.implied_scopes).
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Where calls may come from; anywhere unless said.
    #[serde(default)]
    pub(crate) from: FromEntry,
    /// Bounds of its reads.
    #[serde(default)]
    pub(crate) limits: CallLimitsEntry,
    /// How long clients may keep what they read.
    pub(crate) cache: Option<CacheEntry>,
}

/// A prompt.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptEntry {
    /// Its name.
    pub(crate) name: String,
    /// For people.
    pub(crate) title: Option<String>,
    /// What it is for.
    pub(crate) description: String,
    /// Its arguments, in order.
    #[serde(default)]
    pub(crate) arguments: Vec<PromptArgumentEntry>,
    /// Its messages, in order.
    pub(crate) messages: Vec<MessageEntry>,
    /// Access names that a caller must hold, all of them.
    #[serde(default)]
    pub(crate) access: Vec<String>,
    /// OAuth scopes that a caller's token must carry, all of them; lists show the entry all the same. A broader one counts
    /// for those that it implies (auth.tokens.implied_scopes).
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Where calls may come from; anywhere unless said.
    #[serde(default)]
    pub(crate) from: FromEntry,
}

/// An argument of a prompt. One called database or table completes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptArgumentEntry {
    /// Its name, as {{name}} in the messages.
    pub(crate) name: String,
    /// For people.
    pub(crate) title: Option<String>,
    /// What it is.
    pub(crate) description: Option<String>,
    /// Whether it must be given.
    #[serde(default)]
    pub(crate) required: bool,
}

/// A message of a prompt: a text or a resource.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageEntry {
    /// Who says it; user unless said.
    #[serde(default)]
    pub(crate) role: MessageRole,
    /// Text with {{argument}}s.
    pub(crate) text: Option<String>,
    /// The URI of a resource that is put in, with {{argument}}s as parts of it, or one {{argument}} that is all of it.
    pub(crate) resource: Option<String>,
}

/// Who says a message.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum MessageRole {
    #[default]
    User,
    Assistant,
}
