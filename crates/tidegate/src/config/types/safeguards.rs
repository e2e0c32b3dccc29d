//! Configuration of the audit log and of secrets in answers.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::quantities::{SecretText, Size};

/// The audit log: one line for each call, in a hash chain, in a file that is rotated. Changes take effect at a restart.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditConfig {
    /// File of the log, relative to this file. Its folder must exist, and only one process writes the file. Required.
    pub(crate) file: PathBuf,
    /// What happens if the log cannot be written. block: calls wait up to 5s and are then refused. drop: calls
    /// continue, and missing lines are counted. Default: block.
    #[serde(default)]
    pub(crate) on_write_failure: WhenFullConfig,
    /// Size at which a new file begins, in bytes. Default: 100MB.
    pub(crate) max_size: Option<Size>,
    /// Number of older files that are kept. Default: 10.
    pub(crate) keep_files: Option<usize>,
    /// Whether the values of arguments are logged, not only their names. Default: false.
    #[serde(default)]
    pub(crate) argument_values: bool,
    /// Arguments whose values are never logged, as patterns of their names or paths: password, login.*. Names that
    /// contain password, secret, token, api_key and similar words are always redacted. Default: none.
    #[serde(default)]
    pub(crate) redact: Vec<String>,
    /// Key of the hash chain, at least 16 characters. Without the key, the chain cannot be forged. Default: none; the
    /// hashes have no key.
    pub(crate) key: Option<SecretText>,
}

/// What happens if the log cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum WhenFullConfig {
    #[default]
    Block,
    Drop,
}

/// Detection of secrets in answers.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SecretsConfig {
    /// Names of built-in rules, and rules of your own. Default: all built-in rules.
    pub(crate) rules: Option<Vec<SecretRuleConfig>>,
    /// mask replaces the secret by [secret: NAME]; refuse ends the answer with an error. Default: mask.
    pub(crate) action: SecretAction,
}

/// A rule that finds secrets.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SecretRuleConfig {
    /// Name of a built-in rule.
    BuiltIn(String),
    /// A rule of your own.
    Custom(CustomRule),
}

/// A rule of your own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CustomRule {
    /// Name of the rule; [secret: NAME] replaces the secret in the answer. Required.
    pub(crate) name: String,
    /// Regular expression that matches the secret. Required.
    pub(crate) pattern: String,
}

/// What happens to an answer with a secret.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum SecretAction {
    #[default]
    Mask,
    Refuse,
}
