//! Configuration of the audit log and of secrets in answers.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::quantities::{SecretText, Size};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditConfig {
    /// Its folder must exist. Only one process may write it.
    pub(crate) file: PathBuf,
    /// block: calls wait up to 5s and are then refused. drop: calls continue, and missing lines are counted. Default:
    /// block.
    #[serde(default)]
    pub(crate) on_write_failure: WhenFullConfig,
    /// Size at which a new file begins. Default: 100MB.
    pub(crate) max_size: Option<Size>,
    /// Number of older files. Default: 10.
    pub(crate) keep_files: Option<usize>,
    /// Whether values of arguments are logged. Default: false.
    #[serde(default)]
    pub(crate) argument_values: bool,
    /// Arguments whose values are never logged, as patterns: password, login.*. Names with password, secret, token,
    /// api_key and similar words are always redacted. Default: none.
    #[serde(default)]
    pub(crate) redact: Vec<String>,
    /// Key against forged hash chains, at least 16 characters. Default: none; the hashes have no key.
    pub(crate) key: Option<SecretText>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum WhenFullConfig {
    #[default]
    Block,
    Drop,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SecretsConfig {
    /// Built-in rules by name, and your own. Default: all built-in rules.
    pub(crate) rules: Option<Vec<SecretRuleConfig>>,
    /// mask writes [secret: NAME]; refuse ends the answer with an error. Default: mask.
    pub(crate) action: SecretAction,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SecretRuleConfig {
    /// Name of a built-in rule.
    BuiltIn(String),
    /// A rule of your own.
    Custom(CustomRule),
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CustomRule {
    /// Name in [secret: NAME].
    pub(crate) name: String,
    /// Regular expression for the secret.
    pub(crate) pattern: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum SecretAction {
    #[default]
    Mask,
    Refuse,
}
