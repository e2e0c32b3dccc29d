//! Secrets in answers: found by rule, and masked before rows are encoded.

mod redaction;
mod rules;

pub(crate) use redaction::redact_stream;
pub use rules::{BUILT_IN_RULES, SecretRule, SecretRuleError, SecretRules};
