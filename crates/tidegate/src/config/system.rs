//! Opens the database of live system tables.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tidegate_core::{Error, nearest_names};
use tidegate_engines::{Engine, JournalTable, LiveTable, MachineTable, OfferedTable, PostgresTable, SystemDatabase};
use tidegate_query::Database;
use tidegate_tools::FunctionSource;

use super::databases::{self, DatabaseEngine, ONE_KIND_MESSAGE, OpenDatabases, OpenedDatabase};
use super::problem::ConfigProblem;
use super::problems::Problems;
use super::tenancy;
use super::types::{Config, DatabaseConfig, SystemConfig};
use super::{LoadedConfig, policies};
use crate::node_tables::{ConnectionPool, NodeTables, may_query};
use crate::system_functions::SystemFunctions;

/// Tables of the node that show a caller only what it may see anyway.
const JOBS: &str = "jobs";
const POOLS: &str = "pools";
const SESSIONS: &str = "sessions";
/// The access name that all other tables of the node and of PostgreSQL demand by default.
const OPERATOR: &str = "operator";

impl OpenDatabases {
    /// Opens the database of system tables `entry`; it is taken from `previous` if neither it nor a database that its
    /// tables show changed, so that CPU usage is still compared with its earlier readings.
    pub(super) fn open_system(
        &self,
        entry: &DatabaseConfig,
        path: String,
        previous: &Self,
        loaded: &LoadedConfig,
        node_tables: &NodeTables,
    ) -> Result<OpenedDatabase, Vec<ConfigProblem>> {
        databases::check_keys_of_kind(entry, &path)?;
        if databases::has_other_kind(entry) {
            return Err(vec![ConfigProblem::new(path, ONE_KIND_MESSAGE)]);
        }
        let policies_key = loaded.config.policies_key.clone();
        let is_same = |old: &&OpenedDatabase| old.entry == *entry && old.policies_key == policies_key;
        if self.has_same_servers(previous)
            && let Some(old) = previous.by_name.get(&entry.name).filter(is_same)
        {
            return Ok(old.clone());
        }
        // Its problems are reported where it is applied.
        let tenants = tenancy::build_tenancy(&loaded.config, &Problems::default());
        let (mut pools, mut tables) = (Vec::new(), Vec::new());
        for opened in self.by_name.values() {
            match &opened.engine {
                DatabaseEngine::Postgres(postgres, _) => {
                    pools.push(ConnectionPool::Postgres(postgres.clone()));
                    tables.extend(PostgresTable::all(&opened.database, &may_query(&opened.entry.name, &tenants)));
                }
                DatabaseEngine::Sqlite(sqlite) => pools.push(ConnectionPool::Sqlite(sqlite.clone())),
                DatabaseEngine::Files(_)
                | DatabaseEngine::Federated
                | DatabaseEngine::Remote(_)
                | DatabaseEngine::System(_)
                | DatabaseEngine::Journal(_)
                | DatabaseEngine::Ingest(..) => {}
            }
        }
        tables.extend(node_tables.all(pools, tenants));
        let database = open_database(entry, &loaded.config, &path, tables, &node_tables.engine)?;
        let (entry, database) = (entry.clone(), Arc::new(database));
        let engine = DatabaseEngine::System(database.clone());
        Ok(OpenedDatabase { entry, path, policies_key, database, engine, target: None })
    }

    /// Whether the databases with connections are those of `previous`.
    fn has_same_servers(&self, previous: &Self) -> bool {
        let has_connections = |opened: &&OpenedDatabase| {
            matches!(opened.engine, DatabaseEngine::Postgres(..) | DatabaseEngine::Sqlite(_))
        };
        let servers = |all: &Self| -> Vec<Arc<dyn Database>> {
            all.by_name.values().filter(has_connections).map(|opened| opened.database.clone()).collect()
        };
        let (own, others) = (servers(self), servers(previous));
        own.len() == others.len() && own.iter().zip(&others).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// The tables that are offered as functions.
    pub(super) fn functions(&self) -> Option<Arc<dyn FunctionSource>> {
        self.by_name.values().find_map(|opened| match &opened.engine {
            DatabaseEngine::System(database) => Some(SystemFunctions::offer(database.clone())),
            _ => None,
        })
    }
}

/// Opens the journals in `folders`.
pub(super) fn open_journal(
    entry: &DatabaseConfig,
    folders: Vec<PathBuf>,
    engine: &Engine,
) -> Result<SystemDatabase, Error> {
    let table = JournalTable::open(folders)?;
    SystemDatabase::of_journal(entry.name.clone(), table, entry.sensitive.clone(), engine)
}

/// The keys of journals in other databases.
pub(super) fn check_keys(entry: &DatabaseConfig, path: &str) -> Vec<ConfigProblem> {
    let problem = |member: &str, message: &str| ConfigProblem::new(format!("{path}.{member}"), message);
    let mut problems = Vec::new();
    if entry.log_sources.is_some() && entry.files.is_none() && entry.journal.is_none() {
        problems.push(problem("log_sources", "is for files and journals, and this database is neither"));
    }
    if entry.sensitive.is_some() && entry.journal.is_none() {
        let message = match &entry.system {
            Some(_) => "is for journals; that of system tables is system.sensitive",
            None => "is for journals, and this database is none",
        };
        problems.push(problem("sensitive", message));
    }
    problems
}

/// Opens the database of `entry` at `path`, with the tables of the machine and `tables`.
fn open_database(
    entry: &DatabaseConfig,
    config: &Config,
    path: &str,
    tables: Vec<Arc<dyn LiveTable>>,
    engine: &Engine,
) -> Result<SystemDatabase, Vec<ConfigProblem>> {
    let system = entry.system.clone().unwrap_or_default();
    let machine = MachineTable::all();
    // The others show what callers of this server do.
    let open: Vec<String> = machine.iter().map(|table| table.description().name.to_string()).collect();
    let is_open = |name: &str| [JOBS, POOLS, SESSIONS].contains(&name) || open.iter().any(|open| open == name);
    let tables = machine.into_iter().chain(tables).collect();
    let tables = select_tables(tables, is_open, &system, &format!("{path}.system"))?;
    let policies = policies::build_row_policies(entry, config, path)?;
    let database = SystemDatabase::new(entry.name.clone(), tables, system.sensitive, engine)
        .map_err(|error| vec![ConfigProblem::new(format!("{path}.system"), error.to_string())])?;
    Ok(database.with_row_policies(policies))
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
