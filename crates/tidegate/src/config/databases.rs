//! Opens the databases of a configuration, and inspects new ones.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use tidegate_core::nearest_names;
use tidegate_engines::{Engine, FederatedDatabase, FileDatabase, FileLimits, SystemDatabase};
use tidegate_postgres::PostgresDatabase;
use tidegate_postgres_handlers::DatabaseHandlers;
use tidegate_query::{Database, DatabaseKind};
use tidegate_sqlite::{SqliteDatabase, SqliteOptions};

use super::ingest::{admit_later_tables, check_ingest, ingest_folder, open_target};
use super::network::ClientTlsFiles;
use super::opened_target::OpenedTarget;
use super::problem::ConfigProblem;
use super::problems::Problems;
use super::quantities::SecretText;
use super::types::DatabaseConfig;
use super::{LoadedConfig, network, policies, postgres, system, tables};
use crate::ingest::{FolderTarget, FolderUse, OpenedTables};
use crate::node_tables::NodeTables;

pub(super) const ONE_KIND_MESSAGE: &str = "needs exactly one of files, sqlite, postgres, federated, flight_sql, network, system and journal, or ingest with a \
     folder";

/// The kinds of members of federated databases.
const JOINED_KINDS: &str = "files, postgres, sqlite, flight_sql, network or system";

#[derive(Clone, Default)]
pub(super) struct OpenDatabases {
    pub(super) by_name: BTreeMap<String, OpenedDatabase>,
}

#[derive(Clone)]
pub(super) struct OpenedDatabase {
    pub(super) entry: DatabaseConfig,
    pub(super) path: String,
    pub(super) policies_key: Option<SecretText>,
    pub(super) database: Arc<dyn Database>,
    pub(super) engine: DatabaseEngine,
    /// Its tables that take rows.
    pub(super) target: Option<OpenedTarget>,
}

#[derive(Clone)]
pub(super) enum DatabaseEngine {
    Files(Arc<FileDatabase>),
    Postgres(Arc<PostgresDatabase>, Option<Arc<DatabaseHandlers>>),
    Sqlite(Arc<SqliteDatabase>),
    Federated,
    /// A server of Flight SQL, or a network of nodes.
    #[cfg_attr(not(feature = "network"), expect(dead_code, reason = "nothing is opened"))]
    Remote(ClientTlsFiles),
    System(Arc<SystemDatabase>),
    Journal(Arc<SystemDatabase>),
    /// Tables that take rows.
    Ingest(Arc<FileDatabase>, FolderUse),
}

impl OpenDatabases {
    /// Opens the databases of `loaded`; unchanged ones come from `previous`. The command line has taken `reserved`.
    pub(super) fn open(
        loaded: &LoadedConfig,
        previous: &Self,
        reserved: &[&str],
        engine: &Engine,
        node_tables: &NodeTables,
        mut folders: BTreeMap<String, OpenedTables>,
        problems: &Problems,
    ) -> Self {
        let mut all = Self::default();
        let mut names: BTreeMap<&str, Option<usize>> = reserved.iter().map(|name| (*name, None)).collect();
        let (mut federated, mut of_system) = (Vec::new(), Vec::new());
        for (index, entry) in loaded.config.databases.iter().enumerate() {
            let path = format!("databases[{index}]");
            if let Some(first) = names.get(entry.name.as_str()) {
                let problem =
                    ConfigProblem::new(format!("{path}.name"), format!("{} is the name of another", entry.name));
                problems.push(match first {
                    Some(first) => problem.related_to(format!("databases[{first}].name")),
                    None => problem,
                });
                continue;
            }
            names.insert(&entry.name, Some(index));
            if let Some(members) = &entry.federated {
                federated.push((path, entry, members));
                continue;
            }
            if entry.system.is_some() {
                of_system.push((path, entry));
                continue;
            }
            if network::is_remote(entry) {
                let previous = previous.by_name.get(&entry.name);
                all.add(network::open_database(entry, path, loaded, previous, engine), problems);
                continue;
            }
            let is_same = |opened: &&OpenedDatabase| {
                let has_key = entry.policies.is_empty() || opened.policies_key == loaded.config.policies_key;
                opened.entry == *entry && has_key && opened.has_same_folder(folders.get(&entry.name))
            };
            let unchanged = previous.by_name.get(&entry.name).filter(is_same);
            let opened = match unchanged {
                Some(opened) => Ok(opened.clone()),
                None => open_database(loaded, entry, path, folders.remove(&entry.name), engine),
            };
            all.add(opened, problems);
        }
        for (index, (path, entry)) in of_system.into_iter().enumerate() {
            let opened = match index {
                0 => all.open_system(entry, path, previous, loaded, node_tables),
                _ => Err(vec![ConfigProblem::new(path, "is a second database of system tables, and one is enough")]),
            };
            all.add(opened, problems);
        }
        // Federated databases need their members to be open.
        let opened =
            federated.into_iter().map(|(path, entry, members)| all.federate(entry, members, path, previous, engine));
        let opened: Vec<_> = opened.collect();
        opened.into_iter().for_each(|opened| all.add(opened, problems));
        all.continue_counters(previous);
        all
    }

    fn add(&mut self, opened: Result<OpenedDatabase, Vec<ConfigProblem>>, problems: &Problems) {
        if let Some(opened) = problems.accept(opened) {
            self.by_name.insert(opened.entry.name.clone(), opened);
        }
    }

    /// Opens the federated database `entry`; it is taken from `previous` if neither it nor a member changed.
    fn federate(
        &self,
        entry: &DatabaseConfig,
        members: &[String],
        path: String,
        previous: &Self,
        engine: &Engine,
    ) -> Result<OpenedDatabase, Vec<ConfigProblem>> {
        check_keys_of_kind(entry, &path)?;
        if has_other_kind(entry) || entry.system.is_some() {
            return Err(vec![ConfigProblem::new(path, ONE_KIND_MESSAGE)]);
        }
        let problems = Problems::default();
        let mut opened: Vec<Arc<dyn Database>> = Vec::new();
        for (index, name) in members.iter().enumerate() {
            match self.by_name.get(name) {
                Some(member) => opened.push(member.database.clone()),
                None => {
                    let near = nearest_names(name, self.by_name.keys().map(String::as_str));
                    let meant = near.first().map(|near| format!("; {near} is")).unwrap_or_default();
                    let message = format!("{name} is no database of {JOINED_KINDS}{meant}");
                    problems.push(ConfigProblem::new(format!("{path}.federated[{index}]"), message));
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems.into_vec());
        }
        let is_same = |old: &&OpenedDatabase| {
            let is_unchanged = |name: &String| match (previous.by_name.get(name), self.by_name.get(name)) {
                (Some(old), Some(new)) => Arc::ptr_eq(&old.database, &new.database),
                _ => false,
            };
            old.entry == *entry && members.iter().all(is_unchanged)
        };
        if let Some(old) = previous.by_name.get(&entry.name).filter(is_same) {
            return Ok(old.clone());
        }
        let database = FederatedDatabase::new(entry.name.clone(), opened, engine)
            .map_err(|error| vec![ConfigProblem::new(format!("{path}.federated"), error.to_string())])?;
        let (entry, database, engine) = (entry.clone(), Arc::new(database), DatabaseEngine::Federated);
        Ok(OpenedDatabase { entry, path, policies_key: None, database, engine, target: None })
    }

    /// The databases that are not in `previous`, or were opened again.
    pub(super) fn new_databases(&self, previous: &Self) -> impl Iterator<Item = Arc<dyn Database>> {
        let is_known = |database: &Arc<dyn Database>| {
            previous.by_name.get(database.name()).is_some_and(|old| Arc::ptr_eq(&old.database, database))
        };
        self.databases().filter(move |database| !is_known(database))
    }

    pub(super) fn databases(&self) -> impl Iterator<Item = Arc<dyn Database>> {
        self.by_name.values().map(|opened| opened.database.clone())
    }

    /// The databases without which the node is not ready.
    pub(super) fn required(&self) -> impl Iterator<Item = Arc<dyn Database>> {
        let required = self.by_name.values().filter(|opened| opened.entry.required.unwrap_or(true));
        required.map(|opened| opened.database.clone())
    }

    pub(super) fn with_handlers(&self) -> impl Iterator<Item = (&str, &Arc<DatabaseHandlers>)> {
        self.by_name.values().filter_map(|opened| match &opened.engine {
            DatabaseEngine::Postgres(_, Some(handlers)) => Some((opened.entry.name.as_str(), handlers)),
            _ => None,
        })
    }

    /// Reports globs without files, options of tables that do not fit, and problems of databases that are not in
    /// `previous`: of their policies, and, for PostgreSQL, whether they answer and what their roles could do beyond
    /// reading. Returns the databases that refuse the configured login, which are only a warning for the node: it serves the
    /// others.
    pub(super) async fn inspect(
        &self,
        previous: &Self,
        problems: &Problems,
        warnings: &mut Vec<String>,
    ) -> Vec<ConfigProblem> {
        let mut refused_logins = Vec::new();
        let is_new = |opened: &&OpenedDatabase| {
            previous.by_name.get(&opened.entry.name).is_none_or(|old| old.entry != opened.entry)
        };
        for opened in self.by_name.values() {
            if let DatabaseEngine::Files(files) = &opened.engine {
                let name = &opened.entry.name;
                let unmatched = files.unmatched_globs().into_iter();
                warnings.extend(unmatched.map(|glob| format!("database {name}: no file matches {glob} yet")));
                // An unreadable folder is reported by the database itself.
                let found = files.table_option_problems().await.unwrap_or_default();
                warnings.extend(found.into_iter().map(|reason| format!("database {name}: tables: {reason}")));
            }
            if is_new(&opened) {
                opened.check_policies(problems, warnings).await;
            }
        }
        let new = self.by_name.values().filter(is_new).filter_map(|opened| match &opened.engine {
            DatabaseEngine::Postgres(postgres, _) => Some((opened, postgres)),
            DatabaseEngine::Files(_)
            | DatabaseEngine::Sqlite(_)
            | DatabaseEngine::Federated
            | DatabaseEngine::Remote(_)
            | DatabaseEngine::System(_)
            | DatabaseEngine::Journal(_)
            | DatabaseEngine::Ingest(..) => None,
        });
        let inspections = new.map(|(opened, postgres)| async move { (opened, postgres.inspect().await) });
        for (opened, outcome) in join_all(inspections).await {
            let name = &opened.entry.name;
            match outcome {
                Ok(findings) if opened.entry.strict => problems.extend(
                    findings
                        .iter()
                        .map(|finding| ConfigProblem::new(format!("{}.strict", opened.path), finding.to_string())),
                ),
                Ok(findings) => warnings.extend(findings.iter().map(|finding| format!("database {name}: {finding}"))),
                Err(error) => {
                    let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
                    warnings.push(format!("database {name}: {reason}"));
                    if error.is_configuration_fault() {
                        // The warning has the details of the connection.
                        refused_logins.push(ConfigProblem::new(opened.path.clone(), error.message()));
                    }
                }
            }
        }
        refused_logins
    }
}

impl OpenedDatabase {
    async fn check_policies(&self, problems: &Problems, warnings: &mut Vec<String>) {
        let Self { entry, path, .. } = self;
        if entry.policies.is_empty() {
            return;
        }
        let checked = match &self.engine {
            DatabaseEngine::Files(files) => files.check_policies().await,
            DatabaseEngine::Ingest(files, _) => {
                files.check_policies().await.map(|found| admit_later_tables(entry, found))
            }
            DatabaseEngine::Sqlite(sqlite) => sqlite.check_policies().await,
            DatabaseEngine::System(system) | DatabaseEngine::Journal(system) => Ok(system.check_policies()),
            DatabaseEngine::Postgres(..) | DatabaseEngine::Federated | DatabaseEngine::Remote(_) => return,
        };
        match checked {
            Ok(found) => policies::report_policy_problems(found, &entry.name, path, problems, warnings),
            Err(error) => problems.push(ConfigProblem::new(format!("{path}.policies"), error.to_string())),
        }
    }
}

fn open_database(
    loaded: &LoadedConfig,
    entry: &DatabaseConfig,
    path: String,
    ingested: Option<OpenedTables>,
    engine: &Engine,
) -> Result<OpenedDatabase, Vec<ConfigProblem>> {
    check_keys_of_kind(entry, &path)?;
    let resolve = |paths: &super::quantities::OneOrMany| -> Vec<PathBuf> {
        paths.clone().into_vec().into_iter().map(|path| loaded.resolve(path)).collect()
    };
    let problem = |member: &str, error: tidegate_core::Error| {
        vec![ConfigProblem::new(format!("{path}.{member}"), error.to_string())]
    };
    let name = entry.name.clone();
    let kinds = (&entry.files, &entry.sqlite, &entry.postgres, &entry.journal);
    let (database, engine): (Arc<dyn Database>, _) = match kinds {
        (Some(files), None, None, None) => {
            let tables = tables::build_text_tables(&entry.tables, &path)?;
            let opened = FileDatabase::open_with(name, resolve(files), engine, FileLimits::default(), tables);
            let policies = policies::build_row_policies(entry, &loaded.config, &path)?;
            let opened = Arc::new(opened.map_err(|error| problem("files", error))?.with_row_policies(policies));
            (opened.clone(), DatabaseEngine::Files(opened))
        }
        (None, Some(files), None, None) => {
            let default = SqliteOptions::default();
            let connections_max = entry.connections.unwrap_or(default.connections_max);
            let row_policies = policies::build_row_policies(entry, &loaded.config, &path)?;
            let cached_answer_max_age = entry.cache.map(|time| time.0);
            let options = SqliteOptions { connections_max, cached_answer_max_age, row_policies, ..default };
            let opened = SqliteDatabase::open(name, resolve(files), options);
            let opened = Arc::new(opened.map_err(|error| problem("sqlite", error))?);
            (opened.clone(), DatabaseEngine::Sqlite(opened))
        }
        (None, None, Some(target), None) => {
            let (opened, handlers) = postgres::open_database(entry, target, &loaded.config, &path)?;
            let opened = Arc::new(opened);
            let handlers = handlers.map(|options| DatabaseHandlers::new(&name, opened.clone(), options));
            (opened.clone(), DatabaseEngine::Postgres(opened, handlers))
        }
        (None, None, None, Some(folders)) => {
            let policies = policies::build_row_policies(entry, &loaded.config, &path)?;
            let opened =
                system::open_journal(entry, resolve(folders), engine).map_err(|error| problem("journal", error))?;
            let opened = Arc::new(opened.with_row_policies(policies));
            (opened.clone(), DatabaseEngine::Journal(opened))
        }
        (None, None, None, None) if ingest_folder(entry).is_some() => {
            // Without tables, opening the folder was a problem that is reported.
            let OpenedTables { source, folder_use, .. } = ingested.ok_or_else(Vec::new)?;
            let policies = policies::build_row_policies(entry, &loaded.config, &path)?;
            let opened = FileDatabase::of_source(name, DatabaseKind::Ingest, source, engine);
            let opened = Arc::new(opened.map_err(|error| problem("ingest", error))?.with_row_policies(policies));
            (opened.clone(), DatabaseEngine::Ingest(opened, folder_use))
        }
        _ => return Err(vec![ConfigProblem::new(path, ONE_KIND_MESSAGE)]),
    };
    let policies_key = loaded.config.policies_key.clone();
    let target = match &engine {
        DatabaseEngine::Ingest(files, folder_use) => folder_use
            .declared()
            .map(|declared| OpenedTarget::Folder(Arc::new(FolderTarget::new(declared.folder.clone(), files.clone())))),
        _ => open_target(entry, loaded, &path)?,
    };
    Ok(OpenedDatabase { entry: entry.clone(), path, policies_key, database, engine, target })
}

/// Whether the entry sets a kind other than federated and system.
pub(super) fn has_other_kind(entry: &DatabaseConfig) -> bool {
    let is_local = entry.files.is_some() || entry.sqlite.is_some() || entry.journal.is_some();
    is_local || entry.postgres.is_some() || network::is_remote(entry)
}

pub(super) fn check_keys_of_kind(entry: &DatabaseConfig, path: &str) -> Result<(), Vec<ConfigProblem>> {
    let postgres_keys = [
        ("role", entry.role.is_some()),
        ("claims", entry.claims.is_some()),
        ("settings", !entry.settings.is_empty()),
        ("tenancy", entry.tenancy != Default::default()),
        ("schemas", entry.schemas.is_some()),
        ("strict", entry.strict),
        ("pgbouncer", entry.pgbouncer),
        ("max_cost", entry.max_cost.is_some()),
        ("allow_functions", !entry.allow_functions.is_empty()),
        ("max_message_bytes", entry.max_message_bytes.is_some()),
        ("connection_timeout", entry.connection_timeout.is_some()),
        ("handlers", entry.handlers.is_some()),
        ("lock_timeout", entry.lock_timeout.is_some()),
    ];
    let misplaced = postgres_keys.into_iter().filter(|(_, is_set)| *is_set && entry.postgres.is_none());
    let mut problems: Vec<ConfigProblem> = misplaced
        .map(|(member, _)| {
            ConfigProblem::new(format!("{path}.{member}"), "is for PostgreSQL, and this database is not")
        })
        .collect();
    problems.extend(policies::check_kind(entry, path));
    problems.extend(network::check_keys(entry, path));
    if !entry.tables.is_empty() && entry.files.is_none() && entry.ingest.is_none() {
        let message = "is for files and for tables that take rows, and this database has neither";
        problems.push(ConfigProblem::new(format!("{path}.tables"), message));
    }
    problems.extend(check_ingest(entry, path));
    for (member, is_set) in [("connections", entry.connections.is_some()), ("cache", entry.cache.is_some())] {
        let has_connections = entry.postgres.is_some() || entry.sqlite.is_some();
        if is_set && !has_connections {
            let message = "is for PostgreSQL and SQLite, and this database is neither";
            problems.push(ConfigProblem::new(format!("{path}.{member}"), message));
        }
    }
    problems.extend(system::check_keys(entry, path));
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
