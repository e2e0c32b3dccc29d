//! What is written down of calls, and what does not leave in answers.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::quantities::{SecretText, Size};

/// The audit log: a line for each call, chained, in a file that is rotated. What is changed here takes effect when the node
/// is started anew.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditEntry {
    /// The file. One process writes it.
    pub(crate) file: PathBuf,
    /// What happens when it cannot be written: block (unless said), so that calls wait and are refused after 5s, or drop, so that
    /// lines are dropped and counted.
    #[serde(default)]
    pub(crate) on_write_failure: WhenFullEntry,
    /// The size at which another file is begun; 100MB unless said.
    pub(crate) max_size: Option<Size>,
    /// Older files that are kept; 10 unless said.
    pub(crate) keep_files: Option<usize>,
    /// Whether the values of arguments are written, too, and not their names alone.
    #[serde(default)]
    pub(crate) argument_values: bool,
    /// Arguments whose values are never written, as patterns of their names or of the way to them: password, login.*. Names
    /// that hold password, secret, token, api_key or the like are redacted whatever is said.
    #[serde(default)]
    pub(crate) redact: Vec<String>,
    /// A key of 16 characters at least, so that nobody without it forges a line; a bare hash unless said.
    pub(crate) key: Option<SecretText>,
}

/// What happens when lines cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum WhenFullEntry {
    #[default]
    Block,
    Drop,
}

/// Secrets in answers, which are masked or refused.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SecretsEntry {
    /// Names of built-in rules, and rules of your own; all that are built in unless said.
    pub(crate) rules: Option<Vec<SecretRuleEntry>>,
    /// What becomes of an answer with a secret: mask (unless said) or refuse.
    pub(crate) action: SecretAction,
}

/// A rule.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SecretRuleEntry {
    /// The built-in one of that name.
    BuiltIn(String),
    /// One of your own.
    Custom(CustomRule),
}

/// A rule of your own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CustomRule {
    /// Stands in the answer in the secret's place: [secret: NAME].
    pub(crate) name: String,
    /// A regular expression of what a secret looks like.
    pub(crate) pattern: String,
}

/// What becomes of an answer with a secret.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum SecretAction {
    #[default]
    Mask,
    Refuse,
}
