//! Secrets in answers: found by rule, and masked before rows take any form.

mod redaction;
mod rules;

pub(crate) use redaction::redact_stream;
pub use rules::{BUILT_IN_RULES, SecretRule, SecretRuleError, SecretRules};
