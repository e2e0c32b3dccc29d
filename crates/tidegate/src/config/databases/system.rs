//! Live system tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_core::nearest_names;
use tidegate_engines::{LiveTable, MachineTable, OfferedTable, SystemDatabase};
use tidegate_query::Database;

use super::{
    ConfiguredDatabase, KindParts, OpenDatabases, OpenedDatabase, Opening, OpeningResult, UsedKeys, key_problem,
};
use crate::config::problem::ConfigProblem;
use crate::config::problems::Problems;
use crate::config::types::{PolicyConfig, SystemConfig};
use crate::server_tables::may_query;
use crate::system_functions::SystemFunctions;

/// Tables of the node that show a caller only what it may see anyway.
const JOBS: &str = "jobs";
const POOLS: &str = "pools";
const SESSIONS: &str = "sessions";
/// The access name that all other tables of the node and of PostgreSQL demand by default.
const OPERATOR: &str = "operator";

/// Live tables of this machine, such as processes and disks. Rows are produced when they are read.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SystemTablesConfig {
    /// Live tables of this machine, such as processes and disks. Rows are produced when they are read. {} offers all
    /// tables.
    system: SystemConfig,
    /// Row and column policies. Default: none.
    #[serde(default)]
    policies: Vec<PolicyConfig>,
}

impl ConfiguredDatabase for SystemTablesConfig {
    fn advice(key: &str) -> Option<&'static str> {
        (key == "sensitive").then_some("is for journals; that of system tables is system.sensitive")
    }

    fn used_keys(&self) -> UsedKeys<'_> {
        let single = Some("system tables");
        UsedKeys { opening_order: 1, single, policies: &self.policies, ..UsedKeys::default() }
    }

    /// It stays if the servers that its tables show do, so that CPU usage is still compared with its earlier readings.
    fn may_keep(&self, _: &OpenedDatabase, opening: &Opening<'_>) -> bool {
        let (own, others) = (servers(&opening.opened), servers(opening.previous));
        own.len() == others.len() && own.iter().zip(&others).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        let tenants = &opening.server_tables.tenants;
        let machine = MachineTable::all();
        // The others show what callers of this server do.
        let open: Vec<String> = machine.iter().map(|table| table.description().name.to_string()).collect();
        let is_open = |name: &str| [JOBS, POOLS, SESSIONS].contains(&name) || open.iter().any(|open| open == name);
        let mut tables = machine;
        for (name, opened) in &opening.opened.by_name {
            tables.extend(opened.entry.kind.live_tables(&opened.database, &may_query(name, tenants)));
        }
        tables.extend(opening.server_tables.all(servers(&opening.opened)));
        let tables = select_tables(tables, is_open, &self.system, &format!("{path}.system"))?;
        let policies = opening.row_policies(&self.policies, path)?;
        let opened = SystemDatabase::new(name, tables, self.system.sensitive.clone(), opening.engine())
            .map_err(|error| key_problem(path, "system", error))?;
        let database = Arc::new(opened.with_row_policies(policies));
        let functions = Some(SystemFunctions::offer(database.clone()));
        Ok((database, KindParts { functions, ..KindParts::default() }))
    }
}

/// The databases with connections.
fn servers(databases: &OpenDatabases) -> Vec<Arc<dyn Database>> {
    databases.databases().filter(|database| database.connections().is_some()).collect()
}

/// Those of `tables` that the configuration offers, with their access names.
fn select_tables(
    tables: Vec<Arc<dyn LiveTable>>,
    is_open: impl Fn(&str) -> bool,
    system: &SystemConfig,
    path: &str,
) -> Result<Vec<OfferedTable>, Vec<ConfigProblem>> {
    let by_name: BTreeMap<String, Arc<dyn LiveTable>> =
        tables.into_iter().map(|table| (table.description().name.clone().into_owned(), table)).collect();
    let problems = Problems::at_path(path);
    let check = |name: &String, key: String| {
        if !by_name.contains_key(name) {
            let near = nearest_names(name, by_name.keys().map(String::as_str));
            let advice = match near.first() {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("there are {}", by_name.keys().cloned().collect::<Vec<_>>().join(", ")),
            };
            let message = format!("there is no system table {name:?}; {advice}");
            problems.add(key, message);
        }
    };
    for (index, name) in system.tables.iter().flatten().enumerate() {
        check(name, format!("tables[{index}]"));
    }
    for name in system.access.keys() {
        check(name, format!("access.{name}"));
    }
    let is_offered = |name: &String| system.tables.as_ref().is_none_or(|names| names.contains(name));
    let default_names = |name: &str| if is_open(name) { Vec::new() } else { vec![OPERATOR.to_owned()] };
    let offered = by_name.iter().filter(|(name, _)| is_offered(name)).map(|(name, table)| OfferedTable {
        table: table.clone(),
        access_names: system.access.get(name).cloned().unwrap_or_else(|| default_names(name)),
    });
    problems.checked(offered.collect())
}
