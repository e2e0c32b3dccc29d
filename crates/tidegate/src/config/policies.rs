//! Row policies and column masks of the file.

use std::collections::BTreeMap;

use tidegate_core::nearest_names;
use tidegate_query::{HashKey, Mask, PolicyPart, PolicyProblem, RowCondition, RowPolicies, RowPolicy};

use super::problem::ConfigProblem;
use super::problems::Problems;
use super::types::{Config, MaskConfig, NamedMask, PolicyConfig};

pub(super) fn build_row_policies(
    entries: &[PolicyConfig],
    config: &Config,
    path: &str,
) -> Result<RowPolicies, Vec<ConfigProblem>> {
    let problems = Problems::at_path(path);
    let policies = entries.iter().enumerate();
    let policies: Vec<RowPolicy> = policies
        .map(|(index, policy)| build_row_policy(policy, config, &problems.at(format_args!("policies[{index}]"))))
        .collect();
    let key = match &config.policies_key {
        Some(secret) => HashKey::from_secret(secret.0.expose().as_bytes()),
        None => HashKey::process_key(),
    };
    problems.checked(RowPolicies::new(policies, key))
}

/// Reports what was found of the policies of the database `name`.
pub(super) fn report_policy_problems(found: Vec<PolicyProblem>, name: &str, problems: &Problems) {
    for PolicyProblem { policy, part, message, is_warning } in found {
        let part = match part {
            PolicyPart::Table => "table".to_owned(),
            PolicyPart::Rows => "rows".to_owned(),
            PolicyPart::Column(column) => format!("columns.{column}"),
        };
        let key = format!("policies[{policy}].{part}");
        match is_warning {
            true => problems.warn([format!("database {name}: {key}: {message}")]),
            false => problems.add(key, message),
        }
    }
}

fn build_row_policy(entry: &PolicyConfig, config: &Config, problems: &Problems) -> RowPolicy {
    let rows = entry.rows.as_deref().map(RowCondition::parse).transpose().unwrap_or_else(|error| {
        problems.add("rows", error.to_string());
        None
    });
    if entry.rows.is_none() && entry.columns.is_empty() {
        problems.add("", "needs rows, columns or both");
    }
    let mut columns = BTreeMap::new();
    for (name, mask) in &entry.columns {
        match to_mask(mask) {
            Ok(mask) => {
                columns.insert(name.clone(), mask);
            }
            Err(reason) => problems.add(format_args!("columns.{name}"), reason),
        }
    }
    for (index, role) in entry.except_roles.iter().enumerate() {
        let mut role_names = config.roles.iter().map(|role| role.name.as_str());
        if role_names.clone().all(|name| name != role) {
            let near = nearest_names(role, &mut role_names);
            let meant = near.first().map(|near| format!("; {near} is one")).unwrap_or_default();
            let message = format!("there is no role {role:?}{meant}");
            problems.add(format_args!("except_roles[{index}]"), message);
        }
    }
    RowPolicy { table: entry.table.clone(), rows, columns, except_roles: entry.except_roles.iter().cloned().collect() }
}

fn to_mask(entry: &MaskConfig) -> Result<Mask, &'static str> {
    Ok(match entry {
        MaskConfig::NullLiteral | MaskConfig::Named(NamedMask::Null) => Mask::Null,
        MaskConfig::Named(NamedMask::Deny) => Mask::Deny,
        MaskConfig::Named(NamedMask::Hash) => Mask::Hash,
        MaskConfig::Partial(partial) => match (partial.keep_first, partial.keep_last) {
            (Some(first), None) => Mask::KeepFirst(first),
            (None, Some(last)) => Mask::KeepLast(last),
            _ => return Err("needs exactly one of keep_first and keep_last"),
        },
    })
}
