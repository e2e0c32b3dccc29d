//! Which databases are whose.

use std::collections::BTreeSet;

use tidegate_core::DatabaseTenants;

use super::problem::ConfigProblem;
use super::types::{Config, DatabaseEntry};

/// Whose the databases are. One of several is there for those alone who may ask all of them.
pub(super) fn build_tenancy(config: &Config, problems: &mut Vec<ConfigProblem>) -> DatabaseTenants {
    let mut of_databases = Vec::new();
    for (index, entry) in config.databases.iter().enumerate() {
        let path = format!("databases[{index}]");
        if entry.tenants.as_ref().is_some_and(Vec::is_empty) {
            problems.push(ConfigProblem::new(
                format!("{path}.tenants"),
                "names nobody; leave it out for everybody, or name the tenants that the database is for",
            ));
            continue;
        }
        let Some(tenants) = tenants_allowed(entry, config) else { continue };
        if tenants.is_empty() {
            let message = "joins databases that no tenant may ask all of";
            problems.push(ConfigProblem::new(format!("{path}.federated"), message));
        }
        of_databases.push((entry.name.clone(), tenants));
    }
    DatabaseTenants::new(of_databases)
}

/// The tenants of `entry`; none if it is everybody's.
fn tenants_allowed(entry: &DatabaseEntry, config: &Config) -> Option<BTreeSet<String>> {
    let members = entry.federated.iter().flatten();
    let members = members.filter_map(|name| config.databases.iter().find(|database| database.name == *name));
    let filter_maps = std::iter::once(entry).chain(members).filter_map(|database| database.tenants.as_ref());
    let text = filter_maps.map(|tenants| tenants.iter().cloned().collect::<BTreeSet<String>>());
    text.reduce(|all, others| all.intersection(&others).cloned().collect())
}
