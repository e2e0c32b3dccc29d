//! The audit log, the detection of secrets and the fence of the file.

use std::sync::Arc;

use tidegate_core::{AnswerProtection, ArgumentRedaction, Redactor};
use tidegate_query::{BUILT_IN_RULES, SecretRule, SecretRules};
use tidegate_runtime::audit::{AuditKey, AuditOptions, WhenFull};
use tidegate_tools::{FENCE_INSTRUCTIONS, INSTRUCTIONS};

use super::LoadedConfig;
use super::problem::ConfigProblem;
use super::problems::Problems;
use super::types::{AuditConfig, Config, SecretAction, SecretRuleConfig, SecretsConfig, WhenFullConfig};

pub(super) fn build_answer_protection(config: &Config, problems: &Problems) -> AnswerProtection {
    let redactor = config.secrets.as_ref().and_then(|entry| build_redactor(entry, problems));
    AnswerProtection { redactor, fences_data: config.fence }
}

fn build_redactor(entry: &SecretsConfig, problems: &Problems) -> Option<Arc<dyn Redactor>> {
    let all = || BUILT_IN_RULES.iter().map(|(name, _)| SecretRuleConfig::BuiltIn((*name).to_owned())).collect();
    let entries: Vec<SecretRuleConfig> = entry.rules.clone().unwrap_or_else(all);
    let mut rules = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        match entry {
            SecretRuleConfig::Custom(own) => rules.push(SecretRule { name: own.name, pattern: own.pattern }),
            SecretRuleConfig::BuiltIn(name) => match SecretRule::built_in(&name) {
                Some(rule) => rules.push(rule),
                None => {
                    let known_rules = BUILT_IN_RULES.map(|(name, _)| name).join(", ");
                    let message = format!("there is no built-in rule {name:?}; there are {known_rules}");
                    problems.add(format_args!("secrets.rules[{index}]"), message);
                    return None;
                }
            },
        }
    }
    match SecretRules::new(&rules, entry.action == SecretAction::Refuse) {
        Ok(rules) => Some(Arc::new(rules)),
        Err(error) => {
            let path = error.rule.map_or("secrets.rules".to_owned(), |index| format!("secrets.rules[{index}]"));
            problems.add(path, error.to_string());
            None
        }
    }
}

/// Which arguments lists of jobs redact: the same as the audit log.
pub(super) fn argument_redaction(config: &Config) -> ArgumentRedaction {
    config.audit.as_ref().map(audit_redaction).unwrap_or_default()
}

fn audit_redaction(entry: &AuditConfig) -> ArgumentRedaction {
    ArgumentRedaction::new(entry.redact.iter().map(String::as_str))
}

/// The audit log that the configuration describes, if it does.
pub(crate) fn audit_options(loaded: &LoadedConfig) -> Result<Option<AuditOptions>, ConfigProblem> {
    let Some(entry) = &loaded.config.audit else { return Ok(None) };
    let too_short = || {
        let message = format!("is too short: a key has {} characters at least", AuditKey::BYTES_MIN);
        ConfigProblem::new("audit.key", message)
    };
    let key = entry.key.as_ref().map(|text| AuditKey::new(text.0.expose().as_bytes()).ok_or_else(too_short));
    let key = key.transpose()?;
    let default = AuditOptions::new(loaded.resolve(&entry.file));
    Ok(Some(AuditOptions {
        when_full: match entry.on_write_failure {
            WhenFullConfig::Block => WhenFull::Block,
            WhenFullConfig::Drop => WhenFull::Drop,
        },
        bytes_max: entry.max_size.map_or(default.bytes_max, |size| size.0),
        kept_files: entry.keep_files.unwrap_or(default.kept_files),
        values: entry.argument_values.then(|| audit_redaction(entry)),
        key,
        ..default
    }))
}

/// The instructions of the configuration for models; `None` stands for the built-in ones.
pub(super) fn instructions(config: &Config) -> Option<String> {
    let own = config.server.instructions.as_deref();
    if !config.fence {
        return own.map(str::to_owned);
    }
    Some(format!("{}\n{FENCE_INSTRUCTIONS}", own.unwrap_or(INSTRUCTIONS).trim_end()))
}

/// The warnings about changes since `before` that take effect at the next start only.
pub(super) fn restart_warnings(config: &Config, before: Option<&Config>) -> impl Iterator<Item = String> {
    let changed = before.map(|before| {
        [("audit", before.audit != config.audit), ("server.threads", before.server.threads != config.server.threads)]
    });
    let changed = changed.into_iter().flatten().filter(|(_, is_changed)| *is_changed);
    changed.map(|(key, _)| format!("{key}: the changes take effect when the server restarts"))
}
