//! From what the file says of audit, secrets and the fence to what does it.

use std::sync::Arc;

use tidegate_audit::{AuditKey, AuditOptions, Redaction, WhenFull};
use tidegate_core::{AnswerProtection, Redactor};
use tidegate_query::{BUILT_IN_RULES, SecretRule, SecretRules};

use super::LoadedConfig;
use super::problem::ConfigProblem;
use super::types::{Config, SecretAction, SecretRuleEntry, SecretsEntry, WhenFullEntry};

/// What stands between answers and those who read them.
pub(super) fn build_answer_protection(config: &Config, problems: &mut Vec<ConfigProblem>) -> AnswerProtection {
    let screen = config.secrets.as_ref().and_then(|entry| build_redactor(entry, problems));
    AnswerProtection { redactor: screen, fences_data: config.fence }
}

fn build_redactor(entry: &SecretsEntry, problems: &mut Vec<ConfigProblem>) -> Option<Arc<dyn Redactor>> {
    let all = || BUILT_IN_RULES.iter().map(|(name, _)| SecretRuleEntry::BuiltIn((*name).to_owned())).collect();
    let entries: Vec<SecretRuleEntry> = entry.rules.clone().unwrap_or_else(all);
    let mut rules = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        match entry {
            SecretRuleEntry::Custom(own) => rules.push(SecretRule { name: own.name, pattern: own.pattern }),
            SecretRuleEntry::BuiltIn(name) => match SecretRule::built_in(&name) {
                Some(rule) => rules.push(rule),
                None => {
                    let known = BUILT_IN_RULES.map(|(known, _)| known).join(", ");
                    let message = format!("there is no built-in rule {name:?}; there are {known}");
                    problems.push(ConfigProblem::new(format!("secrets.rules[{index}]"), message));
                    return None;
                }
            },
        }
    }
    match SecretRules::new(&rules, entry.action == SecretAction::Refuse) {
        Ok(rules) => Some(Arc::new(rules)),
        Err(wrong) => {
            let path = wrong.rule.map_or("secrets.rules".to_owned(), |index| format!("secrets.rules[{index}]"));
            problems.push(ConfigProblem::new(path, wrong.to_string()));
            None
        }
    }
}

/// The audit log that is asked for, if one is.
pub(crate) fn audit_options(loaded: &LoadedConfig, problems: &mut Vec<ConfigProblem>) -> Option<AuditOptions> {
    let entry = loaded.config.audit.as_ref()?;
    let key = match &entry.key {
        None => None,
        Some(text) => match AuditKey::new(text.0.expose().as_bytes()) {
            Some(key) => Some(key),
            None => {
                let message = format!("is too short: a key has {} characters at least", AuditKey::BYTES_MIN);
                problems.push(ConfigProblem::new("audit.key", message));
                return None;
            }
        },
    };
    let default = AuditOptions::new(loaded.resolve(&entry.file));
    Some(AuditOptions {
        when_full: match entry.on_write_failure {
            WhenFullEntry::Block => WhenFull::Block,
            WhenFullEntry::Drop => WhenFull::Drop,
        },
        bytes_max: entry.max_size.map_or(default.bytes_max, |size| size.0),
        kept_files: entry.keep_files.unwrap_or(default.kept_files),
        values: entry.argument_values.then(|| Redaction::new(entry.redact.iter().map(String::as_str))),
        key,
        ..default
    })
}

/// What of `config` takes effect only when the node is started anew, if it is not what it was in `before`.
pub(super) fn restart_warning(config: &Config, before: Option<&Config>) -> Option<String> {
    let is_changed = before.is_some_and(|before| before.audit != config.audit);
    is_changed.then(|| "audit: what was changed takes effect when the node is started anew".to_owned())
}
