//! Which tenants may query which database.

use std::collections::BTreeSet;

use tidegate_core::DatabaseTenants;

use super::databases::DatabaseConfig;
use super::problems::Problems;
use super::types::Config;

/// The tenants of each database. A federated database belongs to the tenants that may query all its members.
pub(super) fn build_tenancy(config: &Config, problems: &Problems) -> DatabaseTenants {
    let mut tenants_by_database = Vec::new();
    for (index, entry) in config.databases.iter().enumerate() {
        let problems = problems.at(format_args!("databases[{index}]"));
        if entry.tenants.as_ref().is_some_and(Vec::is_empty) {
            let message = "is empty; omit it to allow all tenants, or list the tenants that may use the database";
            problems.add("tenants", message);
            continue;
        }
        let Some(tenants) = tenants_allowed(entry, config) else { continue };
        if tenants.is_empty() {
            problems.add("federated", "joins databases that no tenant may use together");
        }
        tenants_by_database.push((entry.name.clone(), tenants));
    }
    DatabaseTenants::new(tenants_by_database)
}

/// The tenants of `entry`; `None` for all.
fn tenants_allowed(entry: &DatabaseConfig, config: &Config) -> Option<BTreeSet<String>> {
    let members = entry.used_keys().members.iter();
    let members = members.filter_map(|name| config.databases.iter().find(|database| database.name == *name));
    let restricted = std::iter::once(entry).chain(members).filter_map(|database| database.tenants.as_ref());
    let tenants = restricted.map(|tenants| tenants.iter().cloned().collect::<BTreeSet<String>>());
    tenants.reduce(|all, others| all.intersection(&others).cloned().collect())
}
